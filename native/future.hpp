// What a smoothing proposal knows of the future: hbar(t), from a right-to-left LSTM (proposals/smoothing.py).
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "mixing.hpp"

namespace retrodict {

struct FutureWeights {
    Lstm lstm;
    Readout readout, start;  // [K, D'] between events, and Q below it; [K+1, D'] at the start instant
    double per_time;
    std::optional<Mixing> mixing;
    Buffer<float> weight;  // the most that all drives together change with each hbar_d, [Dp]
};

// The right-to-left LSTM's cells for every segment of a group of streams.
class Future {
public:
    Future(const FutureWeights& weights, int streams) : w_(weights), cells_(streams) {}

    // A stream with n observed events at edges[0..n-1] that ends at edges[n].
    struct Seen {
        int n;
        const double* edges;
        const int* types;
        const float* shares;  // [n + 1, 7D'], what its inputs add to the gates; null where their types say that
    };

    // EOS at T first, then the observed events from the last to the first; all streams go together.
    void read(const std::vector<Seen>& streams) {
        const int Dp = w_.lstm.Dp, boundary = w_.readout.K;
        Buffer<float> shares(streams.size() * 7 * Dp);
        auto input = [&](size_t s, int number, int type) -> const float* {
            if (!streams[s].shares) return w_.lstm.input(type);
            w_.lstm.pad(streams[s].shares + size_t(number) * 7 * w_.lstm.D, shares.data() + s * 7 * Dp);
            return shares.data() + s * 7 * Dp;
        };
        int longest = 0;
        for (size_t s = 0; s < streams.size(); s++) {
            cells_[s].reserve(size_t(streams[s].n + 1) * 4 * Dp);
            w_.lstm.begin(input(s, streams[s].n, boundary), segment(static_cast<int>(s), streams[s].n));
            longest = std::max(longest, streams[s].n);
        }
        Buffer<float> hidden(streams.size() * Dp), cell(streams.size() * Dp), gates;
        std::vector<const float*> h, c, inputs;
        std::vector<float*> to;
        for (int back = 1; back <= longest; back++) {
            h.clear(), c.clear(), to.clear(), inputs.clear();
            for (size_t s = 0; s < streams.size(); s++) {
                const Seen& seen = streams[s];
                int i = seen.n - back;
                if (i < 0) continue;
                const float* after = segment(static_cast<int>(s), i + 1);
                float* own = segment(static_cast<int>(s), i);
                float elapsed = static_cast<float>((seen.edges[i + 1] - seen.edges[i]) * w_.per_time);
                hidden_at(after, Dp, 1, &elapsed, hidden.data() + s * Dp, cell.data() + s * Dp);
                std::copy_n(after + Dp, Dp, own + Dp);
                h.push_back(hidden.data() + s * Dp), c.push_back(cell.data() + s * Dp);
                to.push_back(own), inputs.push_back(input(s, i, seen.types[i]));
            }
            auto given = [&](int row) { return inputs[row]; };
            w_.lstm.read(static_cast<int>(to.size()), h.data(), c.data(), given, to.data(), gates);
        }
    }

    // What it adds to the log probabilities [K+1] of the outcomes at the start instant, elapsed before the first edge.
    void tilt_start(int stream, double elapsed, double* logs) {
        const float own = static_cast<float>(elapsed * w_.per_time);
        Buffer<float> hidden(w_.lstm.Dp), tilt(w_.start.Kp);
        hidden_at(segment(stream, 0), w_.lstm.Dp, 1, &own, hidden.data());
        w_.start.apply(1, hidden.data(), tilt.data());
        for (int k = 0; k < w_.start.K; k++) logs[k] += tilt[k];
    }

    float* segment(int stream, int number) { return cells_[stream].data() + size_t(number) * 4 * w_.lstm.Dp; }

    const FutureWeights& weights() const { return w_; }

private:
    const FutureWeights& w_;
    std::vector<Buffer<float>> cells_;
};

}  // namespace retrodict
