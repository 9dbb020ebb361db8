// What a smoothing proposal adds where past and future interact: w_k . tanh(P h + Q hbar + b) (proposals/mixing.py).
//
// The units' sums P h and Q hbar + b are columns of the readouts of both LSTMs, after those of the types.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "lstm.hpp"

namespace retrodict {

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

    // x_k += w_k . tanh(sums) at n points [n][stride]; the sums, [padded_units], begin at ``first``.
    template <class Real>
    void add(int n, Real* x, int stride, int first, float* scratch) const {
        float *bent = scratch, *out = scratch + n * padded_units;
        for (int j = 0; j < n; j++) std::copy_n(x + j * stride + first, padded_units, bent + j * padded_units);
        for (int u = 0; u < n * padded_units; u += W) store(bent + u, tanh(load(bent + u)));
        readout.apply(n, bent, out);
        for (int j = 0; j < n; j++)
            for (int k = 0; k < readout.K; k++) x[j * stride + k] += out[j * readout.Kp + k];
    }

    // x_k += a bound of it for sums between low and high: tanh is increasing, so each unit stays within half its spread
    // of its mean at the ends.
    template <class Real>
    void add_bound(Real* x, const Real* low, const Real* high, float* scratch) const {
        float *middle = scratch, *half = middle + padded_units, *mean = half + padded_units, *apart = mean + readout.Kp;
        std::copy_n(low, padded_units, middle), std::copy_n(high, padded_units, half);
        for (int u = 0; u < padded_units; u += W) {
            const vec least = tanh(load(middle + u)), most = tanh(load(half + u));
            store(middle + u, (most + least) * 0.5f), store(half + u, (most - least) * 0.5f);
        }
        readout.apply(middle, half, mean, apart);
        for (int k = 0; k < readout.K; k++) x[k] += mean[k] + apart[k] + slack[k];
    }
};

}  // namespace retrodict
