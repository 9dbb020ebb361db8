// The continuous-time LSTM (models/ctlstm.py): reading events, and hidden states between them.
//
// A row's cells are four stretches of Dp floats: start, target, decay, output, where Dp is D padded to whole vectors.
// Padding never reaches a result: its columns of every weight are zero.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "product.hpp"

namespace retrodict {

class Lstm {
public:
    int D, Dp;

    // by_type [inputs, 7D], by_hidden [D, 7D], bias [7D], as torch keeps them.
    Lstm(const float* by_type, const float* by_hidden, const float* bias, int inputs, int hidden_size)
        : D(hidden_size), Dp(padded(hidden_size)),
          by_hidden_(D, 7 * Dp, [&](int d, int column) { return entry(by_hidden, d, column); }),
          inputs_(size_t(inputs) * 7 * Dp) {
        for (int input = 0; input < inputs; input++)
            for (int column = 0; column < 7 * Dp; column++)
                inputs_[size_t(input) * 7 * Dp + column] = entry(by_type, input, column) + entry(bias, 0, column);
    }

    // What an input adds to the gates, [7 Dp].
    const float* input(int type) const { return inputs_.data() + size_t(type) * 7 * Dp; }

    // The same where it is given, [7D].
    void pad(const float* share, float* own) const {
        for (int column = 0; column < 7 * Dp; column++) own[column] = entry(share, 0, column);
    }

    // n rows read an event each: hidden and cell [Dp] are h and c just before it, input(row) what the event adds to the
    // gates, cells the row's state. One matrix product for the gates, then each row's own arithmetic.
    template <class Input>
    void read(int n, const float* const* hidden, const float* const* cell, Input input, float* const* cells,
              Buffer<float>& gates) const {
        const size_t stride = by_hidden_.width;
        gates.reserve(std::min(n, kChunk) * stride);
        // So many rows at a time that their hidden states and gates stay in the cache.
        for (int first = 0; first < n; first += kChunk) {
            const int count = std::min(kChunk, n - first);
            by_hidden_.apply(count, hidden + first, gates.data());
            for (int row = 0; row < count; row++)
                update(gates.data() + row * stride, input(first + row), cell[first + row], cells[first + row]);
        }
    }

    // The state after an event that is read from nothing: the boundary event.
    void begin(const float* boundary, float* cells) const {
        Buffer<float> nothing(7 * Dp);
        std::fill_n(nothing.data(), 7 * Dp, 0.0f);
        std::fill_n(cells, 4 * Dp, 0.0f);
        update(nothing.data(), boundary, nothing.data(), cells);
    }

private:
    static constexpr int kChunk = 4 * Product::kRows;

    Product by_hidden_;
    Buffer<float> inputs_;  // [input][7 Dp], with the bias

    // Column of gate g, cell d (g Dp + d) of a matrix [rows, 7D]; zero in the padding.
    float entry(const float* matrix, int row, int column) const {
        const int gate = column / Dp, d = column % Dp;
        return gate < 7 && d < D ? matrix[size_t(row) * 7 * D + gate * D + d] : 0.0f;
    }

    // The seven gates (appendix B.1), in the order i, f, o, i_bar, f_bar, z, delta.
    void update(const float* gates, const float* own, const float* cell, float* cells) const {
        for (int d = 0; d < Dp; d += W) {
            auto gate = [&](int g) { return load(gates + g * Dp + d) + load(own + g * Dp + d); };
            const vec i = sigmoid(gate(0)), f = sigmoid(gate(1)), i_bar = sigmoid(gate(3)), f_bar = sigmoid(gate(4));
            const vec z = tanh(gate(5) * 0.5f);
            store(cells + d, f * load(cell + d) + i * z);
            store(cells + Dp + d, f_bar * load(cells + Dp + d) + i_bar * z);
            store(cells + 2 * Dp + d, softplus(gate(6)));
            store(cells + 3 * Dp + d, sigmoid(gate(2)));
        }
    }
};

// h at n elapsed times, [n][Dp]; and, where wanted, c.
inline void hidden_at(const float* cells, int Dp, int n, const float* elapsed, float* hidden, float* cell = nullptr) {
    for (int d = 0; d < Dp; d += W) {
        vec start = load(cells + d), target = load(cells + Dp + d), decay = load(cells + 2 * Dp + d);
        vec output = load(cells + 3 * Dp + d), span = start - target;
        for (int j = 0; j < n; j++) {
            vec c = target + span * exp(decay * -elapsed[j]);
            store(hidden + j * Dp + d, output * tanh(c));
            if (cell) store(cell + j * Dp + d, c);
        }
    }
}

// How many events, at most, the cells add that move to their targets faster than a rate; weight [Dp] is what the moves
// of each h_d count for.
inline double beyond(const float* cells, int Dp, const float* weight, double rate) {
    const vec least = vec{} + static_cast<float>(std::min(rate, 1e30));
    vec sums = {};
    for (int d = 0; d < Dp; d += W) {
        const vec decay = load(cells + 2 * Dp + d), apart = magnitude(load(cells + d) - load(cells + Dp + d));
        const vec moved = load(cells + 3 * Dp + d) * smaller(apart, vec{} + 2.0f);
        sums += decay > least ? moved * load(weight + d) / decay : vec{};
    }
    return sum(sums);
}

// Panels after an event (models/quadrature.py): what decays faster than reach / length slips between the nodes of one
// panel, unless it is less than the error; each further one, shorter by the ratio, sees as much more.
struct Panels {
    double reach, ratio, error;

    static constexpr int kMost = 24;

    // For a time after the event, where beyond(rate) is what decays faster than a rate, in events.
    template <class Beyond>
    int count(double length, Beyond beyond) const {
        int n = 1;
        for (double limit = reach / length; n < kMost && beyond(limit) > error; limit *= ratio) n++;
        return n;
    }
};

// A matrix [K, D], kept by the vector of types so that the sums over d of all its types go on side by side; and below
// it, from the next whole vector on, a further one [units, D].
class Readout {
public:
    int K, Kp, width;  // types; padded to whole vectors; and with the units, padded too

    Readout(const float* matrix, int types, int D, const float* below = nullptr, int units = 0)
        : Readout(types, padded(types) + padded(units), padded(D)) {
        std::fill_n(columns_.data(), size_t(Dp_) * width, 0.0f);
        for (int d = 0; d < D; d++) {
            for (int k = 0; k < K; k++) columns_[place(k, d)] = matrix[size_t(k) * D + d];
            for (int u = 0; u < units; u++) columns_[place(Kp + u, d)] = below[size_t(u) * D + d];
        }
    }

    float at(int k, int d) const { return columns_[place(k, d)]; }

    // sum_d |v_kd|.
    float size(int k) const {
        float total = 0;
        for (int d = 0; d < Dp_; d++) total += std::abs(columns_[place(k, d)]);
        return total;
    }

    // sum_k |v_kd|.
    float weight(int d) const {
        float total = 0;
        for (int k = 0; k < K; k++) total += std::abs(columns_[place(k, d)]);
        return total;
    }

    // x [n][width] from hidden states [n][Dp].
    void apply(int n, const float* hidden, float* x) const {
        int j = 0;
        for (; j + 8 <= n; j += 8) block<8, 1>(hidden + j * Dp_, x + j * width);
        for (; j + 4 <= n; j += 4) block<4, 2>(hidden + j * Dp_, x + j * width);
        for (; j < n; j++) block<1, 4>(hidden + j * Dp_, x + j * width);
    }

    // x [width] from one hidden state, and in spread the products of |v| with numbers ``apart`` [Dp]; V is read once.
    void apply(const float* hidden, const float* apart, float* x, float* spread) const {
        int k = 0;
        for (; k + 2 * W <= width; k += 2 * W) both<2>(k, hidden, apart, x, spread);
        for (; k < width; k += W) both<1>(k, hidden, apart, x, spread);
    }

private:
    int Dp_;
    Buffer<float> columns_;  // [vector][Dp][W]

    Readout(int types, int columns, int Dp)
        : K(types), Kp(padded(types)), width(columns), Dp_(Dp), columns_(size_t(Dp) * columns) {}

    size_t place(int k, int d) const { return (size_t(k / W) * Dp_ + d) * W + k % W; }

    // V vectors of rows, each sum split in two.
    template <int V>
    void both(int k, const float* hidden, const float* apart, float* x, float* spread) const {
        const float* own = columns_.data() + size_t(k) * Dp_;
        vec sums[V][2], sizes[V][2];
        for (int i = 0; i < V; i++) sums[i][0] = sums[i][1] = sizes[i][0] = sizes[i][1] = vec{};
        for (int d = 0; d < Dp_; d += 2)
#pragma GCC unroll 2
            for (int s = 0; s < 2; s++)
#pragma GCC unroll 2
                for (int i = 0; i < V; i++) {
                    const vec v = load(own + (size_t(i) * Dp_ + d + s) * W);
                    sums[i][s] += hidden[d + s] * v, sizes[i][s] += apart[d + s] * magnitude(v);
                }
        for (int i = 0; i < V; i++) {
            store(x + k + i * W, sums[i][0] + sums[i][1]);
            store(spread + k + i * W, sizes[i][0] + sizes[i][1]);
        }
    }

    // N points, each sum split in S so that additions need not wait for one another.
    template <int N, int S>
    void block(const float* hidden, float* x) const {
        const float* own = columns_.data();
        for (int k = 0; k < width; k += W, own += size_t(Dp_) * W) {
            vec sums[N][S];
            for (int j = 0; j < N; j++)
                for (int s = 0; s < S; s++) sums[j][s] = vec{};
            for (int d = 0; d < Dp_; d += S) {
#pragma GCC unroll 4
                for (int s = 0; s < S; s++) {
                    vec v = load(own + (d + s) * W);
#pragma GCC unroll 8
                    for (int j = 0; j < N; j++) sums[j][s] += hidden[j * Dp_ + d + s] * v;
                }
            }
            for (int j = 0; j < N; j++) {
                vec total = sums[j][0];
                for (int s = 1; s < S; s++) total += sums[j][s];
                store(x + j * width + k, total);
            }
        }
    }
};

}  // namespace retrodict
