// What a smoothing proposal knows of the future: u_k . hbar(t), from a right-to-left LSTM (proposals/smoothing.py).
//
// hbar is the same for all particles of a stream, so its drives are tabulated once for each segment and interpolated
// by cubics. That makes a slightly different proposal, and an exact one: sampling, bound, integral and weight all use
// the interpolant.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "mixing.hpp"

namespace retrodict {

struct FutureWeights {
    Lstm lstm;
    Readout readout, start;  // [K, D'] between events, and Q below it; [K+1, D'] at the start instant
    double per_time;
    std::optional<Mixing> mixing;
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

// The drives it adds within one segment, and Q hbar + b of the units that mix, each as a cubic of
// s = kCells sqrt(elapsed before the right end / length) in each of kCells cells, which are finer towards the right
// end, where hbar moves fastest.
template <class Real>
class Outlook {
public:
    static constexpr int kCells = 8;

    // For drives padded to Kp, and units to make up the width.
    void tabulate(Future& future, int stream, int number, double left, double right, int Kp, int width) {
        const FutureWeights& w = future.weights();
        const int Dp = w.lstm.Dp;
        right_ = right, length_ = std::max(right - left, 1e-300), Kp_ = Kp, width_ = width;
        control_.reserve(size_t(kCells) * 4 * width), peak_.reserve(size_t(kCells) * width);
        trough_.reserve(size_t(kCells) * (width - Kp));
        hidden_.reserve((kCells + 1) * Dp), slope_.reserve((kCells + 1) * Dp);
        const int stride = w.readout.width;
        values_.reserve((kCells + 1) * stride), slopes_.reserve((kCells + 1) * stride);
        const float* cells = future.segment(stream, number);
        for (int j = 0; j <= kCells; j++) node(cells, Dp, j, w.per_time);
        w.readout.apply(kCells + 1, hidden_.data(), values_.data());
        w.readout.apply(kCells + 1, slope_.data(), slopes_.data());
        const int shift = w.readout.Kp - Kp;  // its types are padded to whole vectors
        if (w.mixing)
            for (int j = 0; j <= kCells; j++)
                for (int u = 0; u < w.mixing->units; u++) values_[j * stride + w.readout.Kp + u] += w.mixing->bias[u];
        for (int j = 0; j < kCells; j++)
            for (int k = 0; k < width; k++) {
                const int from = j * stride + (k < Kp ? k : k + shift);
                const float *value = values_.data() + from, *slope = slopes_.data() + from;
                Real* own = control_.data() + size_t(j) * 4 * width + k;
                own[0] = value[0], own[3 * width] = value[stride];
                own[width] = value[0] + slope[0] / 3, own[2 * width] = value[stride] - slope[stride] / 3;
                // A cubic stays between the smallest and the largest of its four control points.
                const auto [least, most] = std::minmax({own[0], own[width], own[2 * width], own[3 * width]});
                peak_[j * width + k] = most;
                if (k >= Kp) trough_[j * (width - Kp) + k - Kp] = least;
            }
    }

    // x_k += u_k . hbar(t), and the same for the units that follow.
    void add(double t, Real* x) const {
        double s = place(t);
        int cell = std::min(static_cast<int>(s), kCells - 1);
        Real u = static_cast<Real>(s - cell), v = 1 - u;
        Real b0 = v * v * v, b1 = 3 * u * v * v, b2 = 3 * u * u * v, b3 = u * u * u;
        const Real* own = control_.data() + size_t(cell) * 4 * width_;
        for (int k = 0; k < width_; k += Lanes<Real>::width)
            store(x + k, load(x + k) + load(own + k) * b0 + load(own + width_ + k) * b1 +
                             load(own + 2 * width_ + k) * b2 + load(own + 3 * width_ + k) * b3);
    }

    // x_k += an upper bound of it over [start, stop], with some slack for rounding.
    void add_peak(double start, double stop, Real* x) const {
        int first = std::min(static_cast<int>(place(stop)), kCells - 1);
        int last = std::min(static_cast<int>(place(start)), kCells - 1);
        for (int k = 0; k < width_; k += Lanes<Real>::width) {
            auto most = load(peak_.data() + first * width_ + k), own = load(x + k);
            for (int j = first + 1; j <= last; j++) most = larger(most, load(peak_.data() + j * width_ + k));
            const auto size = magnitude(most) + smaller(magnitude(own), decltype(own){} + Real(1e6)) + Real(1);
            store(x + k, own + most + size * Real(4e-6));
        }
    }

    // low_u += a lower bound of it over [start, stop] for each unit.
    void add_trough(double start, double stop, Real* low) const {
        const int units = width_ - Kp_;
        int first = std::min(static_cast<int>(place(stop)), kCells - 1);
        int last = std::min(static_cast<int>(place(start)), kCells - 1);
        for (int u = 0; u < units; u += Lanes<Real>::width) {
            auto least = load(trough_.data() + first * units + u), own = load(low + u);
            for (int j = first + 1; j <= last; j++) least = smaller(least, load(trough_.data() + j * units + u));
            store(low + u, own + least - (magnitude(least) + magnitude(own) + Real(1)) * Real(4e-6));
        }
    }

private:
    double right_ = 0, length_ = 1;
    int Kp_ = 0, width_ = 0;
    Buffer<Real> control_, peak_, trough_;  // [cell][4][width], [cell][width], [cell][units]
    Buffer<float> hidden_, slope_, values_, slopes_;

    double place(double t) const { return kCells * std::sqrt(std::min(std::max((right_ - t) / length_, 0.0), 1.0)); }

    // hbar, and d hbar / d s, at node j.
    void node(const float* cells, int Dp, int j, double per_time) {
        double fraction = static_cast<double>(j) / kCells;
        float elapsed = static_cast<float>(length_ * fraction * fraction * per_time);
        float rate = static_cast<float>(2 * length_ * fraction / kCells * per_time);
        for (int d = 0; d < Dp; d += W) {
            vec start = load(cells + d), target = load(cells + Dp + d), decay = load(cells + 2 * Dp + d);
            vec left = (start - target) * exp(decay * -elapsed);
            vec bent = tanh(target + left), output = load(cells + 3 * Dp + d);
            store(hidden_.data() + j * Dp + d, output * bent);
            store(slope_.data() + j * Dp + d, output * (1.0f - bent * bent) * (left * decay * -rate));
        }
    }
};

}  // namespace retrodict
