// What mixing units know of the past: P h(t) of a row until its next event, as a polynomial through a few points.
//
// The products P h at these points are taken for many rows at once; everything else - sampling, bound, integral and
// weight - uses the polynomial. That makes a slightly different proposal, and an exact one.
#pragma once

#include <algorithm>
#include <cmath>

#include "mixing.hpp"

namespace retrodict {

class Past {
public:
    static constexpr int kPoints = kPastTerms;

    // From and to are times since the row's last event, and pace about how fast its state moves. The polynomial is one
    // of v = t / (1 + pace t), where t begins at from: cells that decay at many speeds are smooth in v, however far to
    // lies ahead.
    void set(double from, double to, double pace, const float* sums, int units) {
        from_ = from, pace_ = pace, sums_ = sums, units_ = units;
        const double length = std::max(to - from, 0.0);
        reach_ = length / (1 + pace * length);
    }

    // The time of point j.
    double point(int j) const {
        const double v = rule().points[j] * reach_;
        return from_ + v / (1 - pace_ * v);
    }

    // The units' sums at t.
    void at(double t, Terms& terms) const {
        const Rule& own = rule();
        const double s = place(t);
        double shares[kLanes] = {};
        for (int e = kPoints - 1; e >= 0; e--)
            for (int j = 0; j < kLanes; j++) shares[j] = shares[j] * s + own.powers[e][j];
        for (int j = 0; j < kPoints; j++) terms.rows[j] = sums_ + j * units_, terms.weights[j] = float(shares[j]);
    }

    // Bounds of them over [start, stop]: a polynomial stays between the smallest and the largest of its control points
    // there (Bernstein's form), and the slack covers rounding.
    void range(double start, double stop, float* low, float* high) const {
        float control[kPoints][kPoints];
        controls(place(start), place(stop), control);
        for (int u = 0; u < units_; u += W) {
            vec values[kPoints], size = {}, least, most;
            for (int j = 0; j < kPoints; j++) values[j] = load(sums_ + j * units_ + u);
            for (int j = 0; j < kPoints; j++) size = larger(size, magnitude(values[j]));
#pragma GCC unroll 8
            for (int i = 0; i < kPoints; i++) {
                vec own = values[0] * control[i][0];
#pragma GCC unroll 8
                for (int j = 1; j < kPoints; j++) own += values[j] * control[i][j];
                least = i ? smaller(least, own) : own, most = i ? larger(most, own) : own;
            }
            const vec slack = (size + 1.0f) * 2e-5f;
            store(low + u, least - slack), store(high + u, most + slack);
        }
    }

private:
    static constexpr int kLanes = 8;  // points, padded

    double from_ = 0, pace_ = 1, reach_ = 0;
    const float* sums_ = nullptr;  // [kPoints][units]
    int units_ = 0;

    // The points of s in [0, 1], and the Lagrange polynomial of each by powers of s and by control points.
    struct Rule {
        double points[kPoints], powers[kPoints][kLanes] = {}, controls[kPoints][kLanes] = {};

        Rule() {
            const double pi = 3.14159265358979323846;  // M_PI is not everywhere
            for (int j = 0; j < kPoints; j++) points[j] = (1 - std::cos(pi * j / (kPoints - 1))) / 2;
            for (int j = 0; j < kPoints; j++) {
                double own[kPoints + 1] = {1};
                for (int i = 0, degree = 0; i < kPoints; i++) {
                    if (i == j) continue;
                    const double apart = points[j] - points[i];
                    for (int e = ++degree; e >= 0; e--)
                        own[e] = ((e ? own[e - 1] : 0.0) - points[i] * own[e]) / apart;
                }
                for (int e = 0; e < kPoints; e++) powers[e][j] = own[e];
                for (int i = 0; i < kPoints; i++)
                    for (int e = 0; e <= i; e++) controls[i][j] += choose(i, e) / choose(kPoints - 1, e) * own[e];
            }
        }

        static double choose(int n, int k) { return k ? choose(n - 1, k - 1) * n / k : 1.0; }
    };

    static const Rule& rule() {
        static const Rule own;
        return own;
    }

    // s at time t.
    double place(double t) const {
        if (!(reach_ > 0)) return 0;
        const double since = std::max(t - from_, 0.0);
        return std::min(since / (1 + pace_ * since) / reach_, 1.0);
    }

    // What each point adds to the control points over [first, last] of s, by de Casteljau's algorithm.
    void controls(double first, double last, float (*control)[kPoints]) const {
        double own[kPoints][kLanes];
        std::copy_n(&rule().controls[0][0], kPoints * kLanes, &own[0][0]);
        for (int r = 1; r < kPoints; r++)
            for (int i = 0; i + r < kPoints; i++)
                for (int j = 0; j < kLanes; j++) own[i][j] += first * (own[i + 1][j] - own[i][j]);
        const double share = first < 1 ? std::min(std::max((last - first) / (1 - first), 0.0), 1.0) : 1.0;
        for (int r = 1; r < kPoints; r++)
            for (int i = kPoints - 1; i >= r; i--)
                for (int j = 0; j < kLanes; j++) own[i][j] = own[i - 1][j] + share * (own[i][j] - own[i - 1][j]);
        for (int i = 0; i < kPoints; i++)
            for (int j = 0; j < kPoints; j++) control[i][j] = float(own[i][j]);
    }
};

}  // namespace retrodict
