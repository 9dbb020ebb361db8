// What the future adds within one segment: u_k . hbar(t) to the drives, and Q hbar + b to the units that mix.
//
// hbar is the same for all particles of a stream, so both are tabulated once for each segment and interpolated by
// cubics of s = kCells sqrt(elapsed before the right end / length) in each of kCells cells, which are finer towards the
// right end, where hbar moves fastest. That makes a slightly different proposal, and an exact one: sampling, bound,
// integral and weight all use the interpolant.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "future.hpp"

namespace retrodict {

// Cubics [cell][4][width] by their control points, between the smallest and the largest of which each stays.
template <class Real>
class Cubics {
public:
    void reserve(int cells, int width) {
        width_ = width;
        control_.reserve(size_t(cells) * 4 * width), most_.reserve(size_t(cells) * width), least_.reserve(size_t(cells) * width);
    }

    // Column k of a cell, from values and slopes at its ends, ``apart`` numbers from one end to the other.
    void set(int cell, int k, const float* value, const float* slope, int apart) {
        Real* own = control_.data() + size_t(cell) * 4 * width_ + k;
        own[0] = value[0], own[3 * width_] = value[apart];
        own[width_] = value[0] + slope[0] / 3, own[2 * width_] = value[apart] - slope[apart] / 3;
        const auto [least, most] = std::minmax({own[0], own[width_], own[2 * width_], own[3 * width_]});
        most_[cell * width_ + k] = most, least_[cell * width_ + k] = least;
    }

    const Real* control(int cell, int point) const { return control_.data() + (size_t(cell) * 4 + point) * width_; }

    // x += an upper bound over the cells first to last, with some slack for rounding.
    void add_most(int first, int last, Real* x) const {
        for (int k = 0; k < width_; k += Lanes<Real>::width) {
            auto most = load(most_.data() + first * width_ + k), own = load(x + k);
            for (int j = first + 1; j <= last; j++) most = larger(most, load(most_.data() + j * width_ + k));
            const auto size = magnitude(most) + smaller(magnitude(own), decltype(own){} + Real(1e6)) + Real(1);
            store(x + k, own + most + size * Real(4e-6));
        }
    }

    // x += a lower bound.
    void add_least(int first, int last, Real* x) const {
        for (int k = 0; k < width_; k += Lanes<Real>::width) {
            auto least = load(least_.data() + first * width_ + k), own = load(x + k);
            for (int j = first + 1; j <= last; j++) least = smaller(least, load(least_.data() + j * width_ + k));
            store(x + k, own + least - (magnitude(least) + magnitude(own) + Real(1)) * Real(4e-6));
        }
    }

private:
    int width_ = 0;
    Buffer<Real> control_, most_, least_;
};

template <class Real>
class Outlook {
public:
    static constexpr int kCells = 8;

    // For drives padded to Kp.
    void tabulate(Future& future, int stream, int number, double left, double right, int Kp, const Panels& panels) {
        const FutureWeights& w = future.weights();
        const int Dp = w.lstm.Dp, stride = w.readout.width, units = w.mixing ? w.mixing->padded_units : 0;
        right_ = right, length_ = std::max(right - left, 1e-300), Kp_ = Kp;
        drives_.reserve(kCells, Kp), units_.reserve(kCells, units);
        hidden_.reserve((kCells + 1) * Dp), slope_.reserve((kCells + 1) * Dp);
        values_.reserve((kCells + 1) * stride), slopes_.reserve((kCells + 1) * stride);
        const float* cells = future.segment(stream, number);
        auto faster = [&](double rate) { return beyond(cells, Dp, w.weight.data(), rate / w.per_time); };
        edges_.clear();
        for (int n = panels.count(length_, faster), j = 1; j < n; j++)
            edges_.push_back(right - length_ * std::pow(panels.ratio, -j));
        for (int j = 0; j <= kCells; j++) node(cells, Dp, j, w.per_time);
        w.readout.apply(kCells + 1, hidden_.data(), values_.data());
        w.readout.apply(kCells + 1, slope_.data(), slopes_.data());
        const int shift = w.readout.Kp;
        for (int j = 0; j <= kCells; j++)
            for (int u = 0; u < units; u++) values_[j * stride + shift + u] += w.mixing->bias[u];
        for (int j = 0; j < kCells; j++) {
            const float *value = values_.data() + j * stride, *slope = slopes_.data() + j * stride;
            for (int k = 0; k < Kp; k++) drives_.set(j, k, value + k, slope + k, stride);
            for (int u = 0; u < units; u++) units_.set(j, u, value + shift + u, slope + shift + u, stride);
        }
    }

    // Where panels of integrals meet that narrow towards the right end.
    const std::vector<double>& edges() const { return edges_; }

    // x_k += u_k . hbar(t); and Q hbar(t) + b, where there are units.
    void add(double t, Real* x, Terms* terms) const {
        const double s = place(t);
        const int cell = std::min(static_cast<int>(s), kCells - 1);
        const Real u = static_cast<Real>(s - cell), v = 1 - u;
        const Real shares[4] = {v * v * v, 3 * u * v * v, 3 * u * u * v, u * u * u};
        const Real* own = drives_.control(cell, 0);
        for (int k = 0; k < Kp_; k += Lanes<Real>::width)
            store(x + k, load(x + k) + load(own + k) * shares[0] + load(own + Kp_ + k) * shares[1] +
                             load(own + 2 * Kp_ + k) * shares[2] + load(own + 3 * Kp_ + k) * shares[3]);
        if (!terms) return;
        for (int i = 0; i < kFutureTerms; i++) {
            terms->rows[kPastTerms + i] = units_.control(cell, i);
            terms->weights[kPastTerms + i] = static_cast<float>(shares[i]);
        }
    }

    // x_k += an upper bound of it over [start, stop]; and bounds of the units, where there are any.
    void add_bound(double start, double stop, Real* x, float* low, float* high) const {
        const int first = std::min(static_cast<int>(place(stop)), kCells - 1);
        const int last = std::min(static_cast<int>(place(start)), kCells - 1);
        drives_.add_most(first, last, x);
        units_.add_most(first, last, high), units_.add_least(first, last, low);
    }

private:
    double right_ = 0, length_ = 1;
    int Kp_ = 0;
    std::vector<double> edges_;
    Cubics<Real> drives_;
    Cubics<float> units_;
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
