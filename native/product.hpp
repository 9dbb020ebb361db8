// The product of a matrix with many rows at once, as fast as the processor multiplies.
#pragma once

#include <algorithm>

#include "buffer.hpp"
#include "vec.hpp"

namespace retrodict {

// A matrix [D, columns], kept by the panel: the part of it that a block of rows is multiplied with in registers.
class Product {
public:
    // As many accumulators, two vectors for each of kRows rows, as the registers hold.
    static constexpr int kRows = W == 16 ? 14 : 6;

    int D, width;  // and the columns, padded to whole vectors

    template <class Entry>
    Product(int depth, int columns, Entry entry)
        : D(depth), width(padded(columns)), weights_(size_t(depth) * width) {
        for (int d = 0; d < D; d++)
            for (int k = 0; k < width; k++) {
                const int first = k / kPanel * kPanel, wide = std::min(kPanel, width - first);
                weights_[size_t(first) * D + size_t(d) * wide + k - first] = k < columns ? entry(d, k) : 0.0f;
            }
    }

    // out [n][width] from n rows [D], in blocks of about equal size. A row's numbers do not depend on the others that
    // come with it.
    void apply(int n, const float* const* rows, float* out) const {
        if (!n) return;
        const int blocks = (n + kRows - 1) / kRows, each = n / blocks, larger = n % blocks;
        for (int k = 0; k < width; k += kPanel) {
            const float* const* own = rows;
            float* to = out + k;
            for (int i = 0; i < blocks; i++) {
                const int count = each + (i < larger);
                if (width - k > W) multiply<kRows, 2>(count, k, own, to);
                else multiply<kRows, 1>(count, k, own, to);
                own += count, to += size_t(count) * width;
            }
        }
    }

private:
    static constexpr int kPanel = 2 * W;

    Buffer<float> weights_;  // [panel][d][kPanel], where the last panel may be of one vector

    // A block of ``count`` rows, R at most.
    template <int R, int V>
    void multiply(int count, int k, const float* const* rows, float* out) const {
        if constexpr (R > 1)
            if (count < R) return multiply<R - 1, V>(count, k, rows, out);
        block<R, V>(k, rows, out);
    }

    template <int R, int V>
    void block(int k, const float* const* rows, float* out) const {
        vec sums[R][V];
        const float* own[R];
        for (int r = 0; r < R; r++) {
            own[r] = rows[r];
            for (int v = 0; v < V; v++) sums[r][v] = vec{};
        }
        const float* b = weights_.data() + size_t(k) * D;
        for (int d = 0; d < D; d++, b += V * W) {
            vec column[V];
            for (int v = 0; v < V; v++) column[v] = load(b + v * W);
#pragma GCC unroll 14
            for (int r = 0; r < R; r++)
#pragma GCC unroll 2
                for (int v = 0; v < V; v++) sums[r][v] += own[r][d] * column[v];
        }
        for (int r = 0; r < R; r++)
            for (int v = 0; v < V; v++) store(out + r * size_t(width) + v * W, sums[r][v]);
    }
};

}  // namespace retrodict
