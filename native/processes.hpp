// The models an engine can run, behind one interface: drives of rows at times, bounds, reading events.
//
// A drive x_k is what goes into lambda_k = activate(x)_k (models/base.py). ``look`` evaluates one time and remembers in
// a slot what reading an event there needs; ``keep`` makes that the row's own, and ``read`` uses it. Where a proposal
// mixes past and future (mixing.hpp), ``sums`` gives the units' sums P h, and ``pace`` says how fast they move. Where
// drives are all that is known of the past (``kFeatures``), ``sums_of`` and ``bound_sums`` take P h from them.
// A process with ``kEnds`` bounds drives over a stretch from what they are at its ends, which slots then describe.
// ``panels`` says into how many parts the nodes of an integral are divided; a process with ``kExact`` has the ``area``
// under weighted intensities in closed form.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "doubles.hpp"
#include "lstm.hpp"
#include "scaled_softplus.hpp"

namespace retrodict {

enum Slot { kOneEnd = 0, kOtherEnd = 1, kCandidate = 2, kSlots = 3 };

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

// The sum of x_k y_k for n numbers.
template <class Real>
Real dot(const Real* x, const Real* y, int n) {
    typename Lanes<Real>::Type sums = {};
    for (int k = 0; k < n; k += Lanes<Real>::width) sums += load(x + k) * load(y + k);
    return sum(sums);
}

// The same for doubles, in four sums at once.
template <>
inline double total(const double* x, int n) {
    double sums[4] = {};
    int k = 0;
    for (; k + 4 <= n; k += 4)
        for (int j = 0; j < 4; j++) sums[j] += x[k + j];
    for (; k < n; k++) sums[0] += x[k];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <>
inline double scale(double* x, const double* y, int n) {
    for (int k = 0; k < n; k++) x[k] *= y[k];
    return total(x, n);
}

// A neural Hawkes process: lambda_k(t) = f_k(v_k . h(t)), equation (2).
struct NeuralWeights {
    Lstm lstm;
    Readout readout;      // V
    Product past;         // P, which may have no units
    ScaledSoftplus rates;
    Buffer<float> slack;   // for rounding [Kp]
    Buffer<float> weight;  // sum_k |v_kd|, [Dp]
    double per_time;      // the model's units of time in one of the user's

    NeuralWeights(Lstm read, Readout out, Product units, const float* scale, double time_scale)
        : lstm(std::move(read)), readout(std::move(out)), past(std::move(units)), rates(scale, readout.K, time_scale),
          slack(readout.Kp), weight(lstm.Dp), per_time(rates.per_time) {
        for (int d = 0; d < lstm.Dp; d++) weight[d] = readout.weight(d);
        for (int k = 0; k < readout.Kp; k++)
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + readout.size(k));
    }
};

class Neural {
public:
    using Real = float;
    using Weights = NeuralWeights;
    static constexpr bool kExact = false;
    static constexpr bool kEnds = true;
    static constexpr bool kFeatures = false;
    const int K, Kp;

    Neural(const NeuralWeights& weights, bool)
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

    // A row's cells as numbers, without their padding: [4 D].
    int width() const { return width(w_); }
    static int width(const NeuralWeights& weights) { return 4 * weights.lstm.D; }
    void save(int row, double* to) const { each(row, [&](int i, float cell) { to[i] = cell; }); }
    void load_row(int row, const double* from) {
        float* own = cells(row);
        each(row, [&](int i, const float& cell) { own[&cell - own] = static_cast<float>(from[i]); });
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

    // The product of features just after a row's last event with weights [D].
    double after(int row, const std::vector<double>& weights) {
        const float now = 0;
        points_.reserve(Dp_);
        hidden_at(cells(row), Dp_, 1, &now, points_.data());
        double sum = 0;
        for (int d = 0; d < w_.lstm.D; d++) sum += weights[d] * points_[d];
        return sum;
    }

    // The most that a cell's move to its target can add: softplus and tanh have slopes of at most 1.
    int panels(int row, double length, const Panels& rule) const {
        return rule.count(length, [&](double rate) { return beyond(cells(row), Dp_, w_.weight.data(), rate / w_.per_time); });
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

    void activate(const float* x, float* rates) const { w_.rates.activate(x, rates); }
    void sum_up(int n, const float* x, const float* weights, float* sums) const { w_.rates.sum_up(n, x, weights, sums); }
    float weigh(int n, const float* x, const float* weights) const { return w_.rates.weigh(n, x, weights); }

    double log_rate(int k, float x) const { return w_.rates.log_rate(k, x); }

private:
    const NeuralWeights& w_;
    int Dp_;
    Buffer<float> cells_, kept_, edges_, apart_, first_, points_, gates_;
    std::vector<float> own_;
    std::vector<const float*> inputs_, memory_;
    std::vector<float*> outputs_;

    template <class Visit>
    void each(int row, Visit visit) const {
        for (int field = 0, i = 0; field < 4; field++)
            for (int d = 0; d < w_.lstm.D; d++, i++) visit(i, cells(row)[field * Dp_ + d]);
    }

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

// lambda_k(t) = base_k + sum over r of excited_rk exp(-decay_r elapsed): a Hawkes process, or a Poisson process where
// nothing excites. Where there is one scale, types may have decays of their own.
struct HawkesWeights {
    std::vector<double> base, decay, jumps;  // [K]; [R], or [K] of a single scale; [K, R, K] from the exciting type on, or none
    Product past, sizes;                     // P, which may have no units; and what its numbers amount to, |P|

    int scales() const { return jumps.empty() ? 1 : static_cast<int>(jumps.size() / (base.size() * base.size())); }
};

class Excited {
public:
    using Real = double;
    using Weights = HawkesWeights;
    static constexpr bool kExact = true;
    static constexpr bool kEnds = true;
    static constexpr bool kFeatures = true;
    const int K, Kp;

    // Where nothing is added to drives (``alone``), they are the intensities themselves.
    Excited(const HawkesWeights& weights, bool alone)
        : K(static_cast<int>(weights.base.size())), Kp(K), w_(weights), R_(weights.scales()), size_(R_ * K),
          each_(static_cast<int>(weights.decay.size()) == R_ ? 0 : 1), alone_(alone), fade_(weights.decay.size()),
          slowing_(weights.decay), resting_(weights.base) {
        if (!alone_) each(K, resting_.data(), resting_.data(), [](dvec x) { return softplus_inverse(x); });
        for (double& decay : slowing_) decay = -decay;
    }

    void begin(int rows) { excited_.assign(size_t(rows) * size_, 0.0); }

    void drives(int row, int n, const double* elapsed, double* x) {
        for (int j = 0; j < n; j++, x += K) {
            if (w_.jumps.empty()) {
                std::memcpy(x, resting_.data(), 8 * K);
                continue;
            }
            fade(elapsed[j]);
            const double* own = excited_.data() + size_t(row) * size_;
            std::memcpy(x, w_.base.data(), 8 * K);
            for (int r = 0; r < R_; r++, own += K)
                for (int k = 0; k < K; k++) x[k] += own[k] * fade_[r + each_ * k];
        }
        if (!alone_ && !w_.jumps.empty()) each(n * K, x - n * K, x - n * K, [](dvec y) { return softplus_inverse(y); });
    }

    // A row's excitations.
    int width() const { return size_; }
    static int width(const HawkesWeights& weights) { return weights.scales() * static_cast<int>(weights.base.size()); }
    void save(int row, double* to) const { std::copy_n(excited_.data() + size_t(row) * size_, size_, to); }
    void load_row(int row, const double* from) { std::copy_n(from, size_, excited_.data() + size_t(row) * size_); }

    void look(int row, double elapsed, int, double* x) { drives(row, 1, &elapsed, x); }

    // Intensities only fall until the next event.
    void bound(int row, double elapsed, int, int, const double* x_left, double* x_right, double* x) {
        drives(row, 1, &elapsed, x_right);
        std::memcpy(x, x_left, 8 * K);
    }

    // The product of features just after a row's last event (models/base.py, features) with weights [K].
    double after(int row, const std::vector<double>& weights) {
        const double now = 0;
        drives_.resize(K);
        drives(row, 1, &now, drives_.data());
        double sum = 0;
        for (int k = 0; k < K; k++) {
            const double x = drives_[k];
            sum += weights[k] * std::max(alone_ ? x + std::log(-std::expm1(-x)) : x, -30.0);
        }
        return sum;
    }

    // What each scale still causes.
    int panels(int row, double length, const Panels& rule) const {
        return rule.count(length, [&](double rate) {
            const double* own = excited_.data() + size_t(row) * size_;
            double beyond = 0;
            for (int r = 0; r < R_; r++, own += K)
                for (int k = 0; k < K; k++) {
                    const double decay = w_.decay[r + each_ * k];
                    if (decay > rate) beyond += own[k] / decay;
                }
            return beyond;
        });
    }

    // The integral of sum_k weights_k lambda_k between two times since the last event.
    double area(int row, double from, double to, const double* weights) {
        const double length = to - from, *own = excited_.data() + size_t(row) * size_;
        double area = 0;
        for (int k = 0; k < K; k++) area += weights[k] * w_.base[k] * length;
        if (w_.jumps.empty()) return area;
        fade(from);
        for (size_t i = 0; i < fade_.size(); i++) fade_[i] *= -std::expm1(-w_.decay[i] * length) / w_.decay[i];
        for (int r = 0; r < R_; r++, own += K)
            for (int k = 0; k < K; k++) area += weights[k] * own[k] * fade_[r + each_ * k];
        return area;
    }

    // P h of what is known of the past (models/base.py, features) at n points, from their drives [n][K].
    void sums_of(int n, const double* drives, float* x) {
        features_.resize(size_t(n) * K), inputs_.resize(n);
        for (int i = 0; i < n * K; i++) features_[i] = static_cast<float>(std::max(drives[i], -30.0));
        for (int j = 0; j < n; j++) inputs_[j] = features_.data() + size_t(j) * K;
        w_.past.apply(n, inputs_.data(), x);
    }

    // Bounds of it between two times, from the drives at both: each drive moves one way, so that sums stay within half
    // of what they can move by of their mean; slack covers rounding.
    void bound_sums(const double* first, const double* last, float* low, float* high) {
        const int units = w_.past.width;
        features_.resize(3 * size_t(K)), bounds_.reserve(3 * size_t(units)), inputs_.resize(3);
        for (int k = 0; k < K; k++) {
            const double a = std::max(first[k], -30.0), b = std::max(last[k], -30.0);
            features_[k] = static_cast<float>((a + b) / 2), features_[K + k] = static_cast<float>(std::abs(a - b) / 2);
            features_[2 * K + k] = std::abs(features_[k]) + features_[K + k];
        }
        for (int j = 0; j < 3; j++) inputs_[j] = features_.data() + size_t(j) * K;
        const float *mean = bounds_.data(), *apart = mean + units, *size = apart + units;
        w_.past.apply(1, inputs_.data(), bounds_.data());
        w_.sizes.apply(2, inputs_.data() + 1, bounds_.data() + units);
        const float slack = (8 + K) * std::numeric_limits<float>::epsilon();
        for (int u = 0; u < units; u++) {
            const float reach = apart[u] + (1 + size[u]) * slack;
            low[u] = mean[u] - reach, high[u] = mean[u] + reach;
        }
    }

    void keep(int, int) {}

    void read(int n, const int* rows, const int* types, const double* elapsed) {
        for (int j = 0; j < n; j++) {
            if (w_.jumps.empty()) continue;
            fade(elapsed[j]);
            double* own = excited_.data() + size_t(rows[j]) * size_;
            const double* jumps = w_.jumps.data() + size_t(types[j]) * size_;
            for (int r = 0; r < R_; r++, own += K, jumps += K)
                for (int k = 0; k < K; k++) own[k] = own[k] * fade_[r + each_ * k] + jumps[k];
        }
    }

    void copy(int to, int from) {
        std::memcpy(excited_.data() + size_t(to) * size_, excited_.data() + size_t(from) * size_, 8 * size_);
    }

    void activate(const double* x, double* rates) const {
        if (alone_) return void(std::copy_n(x, K, rates));
        each(K, x, rates, [](dvec y) { return softplus(y); });
    }

    double weigh(int n, const double* x, const double* weights) {
        const double* rates = rates_of(n, x);
        double sum = 0;
        for (int i = 0; i < n * K; i++) sum += weights[i] * rates[i];
        return sum;
    }

    void sum_up(int n, const double* x, const double* weights, double* sums) {
        const double* rates = rates_of(n, x);
        std::fill_n(sums, K, 0.0);
        for (int j = 0; j < n; j++, rates += K)
            for (int k = 0; k < K; k++) sums[k] += weights[j] * rates[k];
    }

    double log_rate(int, double x) const { return alone_ ? std::log(x) : log_softplus(x); }

private:
    const HawkesWeights& w_;
    const int R_, size_, each_;  // scales; numbers a row; 1 where types have decays of their own
    const bool alone_;
    std::vector<double> fade_, slowing_;            // by decay: what is left, and the decay below zero
    std::vector<double> resting_;                   // drives of what nothing excites
    std::vector<double> excited_, drives_, rates_;  // by row, scale and type; by row and type; by point and type
    std::vector<float> features_;
    Buffer<float> bounds_;
    std::vector<const float*> inputs_;

    void fade(double elapsed) {
        each(static_cast<int>(fade_.size()), slowing_.data(), fade_.data(), [=](dvec x) { return exp(x * elapsed); });
    }

    // Rates at n points [n][K].
    const double* rates_of(int n, const double* x) {
        if (alone_) return x;
        rates_.resize(size_t(n) * K);
        each(n * K, x, rates_.data(), [](dvec y) { return softplus(y); });
        return rates_.data();
    }
};

}  // namespace retrodict
