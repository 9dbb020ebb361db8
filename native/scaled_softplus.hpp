// Intensities from drives: f_k(x) = s_k log(1 + exp(x / s_k)), in the user's units of time (models/softplus_model.py).
#pragma once

#include <cmath>
#include <vector>

#include "buffer.hpp"
#include "vec.hpp"

namespace retrodict {

inline double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

inline double log_softplus(double x) { return x < -30 ? x - 0.5 * std::exp(x) : std::log(softplus(x)); }

struct ScaledSoftplus {
    int Kp;
    double per_time;                      // the model's units of time in one of the user's
    Buffer<float> inverse_scale, height;  // 1 / s_k; s_k in the user's units of time, 0 in the padding; [Kp]
    std::vector<double> log_height;

    ScaledSoftplus(const float* scale, int K, double time_scale)
        : Kp(padded(K)), per_time(1 / time_scale), inverse_scale(Kp), height(Kp), log_height(Kp) {
        for (int k = 0; k < Kp; k++) {
            const bool real = k < K;
            inverse_scale[k] = real ? 1 / scale[k] : 1.0f;
            height[k] = real ? static_cast<float>(scale[k] * per_time) : 0.0f;
            log_height[k] = std::log(static_cast<double>(real ? scale[k] : 1.0f) * per_time);
        }
    }

    void activate(const float* x, float* rates) const {
        for (int k = 0; k < Kp; k += W)
            store(rates + k, load(height.data() + k) * softplus(load(x + k) * load(inverse_scale.data() + k)));
    }

    // The sums [Kp] of n points' rates [n][Kp], weighted.
    void sum_up(int n, const float* x, const float* weights, float* sums) const {
        for (int k = 0; k < Kp; k += W) {
            const vec inverse = load(inverse_scale.data() + k);
            vec own = {};
            for (int j = 0; j < n; j++) own += softplus(load(x + j * Kp + k) * inverse) * weights[j];
            store(sums + k, own * load(height.data() + k));
        }
    }

    // The sum of n points' rates [n][Kp] over points and types, weighted [n][Kp].
    float weigh(int n, const float* x, const float* weights) const {
        vec all = {};
        for (int k = 0; k < Kp; k += W) {
            const vec inverse = load(inverse_scale.data() + k);
            vec own = {};
            for (int j = 0; j < n; j++) own += load(weights + j * Kp + k) * softplus(load(x + j * Kp + k) * inverse);
            all += load(height.data() + k) * own;
        }
        return sum(all);
    }

    double log_rate(int k, float x) const {
        return log_height[k] + log_softplus(static_cast<double>(x) * inverse_scale[k]);
    }
};

}  // namespace retrodict
