// The models an engine can run, behind one interface: drives of rows at times, bounds, reading events.
//
// A drive x_k is what goes into lambda_k = activate(x)_k (models/base.py). ``look`` evaluates one time and remembers in
// a slot what reading an event there needs; ``keep`` makes that the row's own, and ``read`` uses it. Where a proposal
// mixes past and future (mixing.hpp), the units' sums P h follow the drives, to make up the width.
#pragma once

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
    Readout readout, spread;                     // V, and P below it; their absolute values
    Buffer<float> inverse_scale, height, slack;  // 1 / s_k; s_k in the user's units of time, 0 in the padding; [width]
    double per_time;                             // the model's units of time in one of the user's
    std::vector<double> log_height;

    NeuralWeights(Lstm read, Readout out, const float* scale, double time_scale)
        : lstm(std::move(read)), readout(std::move(out)), spread(readout.absolute()), inverse_scale(readout.Kp),
          height(readout.Kp), slack(readout.width), per_time(1 / time_scale), log_height(readout.Kp) {
        for (int k = 0; k < readout.Kp; k++) {
            bool real = k < readout.K;
            inverse_scale[k] = real ? 1 / scale[k] : 1.0f;
            height[k] = real ? static_cast<float>(scale[k] * per_time) : 0.0f;
            log_height[k] = std::log(static_cast<double>(real ? scale[k] : 1.0f) * per_time);
        }
        for (int k = 0; k < readout.width; k++)
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + spread.row_sum(k));
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
        w_.lstm.begin(K, first_.data());
    }

    // Rows that have read the boundary event, and nothing else.
    void begin(int rows) {
        cells_.reserve(size_t(rows) * 4 * Dp_);
        kept_.reserve(size_t(rows) * 2 * Dp_);
        for (int r = 0; r < rows; r++) std::memcpy(cells(r), first_.data(), 16 * Dp_);
    }

    void drives(int row, int n, const double* elapsed, float* x) {
        points_.reserve(size_t(n) * Dp_);
        own_.resize(n);
        for (int j = 0; j < n; j++) own_[j] = static_cast<float>(elapsed[j] * w_.per_time);
        hidden_at(cells(row), Dp_, n, own_.data(), points_.data());
        w_.readout.apply(n, points_.data(), x);
    }

    void look(int row, double elapsed, int slot, float* x) {
        float own = static_cast<float>(elapsed * w_.per_time);
        hidden_at(cells(row), Dp_, 1, &own, hidden(slot), cell(slot));
        w_.readout.apply(1, hidden(slot), x);
    }

    // Appendix C.4: each h_d is monotone in between, so v . h stays within its mean at the ends and half its spread.
    // Units also have a lower bound, in low.
    void bound(int left, int right, const float* x_left, const float* x_right, float* x, float* low) {
        const float *a = hidden(left), *b = hidden(right);
        for (int d = 0; d < Dp_; d += W) store(apart_.data() + d, magnitude(load(b + d) - load(a + d)));
        w_.spread.apply(1, apart_.data(), x);
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
        w_.lstm.read(n, inputs_.data(), memory_.data(), types, outputs_.data(), gates_);
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
};

class Excited {
public:
    using Real = double;
    using Weights = HawkesWeights;
    const int K, Kp, width;

    explicit Excited(const HawkesWeights& weights)
        : K(static_cast<int>(weights.base.size())), Kp(K), width(K), w_(weights) {}

    void begin(int rows) { excited_.assign(size_t(rows) * K, 0.0); }

    void drives(int row, int n, const double* elapsed, double* x) {
        const double* own = excited_.data() + size_t(row) * K;
        for (int j = 0; j < n; j++)
            for (int k = 0; k < K; k++) {
                const double rate = w_.base[k] + own[k] * std::exp(-w_.decay[k] * elapsed[j]);
                x[j * K + k] = rate + std::log(-std::expm1(-rate));
            }
    }

    void look(int row, double elapsed, int, double* x) { drives(row, 1, &elapsed, x); }

    // Intensities only fall until the next event.
    void bound(int, int, const double* x_left, const double*, double* x, double*) { std::memcpy(x, x_left, 8 * K); }

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
    std::vector<double> excited_;
};

}  // namespace retrodict
