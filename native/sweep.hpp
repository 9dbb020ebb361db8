// Sequential Monte Carlo (Algorithm 1) over a group of streams, as in smc/sampler.py, for one thread.
//
//     for each segment (t_i, t_{i+1}]:                                   line 9
//         draw missing events in it, particle by particle                DrawSegment, lines 24-49
//         weigh by p / q so far, and by the observed event at its end    lines 42-47
//         resample when the effective sample size is low                 lines 12, 14-22
//
// In each round every row (a particle of a stream) that is short of its segment's end looks for its next event; rows
// that found one, and rows of streams whose particles have all reached their observed event, read theirs in one matrix
// product. Streams never wait for one another. What a row draws depends on its own numbers alone, so nothing depends
// on how streams are grouped.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "future.hpp"
#include "history.hpp"
#include "processes.hpp"
#include "random.hpp"
#include "resampling.hpp"

namespace retrodict {

struct Settings {
    int particles = 50;
    Scheme scheme = kSystematic;
    double ess_threshold = 0.5;
    bool inversion = false;
    int64_t max_events = 100000;
    std::vector<double> nodes, weights;          // quadrature on [0, 1]
    std::vector<double> grid, antiderivatives;   // inversion: points [n] on [0, 1]; [n][n+1] coefficients of the powers
    std::vector<double> missing;                 // rho_k
    std::vector<double> log_atom;                // [K+1] at the start instant; empty where the model has no atom
};

// An observed stream: n events, edges[i] the time of event i and edges[n] the end.
struct Observed {
    int n;
    const double* edges;
    const int* types;
    uint64_t key;
    bool draws_start;  // whether an event at the start instant may have gone missing
};

// What is known of a stream afterwards; all but the history are rows of arrays that others see (smc/particles.py, Trace).
struct Outcome {
    History history;
    double* log_evidence;  // []
    double* ess;           // [S]
    int32_t* parents;      // [S, M]
    bool* resampled;       // [S]
    double* log_weights;   // [S, M]
    int32_t* heads;        // [S, M]
    bool runaway = false;
};

template <class Process>
class Sweep {
    using Real = typename Process::Real;

public:
    Sweep(const typename Process::Weights& weights, const FutureWeights* future, const Settings& settings)
        : process_(weights), future_weights_(future), mixing_(future && future->mixing ? &*future->mixing : nullptr),
          settings_(settings), M_(settings.particles), Kp_(process_.Kp), width_(process_.width), rho_(Kp_),
          log_seen_(process_.K), x_((kSlots + 1) * width_), rates_(2 * Kp_), ahead_(width_), low_(width_ - Kp_),
          mixed_(Kp_) {
        for (int k = 0; k < Kp_; k++) rho_[k] = static_cast<Real>(k < process_.K ? settings.missing[k] : 0.0);
        for (int k = 0; k < process_.K; k++) log_seen_[k] = std::log1p(-settings.missing[k]);
        points_.reserve(std::max(settings.nodes.size(), settings.grid.size()) * width_);
        times_.resize(std::max(settings.nodes.size(), settings.grid.size()));
        grid_p_.resize(settings.grid.size()), grid_q_.resize(settings.grid.size());
    }

    void run(const Observed* observed, Outcome* outcomes, int streams) {
        begin(observed, outcomes, streams);
        draw_start();
        while (alive_ > 0) {
            for (Stream& s : streams_) draw_segment(s);
            for (Stream& s : streams_)
                if (s.number <= s.seen->n && s.pending.empty()) meet(s);
            read();
        }
    }

private:
    struct Row {
        double since = 0, log_weight = 0;                           // time of the last event; log of p / q
        double window = std::numeric_limits<double>::infinity();    // how far the next bound should reach
        Draws draws;
        int32_t head = History::kNothing;
        int64_t count = 0;
    };

    struct Stream {
        const Observed* seen;
        Outcome* outcome;
        int first, number = 0;  // its first row; its segment
        Outlook<Real> outlook;
        std::vector<int> pending;  // rows short of the segment's end
    };

    struct Copy {
        int to, from;
    };

    Process process_;
    const FutureWeights* future_weights_;
    const Mixing* mixing_;  // where past and future interact
    const Settings& settings_;
    int M_, Kp_, width_, alive_ = 0;
    Buffer<Real> rho_;
    std::vector<double> log_seen_;
    Buffer<Real> x_, rates_, ahead_, points_, low_, mixed_;
    std::vector<double> times_, grid_p_, grid_q_;
    std::unique_ptr<Future> future_;
    std::vector<Row> rows_;
    std::vector<Stream> streams_;
    std::vector<int> parents_, children_;
    std::vector<int> reading_, types_;  // rows that read an event at the end of the round, and its type
    std::vector<double> elapsed_, weights_;
    std::vector<Copy> copies_;

    Real* x(int slot) { return x_.data() + slot * width_; }

    void begin(const Observed* observed, Outcome* outcomes, int streams) {
        process_.begin(streams * M_);
        rows_.assign(size_t(streams) * M_, Row());
        streams_.clear();
        streams_.resize(streams);
        alive_ = streams;
        if (future_weights_) {
            future_ = std::make_unique<Future>(*future_weights_, streams);
            std::vector<Future::Seen> seen;
            for (int s = 0; s < streams; s++) seen.push_back({observed[s].n, observed[s].edges, observed[s].types});
            future_->read(seen);
        }
        for (int s = 0; s < streams; s++) {
            streams_[s].seen = observed + s, streams_[s].outcome = outcomes + s, streams_[s].first = s * M_;
            for (int m = 0; m < M_; m++)
                rows_[s * M_ + m].draws.key = split(observed[s].key, kParticleBranch + m);
            *outcomes[s].log_evidence = 0;
            enter(streams_[s]);
        }
    }

    // All particles of a stream go on into its next segment.
    void enter(Stream& s) {
        const double* edges = s.seen->edges;
        if (future_) s.outlook.tabulate(*future_, s.first / M_, s.number, left(s), edges[s.number], Kp_, width_);
        s.pending.resize(M_);
        for (int m = 0; m < M_; m++) s.pending[m] = s.first + m;
    }

    double left(const Stream& s) const { return s.number > 0 ? s.seen->edges[s.number - 1] : 0.0; }

    // Where the model has an atom at the start and nothing was observed there, draw what happened.
    void draw_start() {
        for (Stream& s : streams_) {
            if (!s.seen->draws_start) continue;
            const std::vector<double> log_q = start_log_probs(s);
            for (int r : s.pending) {
                Row& row = rows_[r];
                double u = row.draws.next(), sum = 0;
                int outcome = 0, possible = 0;
                for (int k = 0; k <= process_.K; k++) {
                    double share = std::exp(log_q[k]);
                    if (share > 0) possible = k;
                    sum += share;
                    if (u >= sum) outcome = k + 1;
                }
                outcome = std::min(outcome, possible);
                row.log_weight += settings_.log_atom[outcome] - log_q[outcome];
                if (!outcome) continue;
                row.log_weight += std::log(settings_.missing[outcome - 1]);
                process_.look(r, 0.0, kCandidate, x(kCandidate));
                process_.keep(r, kCandidate);
                impute(s, r, 0.0, outcome - 1);
            }
        }
        read();
    }

    // log q of no event (0) or a missing one of type k (1 + k) at the start instant, as in proposals/base.py.
    std::vector<double> start_log_probs(const Stream& s) {
        std::vector<double> logs = settings_.log_atom;
        for (int k = 0; k < process_.K; k++) logs[1 + k] += std::log(settings_.missing[k]);
        if (future_) future_->tilt_start(s.first / M_, s.seen->edges[0], logs.data());
        const double top = *std::max_element(logs.begin(), logs.end());
        double sum = 0;
        for (double value : logs) sum += std::exp(value - top);
        for (double& value : logs) value -= top + std::log(sum);
        return logs;
    }

    // What a row came to: an event of a type, or else the end of its segment, described in a slot.
    struct Step {
        bool found = false;
        double at = 0;  // since the row's last event
        int type = 0, slot = kOneEnd;
    };

    // One round of DrawSegment for rows short of their segment's end (lines 30-47).
    void draw_segment(Stream& s) {
        const double right = s.seen->edges[std::min(s.number, s.seen->n)];
        size_t still = 0;
        for (int r : s.pending) {
            Row& row = rows_[r];
            const Step step = settings_.inversion ? invert(s, row, r, right - row.since) : thin(s, row, r, right - row.since);
            if (step.found || s.number < s.seen->n) process_.keep(r, step.slot);
            if (step.found) {
                impute(s, r, row.since + step.at, step.type);
                s.pending[still++] = r;
                if (row.count > settings_.max_events) s.outcome->runaway = true;
            } else if (s.number < s.seen->n) {
                observe(s, row, x(step.slot));
            }
        }
        s.pending.resize(s.outcome->runaway ? 0 : still);
    }

    // Weigh by p of the observed event and by 1 - rho (lines 43, 45).
    void observe(const Stream& s, Row& row, const Real* drives) {
        int kind = s.seen->types[s.number];
        bool by_atom = !settings_.log_atom.empty() && s.number == 0 && s.seen->edges[0] == 0;
        row.log_weight += by_atom ? settings_.log_atom[1 + kind] : process_.log_rate(kind, drives[kind]);
        row.log_weight += log_seen_[kind];
    }

    // lambda^p and rho lambda^q, [Kp] each in rates_, from the model's drives at a time; returns the sum of the latter.
    Real evaluate(const Stream& s, double t, const Real* drives) {
        Real *model = rates_.data(), *proposal = model + Kp_;
        process_.activate(drives, model);
        if (future_) {
            std::copy_n(drives, width_, ahead_.data());
            s.outlook.add(t, ahead_.data());
            if (mixing_) mix(ahead_.data());
            process_.activate(ahead_.data(), proposal);
        }
        if (!future_) std::copy_n(model, Kp_, proposal);
        return scale(proposal, rho_.data(), Kp_);
    }

    // What past and future add together, to drives that the units' sums follow.
    [[gnu::noinline]] void mix(Real* x) {
        if constexpr (std::is_same_v<Real, float>) mixing_->add(x, x + Kp_, mixed_.data());
    }

    // The same for bounds over [start, stop]; low_ has the model's part of the sums' lower bounds.
    [[gnu::noinline]] void mix_peak(const Stream& s, double start, double stop, Real* x) {
        if constexpr (std::is_same_v<Real, float>) {
            s.outlook.add_trough(start, stop, low_.data());
            mixing_->add_bound(x, low_.data(), x + Kp_, mixed_.data());
        }
    }

    // The next event of a row within length, by thinning under bounds over short stretches.
    Step thin(const Stream& s, Row& row, int r, double length) {
        Step step{false, length, 0, kOneEnd};
        int there = kOtherEnd;
        Real* top = x(kSlots);
        double from = 0, now = 0, wait = row.draws.exponential();
        process_.look(r, 0.0, step.slot, x(step.slot));
        while (from < length && !step.found) {
            double to = from + row.window;
            if (!(to < length - 0.25 * row.window)) to = length;
            process_.look(r, to, there, x(there));
            process_.bound(step.slot, there, x(step.slot), x(there), top, low_.data());
            if (future_) s.outlook.add_peak(row.since + from, row.since + to, top);
            if (mixing_) mix_peak(s, row.since + from, row.since + to, top);
            process_.activate(top, rates_.data());
            const double most = scale(rates_.data(), rho_.data(), Kp_) * (1 + 1e-5);
            for (; wait < most * (to - now) && !step.found; wait = row.draws.exponential()) {
                now += wait / most;
                process_.look(r, now, kCandidate, x(kCandidate));
                if (row.draws.next() * most <= evaluate(s, row.since + now, x(kCandidate))) step = take(row, now);
            }
            // An exponential wait has no memory: what is left of it holds for the next stretch.
            wait -= most * (to - now);
            row.window = most > 0 ? 0.75 / most : std::numeric_limits<double>::infinity();
            if (!step.found) std::swap(step.slot, there), now = from = to;
        }
        row.log_weight += survival(s, row, r, step.at);
        return step;
    }

    // An event in slot kCandidate, where lambda^p and rho lambda^q were just evaluated: draw its type in proportion to
    // lambda^q_k and weigh by p / q there; rho is in both.
    Step take(Row& row, double at) {
        const Real *model = rates_.data(), *proposal = model + Kp_;
        const double point = row.draws.next() * total(proposal, Kp_);
        double sum = 0;
        int type = 0, possible = 0;
        for (int k = 0; k < process_.K; k++) {
            if (proposal[k] > 0) possible = k;
            sum += proposal[k];
            if (point >= sum) type = k + 1;
        }
        type = std::min(type, possible);
        if (future_) row.log_weight += process_.log_rate(type, x(kCandidate)[type]) - process_.log_rate(type, ahead_[type]);
        return {true, at, type, kCandidate};
    }

    // The integral of lambda^q - lambda^p over the piece that ends at elapsed time at.
    double survival(const Stream& s, const Row& row, int r, double at) {
        const int n = static_cast<int>(settings_.nodes.size());
        for (int j = 0; j < n; j++) times_[j] = at * settings_.nodes[j];
        process_.drives(r, n, times_.data(), points_.data());
        double area = 0;
        for (int j = 0; j < n; j++) {
            double proposed = evaluate(s, row.since + times_[j], points_.data() + j * width_);
            area += settings_.weights[j] * (proposed - total(rates_.data(), Kp_));
        }
        return area * at;
    }

    // The next event of a row within length, from the interpolant of lambda^q on a grid, with lambda^p integrated by the
    // polynomial through the same points.
    Step invert(const Stream& s, Row& row, int r, double length) {
        const int n = static_cast<int>(settings_.grid.size());
        for (int j = 0; j < n; j++) times_[j] = length * settings_.grid[j];
        process_.drives(r, n, times_.data(), points_.data());
        for (int j = 0; j < n; j++) {
            grid_q_[j] = evaluate(s, row.since + times_[j], points_.data() + j * width_);
            grid_p_[j] = total(rates_.data(), Kp_);
        }
        const double wanted = row.draws.exponential();
        double area = 0, at = length, log_rate = 0;
        bool found = false;
        for (int j = 0; j + 1 < n && !found; j++) {
            const double width = times_[j + 1] - times_[j], a = grid_q_[j], b = grid_q_[j + 1];
            const double cell = 0.5 * (a + b) * width, rest = wanted - area;
            found = rest < cell;
            area += found ? rest : cell;
            if (!found) continue;
            // a s + (b - a) s^2 / 2 = share, written so that neither a flat nor a falling ramp cancels.
            const double share = rest / width, root = std::sqrt(std::max(a * a + 2 * (b - a) * share, 0.0));
            const double inside = std::min(2 * share / (a + root), 1.0);
            at = times_[j] + inside * width;
            log_rate = std::log(a + (b - a) * inside);
        }
        if (length > 0) row.log_weight += area - model_area(at / length) * length;
        const int slot = found ? kCandidate : kOneEnd;
        process_.look(r, at, slot, x(slot));
        if (!found) return {false, at, 0, slot};
        // The time is from the interpolant, the type from lambda^q itself.
        row.log_weight += std::log(static_cast<double>(evaluate(s, row.since + at, x(slot)))) - log_rate;
        return take(row, at);
    }

    // The integral of the polynomial through lambda^p on the grid, from 0 to u.
    double model_area(double u) const {
        const int n = static_cast<int>(settings_.grid.size());
        double area = 0;
        for (int j = 0; j < n; j++) {
            const double* powers = settings_.antiderivatives.data() + size_t(j) * (n + 1);
            double value = 0;
            for (int e = n; e >= 0; e--) value = value * u + powers[e];
            area += value * grid_p_[j];
        }
        return area;
    }

    // A missing event for a row, to be read at the end of the round (line 41).
    void impute(Stream& s, int r, double time, int type) {
        Row& row = rows_[r];
        row.head = s.outcome->history.append(row.head, time, type);
        row.count++;
        push(r, time, type);
    }

    void push(int r, double time, int type) {
        reading_.push_back(r), types_.push_back(type), elapsed_.push_back(time - rows_[r].since);
        rows_[r].since = time;
    }

    // All particles of a stream have reached the end of their segment (lines 12-13): weigh, resample, go on.
    void meet(Stream& s) {
        Row* rows = rows_.data() + s.first;
        const bool last = s.number == s.seen->n;
        double top = -std::numeric_limits<double>::infinity(), sum = 0, squares = 0;
        for (int m = 0; m < M_; m++) top = std::max(top, rows[m].log_weight);
        weights_.resize(M_);
        for (int m = 0; m < M_; m++) {
            weights_[m] = std::isfinite(top) ? std::exp(rows[m].log_weight - top) : 0.0;
            sum += weights_[m], squares += weights_[m] * weights_[m];
        }
        const double ess = sum > 0 ? sum * sum / squares : 0.0, log_mean = top + std::log(sum / M_);
        s.outcome->ess[s.number] = ess;
        for (int m = 0; m < M_; m++) {
            s.outcome->log_weights[size_t(s.number) * M_ + m] = rows[m].log_weight;
            s.outcome->heads[size_t(s.number) * M_ + m] = rows[m].head;
        }
        if (last || s.outcome->runaway) return finish(s, sum > 0 ? log_mean : -std::numeric_limits<double>::infinity());
        const double time = s.seen->edges[s.number];
        const int kind = s.seen->types[s.number];
        if (settings_.scheme != kNone && ess > 0 && ess < settings_.ess_threshold * M_) {
            for (double& w : weights_) w /= sum;
            resample(s, log_mean, time, kind);
        } else {
            for (int m = 0; m < M_; m++) push(s.first + m, time, kind);
        }
        s.number++;
        enter(s);
    }

    // Procedure Resample: copy particles in proportion to their weights, which their mean replaces. Survivors alone read
    // the observed event; their copies are made afterwards.
    void resample(Stream& s, double log_mean, double time, int kind) {
        Row* rows = rows_.data() + s.first;
        *s.outcome->log_evidence += log_mean;
        const uint64_t key = split(s.seen->key, kResampleBranch), offset = uint64_t(s.number) * M_;
        retrodict::resample(settings_.scheme, weights_, [&](int m) { return uniform(key, offset + m); }, parents_);
        children_.assign(M_, 0);
        for (int parent : parents_) children_[parent]++;
        // A survivor stays in its own place; its other children take the places of those without any.
        int free = 0;
        for (int m = 0; m < M_; m++)
            for (int child = 0; child < children_[m]; child++) {
                if (child == 0) {
                    parents_[m] = m;
                    continue;
                }
                while (children_[free] > 0) free++;
                parents_[free++] = m;
            }
        for (int m = 0; m < M_; m++) {
            const int parent = parents_[m];
            s.outcome->parents[size_t(s.number) * M_ + m] = parent;
            if (parent == m) continue;
            rows[m].head = rows[parent].head, rows[m].count = rows[parent].count;
            rows[m].window = rows[parent].window;
            copies_.push_back({s.first + m, s.first + parent});
        }
        for (int m = 0; m < M_; m++) {
            rows[m].log_weight = 0;
            if (parents_[m] == m) push(s.first + m, time, kind);
            rows[m].since = time;
        }
        s.outcome->resampled[s.number] = true;
    }

    void finish(Stream& s, double log_mean) {
        *s.outcome->log_evidence += log_mean;
        s.number = s.seen->n + 1;
        alive_--;
    }

    // The model reads the round's events (line 44).
    void read() {
        process_.read(static_cast<int>(reading_.size()), reading_.data(), types_.data(), elapsed_.data());
        for (const Copy& copy : copies_) process_.copy(copy.to, copy.from);
        reading_.clear(), types_.clear(), elapsed_.clear(), copies_.clear();
    }

};

}  // namespace retrodict
