// A state space of one layer (models/state_space.py): memories that fade at R speeds, and units that sum them up.
//
// A row's memories are R stretches of Up floats, where Up is U padded to whole vectors. Padding never reaches a result:
// its columns of every weight are zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "lstm.hpp"
#include "scaled_softplus.hpp"

namespace retrodict {

struct StateSpaceWeights {
    ScaledSoftplus rates;
    Readout readout;                    // V
    Readout signs;                      // V above zero and then V below zero, [K, 2 Up]
    Product past;                       // P, which may have no units
    int U, Up, R, Rp;                   // units; padded; speeds; padded
    Buffer<float> decay, bias, offset;  // [Rp], by the model's clock; [Up]; a [Kp]
    Buffer<float> gates, jumps;         // by input: [R][Up], the last input is the boundary event
    Buffer<float> slack, weight;        // for rounding [Kp]; sum_k |v_ku|, [Up]
    double pace = 0;                    // about how fast units move, by the user's clock

    // decays [R], biases [U], gate [inputs, R U] after the sigmoid, jump [inputs, R U], offsets [K].
    StateSpaceWeights(ScaledSoftplus softplus, Readout out, Product units, const float* decays, int speeds,
                      const float* biases, int size, const float* gate, const float* jump, const float* offsets)
        : rates(std::move(softplus)), readout(std::move(out)), signs(by_sign(readout, padded(size))),
          past(std::move(units)), U(size), Up(padded(size)), R(speeds), Rp(padded(speeds)), decay(Rp), bias(Up),
          offset(readout.Kp), gates(table(readout.K)), jumps(table(readout.K)), slack(readout.Kp),
          weight(Up) {
        int moving = 0;
        for (int r = 0; r < Rp; r++) decay[r] = r < R ? decays[r] : 0.0f;
        for (int r = 0; r < R; r++)
            if (decays[r] > 0) pace += std::log(decays[r]), moving++;
        pace = moving ? std::exp(pace / moving) * rates.per_time : 0.0;
        for (int u = 0; u < Up; u++) bias[u] = u < U ? biases[u] : 0.0f, weight[u] = readout.weight(u);
        for (int input = 0; input <= readout.K; input++)
            for (int r = 0; r < R; r++)
                for (int u = 0; u < Up; u++) {
                    const size_t to = (size_t(input) * R + r) * Up + u, from = (size_t(input) * R + r) * U + u;
                    gates[to] = u < U ? gate[from] : 0.0f, jumps[to] = u < U ? jump[from] : 0.0f;
                }
        for (int k = 0; k < readout.Kp; k++) {
            offset[k] = k < readout.K ? offsets[k] : 0.0f;
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + readout.size(k) + std::abs(offset[k]));
        }
    }

private:
    size_t table(int types) const { return size_t(types + 1) * R * Up; }

    static Readout by_sign(const Readout& both, int Up) {
        std::vector<float> parts(size_t(both.K) * 2 * Up);
        for (int k = 0; k < both.K; k++)
            for (int u = 0; u < Up; u++) {
                const float v = both.at(k, u);
                parts[(size_t(k) * 2) * Up + u] = std::max(v, 0.0f), parts[(size_t(k) * 2 + 1) * Up + u] = std::min(v, 0.0f);
            }
        return Readout(parts.data(), both.K, 2 * Up);
    }
};

class Remembering {
public:
    using Real = float;
    using Weights = StateSpaceWeights;
    static constexpr bool kExact = false;
    static constexpr bool kEnds = false;
    static constexpr bool kFeatures = false;
    const int K, Kp;

    Remembering(const StateSpaceWeights& weights, bool)
        : K(weights.readout.K), Kp(weights.readout.Kp), w_(weights), Up_(weights.Up), R_(weights.R),
          size_(size_t(R_) * Up_), left_(weights.Rp), later_(weights.Rp), ends_(2 * Up_) {}

    // Rows that have read the boundary event, and nothing else.
    void begin(int rows) {
        memories_.reserve(rows * size_);
        for (int r = 0; r < rows; r++) std::memcpy(memory(r), w_.jumps.data() + K * size_, 4 * size_);
    }

    // A row's memories as numbers, without their padding: [R, U].
    int width() const { return width(w_); }
    static int width(const StateSpaceWeights& weights) { return weights.R * weights.U; }
    void save(int row, double* to) const {
        const float* own = memories_.data() + row * size_;
        for (int r = 0; r < R_; r++) std::copy_n(own + r * Up_, w_.U, to + r * w_.U);
    }
    void load_row(int row, const double* from) {
        std::fill_n(memory(row), size_, 0.0f);
        for (int r = 0; r < R_; r++)
            for (int u = 0; u < w_.U; u++) memory(row)[r * Up_ + u] = static_cast<float>(from[r * w_.U + u]);
    }

    // [n][Kp].
    void drives(int row, int n, const double* elapsed, float* x) {
        units_.reserve(size_t(n) * Up_);
        units_at(row, n, elapsed, units_.data());
        project(n, units_.data(), x);
    }

    void look(int row, double elapsed, int, float* x) { drives(row, 1, &elapsed, x); }

    // Bound drives over a stretch: each memory moves one way, towards zero, so that units' sums stay within their mean at
    // the ends and half of what their memories move by.
    void bound(int row, double from, double to, float* x) {
        fade(from, left_.data()), fade(to, later_.data());
        for (int r = 0; r < w_.Rp; r += W) {
            const vec first = load(left_.data() + r), last = load(later_.data() + r);
            store(left_.data() + r, (first + last) * 0.5f);
            store(later_.data() + r, (first - last) * 0.5f + first * (64 * std::numeric_limits<float>::epsilon()));
        }
        const float *mean = left_.data(), *apart = later_.data(), *own = memory(row);
        for (int u = 0; u < Up_; u += W) {
            vec middle = load(w_.bias.data() + u);
            vec reach = (magnitude(middle) + 1.0f) * (64 * std::numeric_limits<float>::epsilon());
#pragma GCC unroll 4
            for (int r = 0; r < R_; r++) {
                const vec x_r = load(own + r * Up_ + u);
                middle += x_r * mean[r], reach += magnitude(x_r) * apart[r];
            }
            store(ends_.data() + u, tanh(middle + reach)), store(ends_.data() + Up_ + u, tanh(middle - reach));
        }
        w_.signs.apply(1, ends_.data(), x);
        for (int k = 0; k < Kp; k += W)
            store(x + k, load(x + k) + load(w_.offset.data() + k) + load(w_.slack.data() + k));
    }

    // What memories that fade still add (models/state_space.py, speeds).
    int panels(int row, double length, const Panels& rule) const {
        return rule.count(length, [&](double rate) {
            const float* own = memories_.data() + row * size_;
            double beyond = 0;
            for (int r = 0; r < R_; r++, own += Up_) {
                if (!(w_.decay[r] * w_.rates.per_time > rate)) continue;
                vec moved = {};
                for (int u = 0; u < Up_; u += W)
                    moved += smaller(magnitude(load(own + u)), vec{} + 2.0f) * load(w_.weight.data() + u);
                beyond += sum(moved) / w_.decay[r];
            }
            return beyond;
        });
    }

    // The product of units just after a row's last event with weights [U].
    double after(int row, const std::vector<double>& weights) {
        const double now = 0;
        units_.reserve(Up_);
        units_at(row, 1, &now, units_.data());
        double sum = 0;
        for (int u = 0; u < w_.U; u++) sum += weights[u] * units_[u];
        return sum;
    }

    double pace(int) const { return w_.pace; }

    // P h of n rows at m times each, [n][m][units]: one matrix product.
    void sums(int n, const int* rows, int m, const double* elapsed, float* x) {
        units_.reserve(size_t(n) * m * Up_);
        inputs_.resize(n * m);
        for (int i = 0; i < n; i++) units_at(rows[i], m, elapsed + i * m, units_.data() + size_t(i) * m * Up_);
        for (int i = 0; i < n * m; i++) inputs_[i] = units_.data() + size_t(i) * Up_;
        w_.past.apply(n * m, inputs_.data(), x);
    }

    void keep(int, int) {}

    void read(int n, const int* rows, const int* types, const double* elapsed) {
        for (int j = 0; j < n; j++) {
            float* own = memory(rows[j]);
            const float *gates = w_.gates.data() + types[j] * size_, *jumps = w_.jumps.data() + types[j] * size_;
            fade(elapsed[j], left_.data());
            for (int r = 0; r < R_; r++) {
                const float left = left_[r];
                for (int u = r * Up_; u < (r + 1) * Up_; u += W)
                    store(own + u, load(gates + u) * (load(own + u) * left) + load(jumps + u));
            }
        }
    }

    void copy(int to, int from) { std::memcpy(memory(to), memory(from), 4 * size_); }

    void activate(const float* x, float* rates) const { w_.rates.activate(x, rates); }
    void sum_up(int n, const float* x, const float* weights, float* sums) const { w_.rates.sum_up(n, x, weights, sums); }
    float weigh(int n, const float* x, const float* weights) const { return w_.rates.weigh(n, x, weights); }

    double log_rate(int k, float x) const { return w_.rates.log_rate(k, x); }

private:
    const StateSpaceWeights& w_;
    const int Up_, R_;
    const size_t size_;  // floats of a row
    Buffer<float> memories_, units_, fades_;
    Buffer<float> left_, later_;  // what is left of memories [Rp]
    Buffer<float> ends_;          // the most and the least of each unit [2 Up]
    std::vector<const float*> inputs_;

    float* memory(int row) { return memories_.data() + row * size_; }

    void fade(double elapsed, float* left) const {
        const float own = static_cast<float>(elapsed * w_.rates.per_time);
        for (int r = 0; r < w_.Rp; r += W) store(left + r, exp(load(w_.decay.data() + r) * -own));
    }

    // h [n][Up]: several sums side by side, so that none waits for itself.
    void units_at(int row, int n, const double* elapsed, float* h) {
        fades_.reserve(size_t(n) * w_.Rp);
        for (int j = 0; j < n; j++) fade(elapsed[j], fades_.data() + j * w_.Rp);
        int j = 0;
        for (; j + 4 <= n; j += 4) each_vector<4, 2>(row, fades_.data() + j * w_.Rp, h + size_t(j) * Up_);
        for (; j < n; j++) each_vector<1, 4>(row, fades_.data() + j * w_.Rp, h + size_t(j) * Up_);
    }

    // N points, V vectors of units at a time.
    template <int N, int V>
    void each_vector(int row, const float* left, float* h) {
        int u = 0;
        for (; u + V * W <= Up_; u += V * W) block<N, V>(row, u, left, h);
        for (; u < Up_; u += W) block<N, 1>(row, u, left, h);
    }

    template <int N, int V>
    void block(int row, int u, const float* left, float* h) {
        const float* own = memory(row) + u;
        vec sums[N][V];
        for (int j = 0; j < N; j++)
            for (int v = 0; v < V; v++) sums[j][v] = load(w_.bias.data() + u + v * W);
        for (int r = 0; r < R_; r++, own += Up_) {
            vec x_r[V];
            for (int v = 0; v < V; v++) x_r[v] = load(own + v * W);
#pragma GCC unroll 4
            for (int j = 0; j < N; j++)
#pragma GCC unroll 4
                for (int v = 0; v < V; v++) sums[j][v] += x_r[v] * left[j * w_.Rp + r];
        }
        for (int j = 0; j < N; j++)
            for (int v = 0; v < V; v++) store(h + size_t(j) * Up_ + u + v * W, tanh(sums[j][v]));
    }

    void project(int n, const float* h, float* x) const {
        w_.readout.apply(n, h, x);
        for (int j = 0; j < n; j++)
            for (int k = 0; k < Kp; k += W) store(x + j * Kp + k, load(x + j * Kp + k) + load(w_.offset.data() + k));
    }
};

}  // namespace retrodict
