// Missing rates rho_k(t) that change within a stream: cubics in time, piece by piece, and what the last triggers change
// (missingness/pieces.py).
//
//     rho = 1 - (1 - what depends on time) * product of (1 - what depends on a last trigger)
//
// A row goes from stretch to stretch: over one of them rates neither jump nor bend, and no trigger's time ends.
//
// Where the model has a calendar, a season's factor multiplies the intensities of model and proposal alike, and is
// given in the same pieces.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "buffer.hpp"
#include "vec.hpp"

namespace retrodict {

// For the time ``reach`` after an event whose type is a trigger rates are ``soon``, otherwise ``late``; [K] each.
struct Recent {
    std::vector<uint8_t> trigger;
    double reach;
    std::vector<double> soon, late;
};

// The pieces of a stream: breaks [count + 1], control points [count][4][K], whether rates bend where one begins [count],
// and control points of the season's factors, where there is a season.
struct Timetable {
    int count = 0;
    const double *breaks = nullptr, *rates = nullptr;
    const bool* bends = nullptr;
    const double* factors = nullptr;
};

struct Stretch {
    double begin, from, to;  // since the stream's start; since the row's last event
    int first, last;         // its pieces
    bool possible;           // whether anything can go missing in it
};

template <class Real>
class Missing {
public:
    // A stream's rates; each type's factor from last triggers is 1 until ``enter``.
    void set(const Timetable& table, int K, int Kp) {
        table_ = table, Kp_ = Kp;
        others_.reserve(Kp), most_.reserve(Kp);
        load_controls(table.rates, K, control_, peak_);
        if (table.factors) load_controls(table.factors, K, factors_, factor_peak_);
    }

    // The stretch that begins at ``begin``, no longer than until ``stop``, for a row whose last triggers these were.
    Stretch enter(double begin, double stop, const std::vector<Recent>& after, const double* triggered) {
        Stretch here{begin, 0, stop, 0, 0, false};
        here.first = here.last = piece(begin, 0, table_.count - 1);
        while (here.last + 1 < table_.count && !table_.bends[here.last + 1]) here.last++;
        if (here.last + 1 < table_.count) here.to = std::min(here.to, table_.breaks[here.last + 1]);
        for (size_t j = 0; j < after.size(); j++) {
            const double end = triggered[j] + after[j].reach;
            if (end > begin) here.to = std::min(here.to, end);
        }
        use(here, after, triggered);
        peak(begin, here.to, here, most_.data());
        for (int k = 0; k < Kp_; k++) here.possible |= most_[k] > 0;
        return here;
    }

    // Take the factors of last triggers from here on for this stretch.
    void use(const Stretch& here, const std::vector<Recent>& after, const double* triggered) {
        looks_back_ = !after.empty();
        if (!looks_back_) return;
        std::fill_n(others_.data(), Kp_, Real(1));
        for (size_t j = 0; j < after.size(); j++) {
            const std::vector<double>& own = triggered[j] + after[j].reach > here.begin ? after[j].soon : after[j].late;
            for (size_t k = 0; k < own.size(); k++) others_[k] *= static_cast<Real>(1 - own[k]);
        }
    }

    // The most that rates reach in the stretch entered last, [Kp].
    const Real* most() const { return most_.data(); }

    // x_k = rho_k(t), from the pieces of a stretch alone: at its ends rates may jump.
    void at(double t, const Stretch& here, Real* x) const {
        cubic(control_, t, here, x);
        with_others(x);
    }

    // x_k = an upper bound of it over [start, stop] within the stretch.
    void peak(double start, double stop, const Stretch& here, Real* x) const {
        largest(peak_, start, stop, here, x);
        with_others(x);
    }

    bool has_season() const { return table_.factors != nullptr; }

    // x_k = the season's factor at t, and an upper bound of it over [start, stop].
    void season(double t, const Stretch& here, Real* x) const { cubic(factors_, t, here, x); }
    void season_peak(double start, double stop, const Stretch& here, Real* x) const {
        largest(factor_peak_, start, stop, here, x);
    }

private:
    Timetable table_;
    int Kp_ = 0;
    bool looks_back_ = false;
    Buffer<Real> control_, peak_;         // [piece][4][Kp], [piece][Kp]
    Buffer<Real> factors_, factor_peak_;  // the same of the season's factors
    Buffer<Real> others_, most_;   // [Kp]: what is left by the last triggers; see ``most``

    void load_controls(const double* given, int K, Buffer<Real>& control, Buffer<Real>& peak) const {
        control.reserve(size_t(table_.count) * 4 * Kp_), peak.reserve(size_t(table_.count) * Kp_);
        for (int p = 0; p < table_.count; p++)
            for (int k = 0; k < Kp_; k++) {
                Real most = 0;
                for (int j = 0; j < 4; j++) {
                    const Real own = k < K ? static_cast<Real>(given[(size_t(p) * 4 + j) * K + k]) : Real(0);
                    control[(size_t(p) * 4 + j) * Kp_ + k] = own;
                    most = std::max(most, own);
                }
                peak[size_t(p) * Kp_ + k] = most;
            }
    }

    void cubic(const Buffer<Real>& control, double t, const Stretch& here, Real* x) const {
        const int p = piece(t, here.first, here.last);
        const double length = std::max(table_.breaks[p + 1] - table_.breaks[p], 1e-300);
        const Real u = static_cast<Real>(std::min(std::max((t - table_.breaks[p]) / length, 0.0), 1.0)), v = 1 - u;
        const Real b0 = v * v * v, b1 = 3 * u * v * v, b2 = 3 * u * u * v, b3 = u * u * u;
        const Real* own = control.data() + size_t(p) * 4 * Kp_;
        for (int k = 0; k < Kp_; k += Lanes<Real>::width)
            store(x + k, load(own + k) * b0 + load(own + Kp_ + k) * b1 + load(own + 2 * Kp_ + k) * b2 +
                             load(own + 3 * Kp_ + k) * b3);
    }

    void largest(const Buffer<Real>& peaks, double start, double stop, const Stretch& here, Real* x) const {
        const int first = piece(start, here.first, here.last), last = piece(stop, here.first, here.last);
        std::copy_n(peaks.data() + size_t(first) * Kp_, Kp_, x);
        for (int p = first + 1; p <= last; p++)
            for (int k = 0; k < Kp_; k += Lanes<Real>::width)
                store(x + k, larger(load(x + k), load(peaks.data() + size_t(p) * Kp_ + k)));
    }

    // The piece that t lies in, of first to last; where two meet, the right one.
    int piece(double t, int first, int last) const {
        if (first == last) return first;
        return static_cast<int>(std::upper_bound(table_.breaks + first + 1, table_.breaks + last + 1, t) - table_.breaks) - 1;
    }

    void with_others(Real* x) const {
        if (!looks_back_) return;
        for (int k = 0; k < Kp_; k += Lanes<Real>::width)
            store(x + k, Real(1) - (Real(1) - load(x + k)) * load(others_.data() + k));
    }
};

}  // namespace retrodict
