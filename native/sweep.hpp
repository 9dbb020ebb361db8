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
#include <vector>

#include "ending.hpp"
#include "history.hpp"
#include "missing.hpp"
#include "outlook.hpp"
#include "past.hpp"
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
    Panels panels;                               // of which each has these nodes
    bool exact = true;                           // whether to take integrals in closed form where there is one
    std::vector<double> grid, antiderivatives;   // inversion: points [n] on [0, 1]; [n][n+1] coefficients of the powers
    std::vector<double> missing;                 // rho_k where it never changes, else empty
    std::vector<Recent> after;                   // what depends on last triggers
    std::vector<double> log_atom;                // [K+1] at the start instant; empty where the model has no atom
    EndAtom ends;
};

constexpr int kSilence = -1;

// An observed stream: n events, edges[i] the time of event i and edges[n] the end.
struct Observed {
    int n;
    const double* edges;           // where nothing happened at one of them, its type is kSilence
    const int* types;
    uint64_t key;
    bool draws_start;              // whether an event at the start instant may have gone missing
    const double* log_seen;        // [n] log(1 - rho) of its events, as far as that depends on time
    const double* start_missing;   // [K] rho at the start instant
    Timetable timetable;           // rho between events, where it changes
    const float* shares;           // [n + 1, 7D'] of the right-to-left LSTM's inputs; null where the table has them
    bool ends_seen;                // whether the last of its events ended it
    bool ends_missing;             // whether an event that went missing ended it
    const double* end_missing;     // [K] rho at the end, as far as that depends on time
    const double* end_factor;      // [K] the season's factor there; null where there is none
};

// Where particles of a stream are gone on with from, and what became of them: M rows each (smc/online).
struct Begun {
    double* states;        // [M, width] the model's states
    double* since;         // [M] when each row's last event was
    double* log_weights;   // [M]
    double* windows;       // [M]
    int64_t* counters;     // [M] random numbers that were drawn
    double begin;          // how far all rows have come
    int64_t number;        // how many segments lie behind
    bool ends;             // whether to go on to the end, beyond the last edge
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
    Begun* begun = nullptr;
    bool runaway = false;
};

template <class Process>
class Sweep {
    using Real = typename Process::Real;

public:
    Sweep(const typename Process::Weights& weights, const FutureWeights* future, const Settings& settings)
        : process_(weights, future == nullptr), future_weights_(future), mixing_(future && future->mixing ? &*future->mixing : nullptr),
          settings_(settings), changes_(settings.missing.empty()), M_(settings.particles), Kp_(process_.Kp),
          units_(mixing_ ? mixing_->padded_units : 0), rho_(Kp_), ones_(Kp_),
          node_weights_(settings.nodes.size()), x_((kSlots + 1) * Kp_), rates_(2 * Kp_), low_(units_),
          high_(units_) {
        for (int k = 0; k < Kp_; k++)
            rho_[k] = static_cast<Real>(!changes_ && k < process_.K ? settings.missing[k] : 0.0), ones_[k] = 1;
        std::copy(settings.weights.begin(), settings.weights.end(), node_weights_.data());
        const size_t most = std::max(settings.nodes.size(), settings.grid.size());
        season_.reserve(most * Kp_), shares_.reserve(most * Kp_);
        sums_.reserve(std::max(most, size_t(kChunk) * Past::kPoints) * units_);
        points_.reserve(most * Kp_), ahead_.reserve(most * Kp_), times_.resize(most), terms_.resize(most);
        if (mixing_) scratch_.reserve(mixing_->scratch(static_cast<int>(most)));
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
        for (Stream& s : streams_)
            if (s.outcome->begun) save(s, *s.outcome->begun);
    }

private:
    struct Row {
        double since = 0, log_weight = 0;                           // time of the last event; log of p / q
        double looked = 0;                                          // how far it has come, since the last event
        double window = std::numeric_limits<double>::infinity();    // how far the next bound should reach
        Draws draws;
        int32_t head = History::kNothing;
        int64_t count = 0, length = 0;                              // missing events; all events
        bool ended = false;
    };

    struct Stream {
        const Observed* seen;
        Outcome* outcome;
        int first, number = 0;  // its first row; its segment
        Outlook<Real> outlook;
        Missing<Real> missing;
        std::vector<int> pending;  // rows short of the segment's end
    };

    struct Copy {
        int to, from;
    };

    static constexpr int kChunk = Product::kRows;  // rows whose units' sums are taken at once
    static constexpr double kMany = 8;      // candidates that are too many for one bound
    static constexpr double kLeast = 1e-2;  // of lambda^p times the most of rho, that an interpolant is

    Process process_;
    const FutureWeights* future_weights_;
    const Mixing* mixing_;  // where past and future interact
    const Settings& settings_;
    bool changes_;  // whether rho changes within streams
    int M_, Kp_, units_, alive_ = 0;
    Buffer<Real> rho_, ones_;    // now; 1 for all types
    Buffer<Real> node_weights_;  // those of settings_.nodes
    Buffer<Real> season_, shares_;  // at points in time: its factors; what multiplies lambda^q
    Buffer<Real> x_, rates_, ahead_, points_;
    Buffer<float> low_, high_, sums_, scratch_;
    Past pasts_[kChunk], end_past_;
    Buffer<float> end_sums_;
    const Past* past_ = nullptr;      // of the row that looks for an event
    std::vector<Terms> terms_;
    std::vector<int> mixed_;
    std::vector<double> mixed_times_;
    Stretch here_{};                  // where rates are asked for
    double ended_ = 0;                // since the stream's start
    std::vector<Stretch> passed_;     // since the row's last event
    std::vector<double> edges_;       // where panels meet, since then
    size_t panel_ = 0;                // which of them the row is in
    std::vector<double> triggered_;   // [rows, settings_.after]: when each row's last triggers were
    std::vector<double> times_, grid_p_, grid_q_;
    std::unique_ptr<Future> future_;
    std::vector<Row> rows_;
    std::vector<Stream> streams_;
    std::vector<int> parents_, children_;
    std::vector<int> reading_, types_;  // rows that read an event at the end of the round, and its type
    std::vector<bool> last_;            // whether that event is the last one of its stream
    std::vector<double> elapsed_, weights_;
    std::vector<Copy> copies_;
    std::vector<double> gained_;  // [rows] by whether the event read last ended the stream

    Real* x(int slot) { return x_.data() + slot * Kp_; }

    void begin(const Observed* observed, Outcome* outcomes, int streams) {
        process_.begin(streams * M_);
        rows_.assign(size_t(streams) * M_, Row());
        triggered_.assign(rows_.size() * settings_.after.size(), -std::numeric_limits<double>::infinity());
        streams_.clear();
        streams_.resize(streams);
        alive_ = streams;
        if (future_weights_) {
            future_ = std::make_unique<Future>(*future_weights_, streams);
            std::vector<Future::Seen> seen;
            for (int s = 0; s < streams; s++) 
                seen.push_back({observed[s].n, observed[s].edges, observed[s].types, observed[s].shares});
            future_->read(seen);
        }
        for (int s = 0; s < streams; s++) {
            streams_[s].seen = observed + s, streams_[s].outcome = outcomes + s, streams_[s].first = s * M_;
            for (int m = 0; m < M_; m++)
                rows_[s * M_ + m].draws.key = split(observed[s].key, kParticleBranch + m);
            if (outcomes[s].begun) load_rows(streams_[s], *outcomes[s].begun);
            else *outcomes[s].log_evidence = 0;
            if (changes_) streams_[s].missing.set(observed[s].timetable, process_.K, Kp_);
            enter(streams_[s]);
        }
    }

    // Particles as they were saved.
    void load_rows(Stream& s, const Begun& begun) {
        for (int m = 0; m < M_; m++) {
            Row& row = rows_[s.first + m];
            process_.load_row(s.first + m, begun.states + size_t(m) * process_.width());
            row.since = begun.since[m], row.looked = begun.begin - row.since, row.log_weight = begun.log_weights[m];
            row.window = begun.windows[m], row.draws.counter = static_cast<uint64_t>(begun.counters[m]);
        }
    }

    void save(Stream& s, Begun& begun) {
        for (int m = 0; m < M_; m++) {
            const Row& row = rows_[s.first + m];
            process_.save(s.first + m, begun.states + size_t(m) * process_.width());
            begun.since[m] = row.since, begun.log_weights[m] = row.log_weight, begun.windows[m] = row.window;
            begun.counters[m] = static_cast<int64_t>(row.draws.counter);
        }
    }

    // All particles of a stream go on into its next segment.
    void enter(Stream& s) {
        const double* edges = s.seen->edges;
        if (s.number == s.seen->n && s.outcome->begun && !s.outcome->begun->ends) return stop(s);
        if (future_) s.outlook.tabulate(*future_, s.first / M_, s.number, left(s), edges[s.number], Kp_, settings_.panels);
        s.pending.resize(M_);
        for (int m = 0; m < M_; m++) s.pending[m] = s.first + m;
    }

    double left(const Stream& s) const {
        if (s.number > 0) return s.seen->edges[s.number - 1];
        return s.outcome->begun ? s.outcome->begun->begin : 0.0;
    }

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
                row.log_weight += std::log(s.seen->start_missing[outcome - 1]);
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
        for (int k = 0; k < process_.K; k++) logs[1 + k] += std::log(s.seen->start_missing[k]);
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
        for (size_t i = 0; i < s.pending.size(); i++) {
            if constexpr (!Process::kFeatures)
                if (mixing_ && i % kChunk == 0) learn_past(s, i, right);
            const int r = s.pending[i];
            Row& row = rows_[r];
            past_ = &pasts_[i % kChunk];
            const Step step = settings_.inversion ? invert(s, row, r, right) : thin(s, row, r, right);
            const bool ends = !step.found && s.number == s.seen->n && s.seen->ends_missing && !row.ended;
            if (step.found || s.number < s.seen->n || ends) process_.keep(r, step.slot);
            if (step.found) {
                impute(s, r, row.since + step.at, step.type);
                s.pending[still++] = r;
                if (row.count > settings_.max_events) s.outcome->runaway = true;
            } else if (s.number < s.seen->n && s.seen->types[s.number] != kSilence) {
                observe(s, r, x(step.slot));
            } else if (ends) {
                draw_end(s, r, step);
                s.pending[still++] = r;  // until it has read that
            }
        }
        s.pending.resize(s.outcome->runaway ? 0 : still);
    }

    // Weigh by p of the observed event and by 1 - rho (lines 43, 45).
    void observe(const Stream& s, int r, const Real* drives) {
        Row& row = rows_[r];
        int kind = s.seen->types[s.number];
        bool by_atom = !settings_.log_atom.empty() && s.number == 0 && s.seen->edges[0] == 0;
        row.log_weight += by_atom ? settings_.log_atom[1 + kind] : process_.log_rate(kind, drives[kind]);
        row.log_weight += s.seen->log_seen[s.number];
        for (size_t j = 0; j < settings_.after.size(); j++) {
            const Recent& after = settings_.after[j];
            const bool is_soon = s.seen->edges[s.number] - triggered(r)[j] < after.reach;
            row.log_weight += std::log1p(-(is_soon ? after.soon : after.late)[kind]);
        }
    }

    // The missing event that ended a stream, at its end: a type in proportion to rho lambda^q there.
    void draw_end(Stream& s, int r, const Step& step) {
        Row& row = rows_[r];
        const Real* drives = x(step.slot);
        row.ended = true;
        if constexpr (!Process::kFeatures) if (mixing_) {
            end_sums_.reserve(Past::kPoints * units_);
            end_past_.set(row.looked, step.at, process_.pace(r), end_sums_.data(), units_);
            times_.resize(std::max<size_t>(times_.size(), Past::kPoints));
            for (int p = 0; p < Past::kPoints; p++) times_[p] = end_past_.point(p);
            process_.sums(1, &r, Past::kPoints, times_.data(), end_sums_.data());
            past_ = &end_past_;
        }
        look_ahead(s, row, 1, &step.at, drives);
        Real* proposal = rates_.data() + Kp_;
        process_.activate(future_ ? ahead_.data() : drives, proposal);
        double total = 0;
        for (int k = 0; k < process_.K; k++) {
            double kept = 1 - s.seen->end_missing[k];
            for (size_t j = 0; j < settings_.after.size(); j++) {
                const Recent& after = settings_.after[j];
                const bool is_soon = row.since + step.at - triggered(r)[j] < after.reach;
                kept *= 1 - (is_soon ? after.soon : after.late)[k];
            }
            proposal[k] *= static_cast<Real>(s.seen->end_factor ? (1 - kept) * s.seen->end_factor[k] : 1 - kept);
            total += proposal[k];
        }
        const int type = type_at(proposal, row.draws.next() * total);
        row.log_weight += std::log(total);
        if (future_) row.log_weight += process_.log_rate(type, drives[type]) - process_.log_rate(type, ahead_[type]);
        impute(s, r, s.seen->edges[s.seen->n], type, true);
    }

    double* triggered(int r) { return triggered_.data() + size_t(r) * settings_.after.size(); }

    // The next stretch in which a row looks for an event: all that is left of its segment where rho never changes.
    const Stretch& go_on(Stream& s, const Row& row, int r, double right) {
        const double from = passed_.empty() ? row.looked : passed_.back().to;
        const double begin = passed_.empty() ? row.since + row.looked : ended_;
        while (panel_ < edges_.size() && (changes_ ? row.since + edges_[panel_] <= begin : edges_[panel_] <= from)) panel_++;
        const bool cut = panel_ < edges_.size();
        if (!changes_) {
            here_ = {row.since, from, cut ? edges_[panel_] : right - row.since, 0, 0, true};
        } else {
            const double stop = cut ? std::min(row.since + edges_[panel_], right) : right;
            here_ = s.missing.enter(begin, stop, settings_.after, triggered(r));
            ended_ = here_.to;
            here_.from = from, here_.to = std::max(from, here_.to - row.since);
        }
        passed_.push_back(here_);
        return here_;
    }

    // The edges of the panels until the elapsed time at, without its ends.
    void lay_panels(int r, double at) {
        edges_.clear(), panel_ = 0;
        double edge = at;
        for (int n = process_.panels(r, at, settings_.panels); n > 1; n--) edges_.push_back(edge /= settings_.panels.ratio);
        std::reverse(edges_.begin(), edges_.end());
    }

    bool exact() const { return Process::kExact && settings_.exact; }

    // What the units know of the past of the next few rows, from the i-th on, where events may go missing.
    void learn_past(Stream& s, size_t i, double right) {
        mixed_.clear(), mixed_times_.clear();
        const int n = static_cast<int>(std::min<size_t>(kChunk, s.pending.size() - i));
        for (int j = 0; j < n; j++) {
            const int r = s.pending[i + j];
            double from = rows_[r].looked, to = right - rows_[r].since;
            if (changes_ && !may_miss(s, r, right, from, to)) continue;
            pasts_[j].set(from, to, process_.pace(r), sums_.data() + mixed_.size() * Past::kPoints * units_, units_);
            mixed_.push_back(r);
            for (int p = 0; p < Past::kPoints; p++) mixed_times_.push_back(pasts_[j].point(p));
        }
        process_.sums(static_cast<int>(mixed_.size()), mixed_.data(), Past::kPoints, mixed_times_.data(), sums_.data());
    }

    // Whether anything can go missing before the right end, and from when to when, since the row's last event.
    bool may_miss(Stream& s, int r, double right, double& from, double& to) {
        const double since = rows_[r].since;
        bool any = false;
        for (double now = since + rows_[r].looked; now < right;) {
            const Stretch here = s.missing.enter(now, right, settings_.after, triggered(r));
            if (here.possible && !any) from = now - since;
            if (here.possible) to = here.to - since, any = true;
            now = here.to;
        }
        return any;
    }

    // The model's drives [n][Kp] at times since the row's last event, with what the future adds, in ahead_.
    void look_ahead(const Stream& s, const Row& row, int n, const double* times, const Real* drives) {
        if (!future_) return;
        std::copy_n(drives, n * Kp_, ahead_.data());
        if constexpr (Process::kFeatures)
            if (mixing_) process_.sums_of(n, drives, sums_.data());
        for (int j = 0; j < n; j++) {
            if (mixing_) {
                if constexpr (Process::kFeatures) terms_[j].set_past(sums_.data() + j * units_);
                else past_->at(times[j], terms_[j]);
            }
            s.outlook.add(row.since + times[j], ahead_.data() + j * Kp_, mixing_ ? &terms_[j] : nullptr);
        }
        if (mixing_) mixing_->add(n, terms_.data(), ahead_.data(), Kp_, scratch_.data());
    }

    // The sum of rho lambda^q at a single time; ``take`` needs more of it.
    Real evaluate(const Stream& s, const Row& row, double time, const Real* drives) {
        look_ahead(s, row, 1, &time, drives);
        if (changes_) shares_at(s, row.since + time, season_.data(), rho_.data());
        return process_.weigh(1, future_ ? ahead_.data() : drives, rho_.data());
    }

    // What multiplies activated drives at a time in the stretch here_: of lambda^p the season's factor, where there is
    // one, and of rho lambda^q rho and that.
    void shares_at(const Stream& s, double t, Real* model, Real* proposal) const {
        s.missing.at(t, here_, proposal);
        if (!s.missing.has_season()) return;
        s.missing.season(t, here_, model);
        scale(proposal, model, Kp_);
    }

    // The next event of a row before the right end of its segment, by thinning under bounds over short stretches.
    Step thin(Stream& s, Row& row, int r, double right) {
        const double length = right - row.since;
        Step step{false, length, 0, kOneEnd};
        int there = kOtherEnd;
        double wait = row.draws.exponential();
        bool looked = false;  // whether the slot has what is at the stretch's left end
        edges_.clear();
        for (passed_.clear(); !step.found && (passed_.empty() ? row.looked : passed_.back().to) < length;) {
            const Stretch& here = go_on(s, row, r, right);
            if (!here.possible) {
                looked = false;
                continue;
            }
            if (Process::kEnds && !looked) process_.look(r, here.from, step.slot, x(step.slot));
            looked = Process::kEnds;
            thin_stretch(s, row, r, wait, step, there);
        }
        if (!looked && !step.found) process_.look(r, length, step.slot, x(step.slot));
        row.log_weight += survival(s, row, r, step.at);
        return step;
    }

    // A bound of the sum of rho lambda^q between two times in the stretch here_; slots describe them afterwards, where
    // the process bounds drives from its ends.
    double bound(Stream& s, const Row& row, int r, double from, double to, int left, int right, Real* top) {
        if constexpr (Process::kEnds) process_.bound(r, to, left, right, x(left), x(right), top);
        else process_.bound(r, from, to, top);
        if (mixing_) {
            if constexpr (Process::kFeatures) process_.bound_sums(x(left), x(right), low_.data(), high_.data());
            else past_->range(from, to, low_.data(), high_.data());
        }
        if (future_) s.outlook.add_bound(row.since + from, row.since + to, top, low_.data(), high_.data());
        if (mixing_) mixing_->add_bound(top, low_.data(), high_.data(), scratch_.data());
        if (changes_) {
            s.missing.peak(row.since + from, row.since + to, here_, rho_.data());
            if (s.missing.has_season()) {
                s.missing.season_peak(row.since + from, row.since + to, here_, season_.data());
                scale(rho_.data(), season_.data(), Kp_);
            }
        }
        return process_.weigh(1, top, rho_.data()) * (1 + 1e-5);
    }

    // The same within the stretch here_; what is left of the wait holds for the next one.
    void thin_stretch(Stream& s, Row& row, int r, double& wait, Step& step, int& there) {
        Real* top = x(kSlots);
        double from = here_.from, now = from;
        while (from < here_.to && !step.found) {
            double to = from + row.window;
            if (!(to < here_.to - 0.25 * row.window)) to = here_.to;
            double most = bound(s, row, r, from, to, step.slot, there, top);
            // Just after an event rates may be far higher than where the window was chosen, and fall quickly.
            if (most * (to - from) > kMany) to = from + 0.75 / most, most = bound(s, row, r, from, to, step.slot, there, top);
            for (; wait < most * (to - now) && !step.found; wait = row.draws.exponential()) {
                now += wait / most;
                process_.look(r, now, kCandidate, x(kCandidate));
                if (row.draws.next() * most <= evaluate(s, row, now, x(kCandidate))) step = take(row, now);
            }
            // An exponential wait has no memory: what is left of it holds for the next stretch.
            wait -= most * (to - now);
            row.window = most > 0 ? 0.75 / most : std::numeric_limits<double>::infinity();
            if (!step.found) std::swap(step.slot, there), now = from = to;
        }
    }

    // The type at which the sum of rates passes a point; the last one that can happen, where rounding leaves it behind.
    int type_at(const Real* rates, double point) const {
        double sum = 0;
        int type = 0, possible = 0;
        for (int k = 0; k < process_.K; k++) {
            if (rates[k] > 0) possible = k;
            sum += rates[k];
            if (point >= sum) type = k + 1;
        }
        return std::min(type, possible);
    }

    // An event in slot kCandidate, where rho lambda^q was just evaluated: draw its type in proportion to rho_k lambda^q_k
    // and weigh by p / q there; rho is in both.
    Step take(Row& row, double at) {
        Real* proposal = rates_.data() + Kp_;
        process_.activate(future_ ? ahead_.data() : x(kCandidate), proposal);
        scale(proposal, rho_.data(), Kp_);
        const int type = type_at(proposal, row.draws.next() * total(proposal, Kp_));
        if (future_) row.log_weight += process_.log_rate(type, x(kCandidate)[type]) - process_.log_rate(type, ahead_[type]);
        return {true, at, type, kCandidate};
    }

    // The integral of lambda^q - lambda^p over the stretches passed until the elapsed time at.
    double survival(Stream& s, const Row& row, int r, double at) {
        double area = 0;
        if constexpr (Process::kExact) {
            if (exact() && !future_ && !changes_)
                return process_.area(r, row.looked, at, rho_.data()) - process_.area(r, row.looked, at, ones_.data());
            if (exact()) area -= process_.area(r, row.looked, at, ones_.data());
        }
        lay_panels(r, at);
        if (future_) {
            for (double time : s.outlook.edges()) edges_.push_back(time - row.since);
            std::sort(edges_.begin(), edges_.end());
        }
        for (const Stretch& stretch : passed_) {
            if (exact() && !stretch.possible) continue;
            if (changes_) s.missing.use(stretch, settings_.after, triggered(r));
            here_ = stretch;
            const double to = std::min(stretch.to, at);
            double from = stretch.from;
            for (double edge : edges_)
                if (edge > from && edge < to) area += survival_of_part(s, row, r, from, edge), from = edge;
            area += survival_of_part(s, row, r, from, to);
        }
        return area;
    }

    // The same over a part of the stretch here_ by the nodes of one panel; where lambda^p is taken in closed form,
    // without it.
    double survival_of_part(Stream& s, const Row& row, int r, double from, double to) {
        const int n = static_cast<int>(settings_.nodes.size());
        for (int j = 0; j < n; j++) times_[j] = from + (to - from) * settings_.nodes[j];
        look_at_all(s, row, r, n);
        return (to - from) * (changes_ ? changing_part(s, row, n) : constant_part(n));
    }

    // The nodes' sum where rho changes, or the season.
    double changing_part(const Stream& s, const Row& row, int n) {
        const bool season = s.missing.has_season();
        if (here_.possible || season)
            for (int j = 0; j < n; j++) {
                Real *model = season_.data() + j * Kp_, *proposal = shares_.data() + j * Kp_;
                shares_at(s, row.since + times_[j], model, proposal);
                for (int k = 0; k < Kp_; k++) proposal[k] *= node_weights_[j];
                for (int k = 0; k < Kp_ && season; k++) model[k] *= node_weights_[j];
            }
        double sum = 0;
        if (here_.possible) sum += process_.weigh(n, future_ ? ahead_.data() : points_.data(), shares_.data());
        if (exact()) return sum;
        if (season) return sum - process_.weigh(n, points_.data(), season_.data());
        process_.sum_up(n, points_.data(), node_weights_.data(), rates_.data());
        return sum - total(rates_.data(), Kp_);
    }

    // The nodes' sum where rho never changes: of rates first, and then over types.
    double constant_part(int n) {
        Real *model = rates_.data(), *proposal = model + Kp_;
        process_.sum_up(n, points_.data(), node_weights_.data(), model);
        if (!future_) {
            const double proposed = dot(model, rho_.data(), Kp_);
            return exact() ? proposed : proposed - total(model, Kp_);
        }
        process_.sum_up(n, ahead_.data(), node_weights_.data(), proposal);
        const double proposed = dot(proposal, rho_.data(), Kp_);
        return exact() ? proposed : proposed - total(model, Kp_);
    }

    // Drives at the first n of times_, all in the stretch here_.
    void look_at_all(const Stream& s, const Row& row, int r, int n) {
        process_.drives(r, n, times_.data(), points_.data());
        if (here_.possible) look_ahead(s, row, n, times_.data(), points_.data());
    }

    // lambda^p at the j-th of these, in rates_; returns the sum of rho lambda^q.
    double rates_of(const Stream& s, const Row& row, int j) {
        const Real* drives = points_.data() + j * Kp_;
        if (changes_) shares_at(s, row.since + times_[j], season_.data(), rho_.data());
        process_.activate(drives, rates_.data());
        if (s.missing.has_season()) scale(rates_.data(), season_.data(), Kp_);
        return here_.possible ? process_.weigh(1, future_ ? ahead_.data() + j * Kp_ : drives, rho_.data()) : 0;
    }

    // The next event of a row before the right end of its segment, from the interpolant of lambda^q on a grid over each
    // stretch and panel, with lambda^p integrated in closed form or by the polynomial through the same points.
    Step invert(Stream& s, Row& row, int r, double right) {
        const double length = right - row.since, wanted = row.draws.exponential();
        double area = 0, at = length, log_rate = 0;
        bool found = false;
        lay_panels(r, length);
        for (passed_.clear(); !found && (passed_.empty() ? row.looked : passed_.back().to) < length;) {
            const Stretch& here = go_on(s, row, r, right);
            tabulate(s, row, r);
            const double before = area;
            found = here.possible && invert_stretch(wanted, area, at, log_rate);
            row.log_weight += area - before - model_area(r, found ? at : here.to);
        }
        const int slot = found ? kCandidate : kOneEnd;
        process_.look(r, at, slot, x(slot));
        if (!found) return {false, at, 0, slot};
        // The time is from the interpolant, the type from lambda^q itself.
        row.log_weight += std::log(static_cast<double>(evaluate(s, row, at, x(slot)))) - log_rate;
        return take(row, at);
    }

    // Both intensities on the grid over the stretch here_. Where rho changes, the interpolant stays above zero wherever
    // something can go missing.
    void tabulate(Stream& s, const Row& row, int r) {
        const int n = static_cast<int>(settings_.grid.size());
        for (int j = 0; j < n; j++) times_[j] = here_.from + (here_.to - here_.from) * settings_.grid[j];
        look_at_all(s, row, r, n);
        for (int j = 0; j < n; j++) {
            grid_q_[j] = rates_of(s, row, j);
            grid_p_[j] = total(rates_.data(), Kp_);
            if (changes_ && here_.possible)
                grid_q_[j] = std::max<double>(grid_q_[j], kLeast * scale(rates_.data(), s.missing.most(), Kp_));
        }
    }

    // Where the area of the interpolant, so far area, reaches the one wanted, if it does in the stretch here_.
    bool invert_stretch(double wanted, double& area, double& at, double& log_rate) const {
        const int n = static_cast<int>(settings_.grid.size());
        for (int j = 0; j + 1 < n; j++) {
            const double width = times_[j + 1] - times_[j], a = grid_q_[j], b = grid_q_[j + 1];
            const double cell = 0.5 * (a + b) * width, rest = wanted - area;
            if (!(rest < cell)) {
                area += cell;
                continue;
            }
            area += rest;
            // a s + (b - a) s^2 / 2 = share, written so that neither a flat nor a falling ramp cancels.
            const double share = rest / width, root = std::sqrt(std::max(a * a + 2 * (b - a) * share, 0.0));
            const double inside = std::min(2 * share / (a + root), 1.0);
            at = times_[j] + inside * width;
            log_rate = std::log(a + (b - a) * inside);
            return true;
        }
        return false;
    }

    // The integral of lambda^p over the stretch here_ until a time: of the polynomial through it on the grid, if it is
    // not known.
    double model_area(int r, double to) {
        if constexpr (Process::kExact) {
            if (exact()) return process_.area(r, here_.from, to, ones_.data());
        }
        const int n = static_cast<int>(settings_.grid.size());
        const double span = here_.to - here_.from, u = span > 0 ? (to - here_.from) / span : 1.0;
        double area = 0;
        for (int j = 0; j < n; j++) {
            const double* powers = settings_.antiderivatives.data() + size_t(j) * (n + 1);
            double value = 0;
            for (int e = n; e >= 0; e--) value = value * u + powers[e];
            area += value * grid_p_[j];
        }
        return area * span;
    }

    // A missing event for a row, to be read at the end of the round (line 41).
    void impute(Stream& s, int r, double time, int type, bool last = false) {
        Row& row = rows_[r];
        row.head = s.outcome->history.append(row.head, time, type);
        row.count++;
        push(r, time, type, last);
    }

    void push(int r, double time, int type, bool last) {
        reading_.push_back(r), types_.push_back(type), elapsed_.push_back(time - rows_[r].since), last_.push_back(last);
        remember(r, time, type);
    }

    void remember(int r, double time, int type) {
        rows_[r].since = time, rows_[r].looked = 0;
        for (size_t j = 0; j < settings_.after.size(); j++)
            if (settings_.after[j].trigger[type]) triggered(r)[j] = time;
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
            for (int m = 0; m < M_; m++) go_to(s.first + m, time, kind, is_last(s));
        }
        s.number++;
        enter(s);
    }

    // Procedure Resample: copy particles in proportion to their weights, which their mean replaces. Survivors alone read
    // the observed event; their copies are made afterwards.
    void resample(Stream& s, double log_mean, double time, int kind) {
        Row* rows = rows_.data() + s.first;
        *s.outcome->log_evidence += log_mean;
        const uint64_t key = split(s.seen->key, kResampleBranch), offset = uint64_t(s.number + behind(s)) * M_;
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
            rows[m].window = rows[parent].window, rows[m].since = rows[parent].since;
            std::copy_n(triggered(s.first + parent), settings_.after.size(), triggered(s.first + m));
            copies_.push_back({s.first + m, s.first + parent});
        }
        for (int m = 0; m < M_; m++) {
            rows[m].log_weight = 0;
            if (parents_[m] == m) go_to(s.first + m, time, kind, is_last(s));
            else if (kind == kSilence) rows[m].looked = time - rows[m].since;
            else remember(s.first + m, time, kind);
        }
        s.outcome->resampled[s.number] = true;
    }

    void finish(Stream& s, double log_mean) {
        *s.outcome->log_evidence += log_mean;
        stop(s);
    }

    void stop(Stream& s) {
        s.number = s.seen->n + 1;
        alive_--;
    }

    int64_t behind(const Stream& s) const { return s.outcome->begun ? s.outcome->begun->number : 0; }

    // Whether the event at the end of a stream's segment ended it.
    bool is_last(const Stream& s) const { return s.seen->ends_seen && s.number == s.seen->n - 1; }

    // A row comes to the end of a segment, and reads the event there if there is one.
    void go_to(int r, double time, int kind, bool last) {
        if (kind == kSilence) rows_[r].looked = time - rows_[r].since;
        else push(r, time, kind, last);
    }

    // The model reads the round's events (line 44).
    void read() {
        process_.read(static_cast<int>(reading_.size()), reading_.data(), types_.data(), elapsed_.data());
        if (settings_.ends) weigh_ends();
        for (const Copy& copy : copies_) process_.copy(copy.to, copy.from);
        reading_.clear(), types_.clear(), elapsed_.clear(), last_.clear(), copies_.clear();
    }

    // Weigh by whether the events that were read were the last ones.
    void weigh_ends() {
        gained_.resize(rows_.size());
        for (size_t j = 0; j < reading_.size(); j++) {
            Row& row = rows_[reading_[j]];
            const double features = process_.after(reading_[j], settings_.ends.by_feature);
            const double gain = settings_.ends.log_prob(++row.length, types_[j], row.since, features, last_[j]);
            row.log_weight += gain, gained_[reading_[j]] = gain;
        }
        for (const Copy& copy : copies_)
            rows_[copy.to].log_weight += gained_[copy.from], rows_[copy.to].length = rows_[copy.from].length;
    }

};

}  // namespace retrodict
