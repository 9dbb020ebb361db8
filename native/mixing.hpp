// What a smoothing proposal adds where past and future interact: w_k . tanh(P h + Q hbar + b) (proposals/mixing.py).
#pragma once

#include <limits>
#include <utility>

#include "lstm.hpp"

namespace retrodict {

constexpr int kPastTerms = 6, kFutureTerms = 4;

// The units' sums P h + Q hbar + b at one time, themselves a weighted sum of rows [padded units]: those that
// interpolate P h (past.hpp) first, then those that interpolate Q hbar + b (outlook.hpp).
struct Terms {
    static constexpr int kCount = kPastTerms + kFutureTerms;
    const float* rows[kCount];
    float weights[kCount];

    // P h itself, instead of rows that interpolate it.
    void set_past(const float* sums) {
        for (int i = 0; i < kPastTerms; i++) rows[i] = sums, weights[i] = i ? 0.0f : 1.0f;
    }
};

struct Mixing {
    int units, padded_units;
    Readout readout;            // w [K, units]
    Buffer<float> bias, slack;  // b [padded_units]; for rounding [Kp]

    Mixing(Readout out, const float* offsets, int count)
        : units(count), padded_units(padded(count)), readout(std::move(out)), bias(padded(count)), slack(readout.Kp) {
        for (int u = 0; u < padded_units; u++) bias[u] = u < units ? offsets[u] : 0.0f;
        for (int k = 0; k < readout.Kp; k++)
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + readout.size(k));
    }

    // Numbers that the calls below need to work with, for n points.
    int scratch(int n) const { return (n + 1) * (padded_units + 2 * readout.Kp); }

    // x_k += w_k . tanh(sums) at n points, [n][stride].
    template <class Real>
    void add(int n, const Terms* sums, Real* x, int stride, float* scratch) const {
        float *bent = scratch, *out = scratch + n * padded_units;
        for (int j = 0; j < n; j++) bend(sums[j], bent + j * padded_units);
        readout.apply(n, bent, out);
        for (int j = 0; j < n; j++)
            for (int k = 0; k < readout.K; k++) x[j * stride + k] += out[j * readout.Kp + k];
    }

    // x_k += a bound of it for sums between low and high: tanh is increasing, so each unit stays within half its spread
    // of its mean at the ends.
    template <class Real>
    void add_bound(Real* x, const float* low, const float* high, float* scratch) const {
        float *middle = scratch, *half = middle + padded_units, *mean = half + padded_units, *apart = mean + readout.Kp;
        for (int u = 0; u < padded_units; u += W) {
            const vec least = tanh(load(low + u)), most = tanh(load(high + u));
            store(middle + u, (most + least) * 0.5f), store(half + u, (most - least) * 0.5f);
        }
        readout.apply(middle, half, mean, apart);
        for (int k = 0; k < readout.K; k++) x[k] += mean[k] + apart[k] + slack[k];
    }

private:
    void bend(const Terms& sums, float* bent) const {
        for (int u = 0; u < padded_units; u += W) {
            vec past = load(sums.rows[0] + u) * sums.weights[0], future = load(sums.rows[kPastTerms] + u) * sums.weights[kPastTerms];
#pragma GCC unroll 8
            for (int i = 1; i < kPastTerms; i++) past += load(sums.rows[i] + u) * sums.weights[i];
#pragma GCC unroll 8
            for (int i = kPastTerms + 1; i < Terms::kCount; i++) future += load(sums.rows[i] + u) * sums.weights[i];
            store(bent + u, tanh(past + future));
        }
    }
};

}  // namespace retrodict
