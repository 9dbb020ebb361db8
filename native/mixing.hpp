// What a smoothing proposal adds where past and future interact: w_k . tanh(P h + Q hbar + b) (proposals/mixing.py).
//
// The units' sums P h and Q hbar + b are columns of the readouts of both LSTMs, after those of the types.
#pragma once

#include <limits>
#include <utility>

#include "lstm.hpp"

namespace retrodict {

struct Mixing {
    int units, padded_units;
    Readout readout, spread;    // w [K, units], and |w|
    Buffer<float> bias, slack;  // b [padded_units]; for rounding [Kp]

    Mixing(Readout out, const float* offsets, int count)
        : units(count), padded_units(padded(count)), readout(std::move(out)), spread(readout.absolute()),
          bias(padded(count)), slack(readout.Kp) {
        for (int u = 0; u < padded_units; u++) bias[u] = u < units ? offsets[u] : 0.0f;
        for (int k = 0; k < readout.Kp; k++)
            slack[k] = 32 * std::numeric_limits<float>::epsilon() * (1 + spread.row_sum(k));
    }

    // x_k += w_k . tanh(sums); sums [padded_units] are bent in place, and scratch is [Kp].
    void add(float* x, float* sums, float* scratch) const {
        for (int u = 0; u < padded_units; u += W) store(sums + u, tanh(load(sums + u)));
        readout.apply(1, sums, scratch);
        for (int k = 0; k < readout.Kp; k += W) store(x + k, load(x + k) + load(scratch + k));
    }

    // x_k += a bound of it for sums between low and high: tanh is increasing, so each unit stays within half its spread
    // of its mean at the ends. Both are overwritten.
    void add_bound(float* x, float* low, float* high, float* scratch) const {
        for (int u = 0; u < padded_units; u += W) {
            const vec least = tanh(load(low + u)), most = tanh(load(high + u));
            store(low + u, (most + least) * 0.5f), store(high + u, (most - least) * 0.5f);
        }
        for (const auto& [matrix, ends] : {std::pair{&readout, low}, std::pair{&spread, high}}) {
            matrix->apply(1, ends, scratch);
            for (int k = 0; k < readout.Kp; k += W) store(x + k, load(x + k) + load(scratch + k));
        }
        for (int k = 0; k < readout.Kp; k += W) store(x + k, load(x + k) + load(slack.data() + k));
    }
};

}  // namespace retrodict
