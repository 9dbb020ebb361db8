// The models an engine can run, behind one interface: drives of rows at times, bounds, reading events.
//
// A drive x_k is what goes into lambda_k = activate(x)_k (models/base.py). ``look`` evaluates one time and remembers in
// a slot what reading an event there needs; ``keep`` makes that the row's own, and ``read`` uses it. Where a proposal
// mixes past and future (mixing.hpp), ``sums`` gives the units' sums P h, and ``pace`` says how fast they move.
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
    Readout readout;                             // V
    Product past;                                // P, which may have no units
    Buffer<float> inverse_scale, height, slack;  // 1 / s_k; s_k in the user's units of time, 0 in the padding; [Kp]
    double per_time;                             // the model's units of time in one of the user's
    std::vector<double> log_height;

    NeuralWeights(Lstm read, Readout out, Product units, const float* scale, double time_scale)
        : lstm(std::move(read)), readout(std::move(out)), past(std::move(units)), inverse_scale(readout.Kp),
          height(readout.Kp), slack(readout.Kp), per_time(1 / time_scale), log_height(readout.Kp) {
        for (int k = 0; k < readout.Kp; k++) {
            bool real = k < readout.K;
            inverse_scale[k] = real ? 1 / scale[k] : 1.0f;
            height[k] = real ? static_cast<float>(scale[k] * per_time) : 0.0f;
            log_height[k] = std::log(static_cast<double>(real ? scale[k] : 1.0f) * per_time);
        }
        for (int k = 0; k < readout.Kp; k++)
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + readout.size(k));
    }
};

class Neural {
public:
    using Real = float;
    using Weights = NeuralWeights;
    const int K, Kp;

    explicit Neural(const NeuralWeights& weights)
        : K(weights.readout.K), Kp(weights.readout.Kp), w_(weights), Dp_(weights.lstm.Dp), edges_(2 * kSlots * Dp_),
          apart_(Dp_), first_(4 * Dp_) {
        w_.lstm.begin(w_.lstm.input(K), first_.data());
    }

    // Rows that have read the boundary event, and nothing else.
    void begin(int rows) {
        cells_.reserve(size_t(rows) * 4 * Dp_);
        kept_.reserve(size_t(rows) * 2 * Dp_);
        for (int r = 0; r < rows; r++) std::memcpy(cells(r), first_.data(), 16 * Dp_);
    }

    // [n][Kp].
    void drives(int row, int n, const double* elapsed, float* x) {
        points_.reserve(size_t(n) * Dp_);
        hidden_at_all(row, n, elapsed, points_.data());
        w_.readout.apply(n, points_.data(), x);
    }

    void look(int row, double elapsed, int slot, float* x) {
        float own = static_cast<float>(elapsed * w_.per_time);
        hidden_at(cells(row), Dp_, 1, &own, hidden(slot), cell(slot));
        w_.readout.apply(1, hidden(slot), x);
    }

    // Look at the right end of a stretch, and bound drives from its left end on. Appendix C.4: each h_d is monotone in
    // between, so v . h stays within its mean at the ends and half its spread.
    void bound(int row, double elapsed, int left, int right, const float* x_left, float* x_right, float* x) {
        const float own = static_cast<float>(elapsed * w_.per_time);
        hidden_at(cells(row), Dp_, 1, &own, hidden(right), cell(right));
        const float *a = hidden(left), *b = hidden(right);
        for (int d = 0; d < Dp_; d += W) store(apart_.data() + d, magnitude(load(b + d) - load(a + d)));
        w_.readout.apply(b, apart_.data(), x_right, x);
        for (int k = 0; k < Kp; k += W)
            store(x + k, (load(x_left + k) + load(x_right + k) + load(x + k)) * 0.5f + load(w_.slack.data() + k));
    }

    // The mean rate of a row's cells.
    double pace(int row) const { return w_.per_time * total(cells(row) + 2 * Dp_, Dp_) / Dp_; }

    // P h of n rows at m times each, [n][m][units]: one matrix product.
    void sums(int n, const int* rows, int m, const double* elapsed, float* x) {
        points_.reserve(size_t(n) * m * Dp_);
        inputs_.resize(n * m);
        for (int i = 0; i < n; i++) hidden_at_all(rows[i], m, elapsed + i * m, points_.data() + size_t(i) * m * Dp_);
        for (int i = 0; i < n * m; i++) inputs_[i] = points_.data() + size_t(i) * Dp_;
        w_.past.apply(n * m, inputs_.data(), x);
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
    const float* cells(int row) const { return cells_.data() + size_t(row) * 4 * Dp_; }

    void hidden_at_all(int row, int n, const double* elapsed, float* to) {
        own_.resize(n);
        for (int j = 0; j < n; j++) own_[j] = static_cast<float>(elapsed[j] * w_.per_time);
        hidden_at(cells(row), Dp_, n, own_.data(), to);
    }

    float* hidden(int slot) { return edges_.data() + 2 * slot * Dp_; }
    float* cell(int slot) { return edges_.data() + (2 * slot + 1) * Dp_; }
};

// lambda_k(t) = base_k + excited_k exp(-decay_k elapsed): a Hawkes process, or a Poisson process where nothing excites.
struct HawkesWeights {
    std::vector<double> base, decay, jumps;  // [K], [K], [K, K] from the exciting type to the excited one
    Product past;                            // P, which may have no units
};

class Excited {
public:
    using Real = double;
    using Weights = HawkesWeights;
    const int K, Kp;

    explicit Excited(const HawkesWeights& weights) : K(static_cast<int>(weights.base.size())), Kp(K), w_(weights) {
        for (double decay : w_.decay) pace_ += 0.5 * decay / K;
    }

    void begin(int rows) { excited_.assign(size_t(rows) * K, 0.0); }

    void drives(int row, int n, const double* elapsed, double* x) {
        const double* own = excited_.data() + size_t(row) * K;
        for (int j = 0; j < n; j++, x += K)
            for (int k = 0; k < K; k++) {
                const double rate = w_.base[k] + own[k] * std::exp(-w_.decay[k] * elapsed[j]);
                x[k] = rate + std::log(-std::expm1(-rate));
            }
    }

    void look(int row, double elapsed, int, double* x) { drives(row, 1, &elapsed, x); }

    // Intensities only fall until the next event.
    void bound(int row, double elapsed, int, int, const double* x_left, double* x_right, double* x) {
        drives(row, 1, &elapsed, x_right);
        std::memcpy(x, x_left, 8 * K);
    }

    // Half the mean rate: drives are about logs of intensities, which take longer to come to rest.
    double pace(int) const { return pace_; }

    // Of what is known of the past (models/base.py, features).
    void sums(int n, const int* rows, int m, const double* elapsed, float* x) {
        drives_.resize(size_t(n) * m * K), features_.resize(drives_.size()), inputs_.resize(n * m);
        for (int i = 0; i < n; i++) drives(rows[i], m, elapsed + i * m, drives_.data() + size_t(i) * m * K);
        for (size_t i = 0; i < drives_.size(); i++) features_[i] = static_cast<float>(std::max(drives_[i], -30.0));
        for (int i = 0; i < n * m; i++) inputs_[i] = features_.data() + size_t(i) * K;
        w_.past.apply(n * m, inputs_.data(), x);
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
    double pace_ = 0;
    std::vector<double> excited_, drives_;  // by row and type
    std::vector<float> features_;
    std::vector<const float*> inputs_;
};

}  // namespace retrodict
