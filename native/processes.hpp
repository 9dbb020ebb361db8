// The models an engine can run, behind one interface: drives of rows at times, bounds, reading events.
//
// A drive x_k is what goes into lambda_k = activate(x)_k (models/base.py). ``look`` evaluates one time and remembers in
// a slot what reading an event there needs; ``keep`` makes that the row's own, and ``read`` uses it. Where a proposal
// mixes past and future (mixing.hpp), the units' sums P h follow the drives, to make up the width.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "lstm.hpp"

namespace retrodict {

enum Slot { kOneEnd = 0, kOtherEnd = 1, kCandidate = 2, kSlots = 3 };

inline double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

inline double log_softplus(double x) { return x < -30 ? x - 0.5 * std::exp(x) : std::log(softplus(x)); }

// The sum of n numbers, which fill whole lanes.
template <class Real>
Real total(const Real* x, int n) {
    typename Lanes<Real>::Type sums = {};
    for (int k = 0; k < n; k += Lanes<Real>::width) sums += load(x + k);
    return sum(sums);
}

// x_k *= y_k for n numbers; returns their sum.
template <class Real>
Real scale(Real* x, const Real* y, int n) {
    typename Lanes<Real>::Type sums = {};
    for (int k = 0; k < n; k += Lanes<Real>::width) {
        const auto product = load(x + k) * load(y + k);
        store(x + k, product);
        sums += product;
    }
    return sum(sums);
}

// A neural Hawkes process: lambda_k(t) = f_k(v_k . h(t)), equation (2).
struct NeuralWeights {
    Lstm lstm;
    Readout readout;                             // V, and P below it
    Buffer<float> inverse_scale, height, slack;  // 1 / s_k; s_k in the user's units of time, 0 in the padding; [width]
    double per_time;                             // the model's units of time in one of the user's
    std::vector<double> log_height;

    NeuralWeights(Lstm read, Readout out, const float* scale, double time_scale)
        : lstm(std::move(read)), readout(std::move(out)), inverse_scale(readout.Kp), height(readout.Kp), slack(readout.width), per_time(1 / time_scale), log_height(readout.Kp) {
        for (int k = 0; k < readout.Kp; k++) {
            bool real = k < readout.K;
            inverse_scale[k] = real ? 1 / scale[k] : 1.0f;
            height[k] = real ? static_cast<float>(scale[k] * per_time) : 0.0f;
            log_height[k] = std::log(static_cast<double>(real ? scale[k] : 1.0f) * per_time);
        }
        for (int k = 0; k < readout.width; k++)
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + readout.size(k));
    }
};

class Neural {
public:
    using Real = float;
    using Weights = NeuralWeights;
    const int K, Kp, width;

    explicit Neural(const NeuralWeights& weights)
        : K(weights.readout.K), Kp(weights.readout.Kp), width(weights.readout.width), w_(weights),
          Dp_(weights.lstm.Dp), edges_(2 * kSlots * Dp_), apart_(Dp_), first_(4 * Dp_) {
        w_.lstm.begin(w_.lstm.input(K), first_.data());
    }

    // Rows that have read the boundary event, and nothing else.
    void begin(int rows) {
        cells_.reserve(size_t(rows) * 4 * Dp_);
        kept_.reserve(size_t(rows) * 2 * Dp_);
        for (int r = 0; r < rows; r++) std::memcpy(cells(r), first_.data(), 16 * Dp_);
    }

    // [n][width]; the units' sums only where they are wanted.
    void drives(int row, int n, const double* elapsed, float* x, bool units) {
        points_.reserve(size_t(n) * Dp_);
        own_.resize(n);
        for (int j = 0; j < n; j++) own_[j] = static_cast<float>(elapsed[j] * w_.per_time);
        hidden_at(cells(row), Dp_, n, own_.data(), points_.data());
        w_.readout.apply(n, points_.data(), x, units ? width : Kp);
    }

    void look(int row, double elapsed, int slot, float* x, bool units) {
        float own = static_cast<float>(elapsed * w_.per_time);
        hidden_at(cells(row), Dp_, 1, &own, hidden(slot), cell(slot));
        w_.readout.apply(1, hidden(slot), x, units ? width : Kp);
    }

    // Look at the right end of a stretch, and bound drives from its left end on. Appendix C.4: each h_d is monotone in
    // between, so v . h stays within its mean at the ends and half its spread. Units also have a lower bound, in low.
    void bound(int row, double elapsed, int left, int right, const float* x_left, float* x_right, float* x, float* low) {
        const float own = static_cast<float>(elapsed * w_.per_time);
        hidden_at(cells(row), Dp_, 1, &own, hidden(right), cell(right));
        const float *a = hidden(left), *b = hidden(right);
        for (int d = 0; d < Dp_; d += W) store(apart_.data() + d, magnitude(load(b + d) - load(a + d)));
        w_.readout.apply(b, apart_.data(), x_right, x);
        const float* slack = w_.slack.data();
        for (int k = Kp; k < width; k += W)
            store(low + k - Kp, (load(x_left + k) + load(x_right + k) - load(x + k)) * 0.5f - load(slack + k));
        for (int k = 0; k < width; k += W)
            store(x + k, (load(x_left + k) + load(x_right + k) + load(x + k)) * 0.5f + load(slack + k));
    }

    void keep(int row, int slot) {
        float* own = kept_.data() + size_t(row) * 2 * Dp_;
        std::memcpy(own, hidden(slot), 4 * Dp_);
        std::memcpy(own + Dp_, cell(slot), 4 * Dp_);
    }

    // All rows together: one matrix product.
    void read(int n, const int* rows, const int* types, const double*) {
        inputs_.resize(n), memory_.resize(n), outputs_.resize(n);
        for (int j = 0; j < n; j++) {
            inputs_[j] = kept_.data() + size_t(rows[j]) * 2 * Dp_;
            memory_[j] = inputs_[j] + Dp_;
            outputs_[j] = cells(rows[j]);
        }
        auto input = [&](int row) { return w_.lstm.input(types[row]); };
        w_.lstm.read(n, inputs_.data(), memory_.data(), input, outputs_.data(), gates_);
    }

    void copy(int to, int from) { std::memcpy(cells(to), cells(from), 16 * Dp_); }

    void activate(const float* x, float* rates) const {
        for (int k = 0; k < Kp; k += W)
            store(rates + k, load(w_.height.data() + k) * softplus(load(x + k) * load(w_.inverse_scale.data() + k)));
    }

    double log_rate(int k, float x) const {
        return w_.log_height[k] + log_softplus(static_cast<double>(x) * w_.inverse_scale[k]);
    }

private:
    const NeuralWeights& w_;
    int Dp_;
    Buffer<float> cells_, kept_, edges_, apart_, first_, points_, gates_;
    std::vector<float> own_;
    std::vector<const float*> inputs_, memory_;
    std::vector<float*> outputs_;

    float* cells(int row) { return cells_.data() + size_t(row) * 4 * Dp_; }
    float* hidden(int slot) { return edges_.data() + 2 * slot * Dp_; }
    float* cell(int slot) { return edges_.data() + (2 * slot + 1) * Dp_; }
};

// lambda_k(t) = base_k + excited_k exp(-decay_k elapsed): a Hawkes process, or a Poisson process where nothing excites.
struct HawkesWeights {
    std::vector<double> base, decay, jumps;  // [K], [K], [K, K] from the exciting type to the excited one
    Readout past;                            // P [units, K], which may have no units
};

class Excited {
public:
    using Real = double;
    using Weights = HawkesWeights;
    const int K, Kp, width;

    explicit Excited(const HawkesWeights& weights)
        : K(static_cast<int>(weights.base.size())), Kp(K), width(K + weights.past.width), w_(weights),
          features_(padded(K)), sums_(2 * weights.past.width) {
        std::fill_n(features_.data(), padded(K), 0.0f);
        for (int u = 0; u < width - K; u++) reach_.push_back(weights.past.size(u));
    }

    void begin(int rows) { excited_.assign(size_t(rows) * K, 0.0); }

    void drives(int row, int n, const double* elapsed, double* x, bool units) {
        const double* own = excited_.data() + size_t(row) * K;
        for (int j = 0; j < n; j++, x += width) {
            for (int k = 0; k < K; k++) {
                const double rate = w_.base[k] + own[k] * std::exp(-w_.decay[k] * elapsed[j]);
                x[k] = rate + std::log(-std::expm1(-rate));
            }
            if (!units || width == K) continue;
            for (int k = 0; k < K; k++) features_[k] = static_cast<float>(feature(x[k]));
            w_.past.apply(1, features_.data(), sums_.data());
            std::copy_n(sums_.data(), width - K, x + K);
        }
    }

    void look(int row, double elapsed, int, double* x, bool units) { drives(row, 1, &elapsed, x, units); }

    // Intensities, and with them features, only fall until the next event. Units also have a lower bound, in low.
    void bound(int row, double elapsed, int, int, const double* x_left, double* x_right, double* x, double* low) {
        drives(row, 1, &elapsed, x_right, true);
        std::memcpy(x, x_left, 8 * K);
        if (width == K) return;
        double size = 1;
        for (int k = 0; k < K; k++) {
            const double left = feature(x_left[k]), right = feature(x_right[k]);
            features_[k] = static_cast<float>(left - right);
            size = std::max({size, std::abs(left), std::abs(right)});
        }
        float* apart = sums_.data() + w_.past.width;
        w_.past.apply(features_.data(), features_.data(), sums_.data(), apart);
        for (int u = 0; u < width - K; u++) {
            const double slack = 32 * std::numeric_limits<float>::epsilon() * (1 + size * reach_[u]);
            const double middle = (x_left[K + u] + x_right[K + u]) / 2, half = apart[u] / 2 + slack;
            low[u] = middle - half, x[K + u] = middle + half;
        }
    }

    void keep(int, int) {}

    void read(int n, const int* rows, const int* types, const double* elapsed) {
        for (int j = 0; j < n; j++) {
            double* own = excited_.data() + size_t(rows[j]) * K;
            for (int k = 0; k < K; k++)
                own[k] = own[k] * std::exp(-w_.decay[k] * elapsed[j]) + w_.jumps[size_t(types[j]) * K + k];
        }
    }

    void copy(int to, int from) {
        std::memcpy(excited_.data() + size_t(to) * K, excited_.data() + size_t(from) * K, 8 * K);
    }

    void activate(const double* x, double* rates) const {
        for (int k = 0; k < K; k++) rates[k] = softplus(x[k]);
    }

    double log_rate(int, double x) const { return log_softplus(x); }

private:
    const HawkesWeights& w_;
    std::vector<double> excited_, reach_;  // by row and type; the most that features of size 1 make of each unit
    Buffer<float> features_, sums_;

    // What is known of the past (models/base.py, features).
    static double feature(double drive) { return std::max(drive, -30.0); }
};

}  // namespace retrodict
