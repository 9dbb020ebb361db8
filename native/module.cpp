// The Python module: packed weights, and ``sweep``, which runs Algorithm 1 on threads without Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "state_space.hpp"
#include "sweep.hpp"

namespace nb = nanobind;
using namespace retrodict;

namespace {

template <class T, int N>
using Array = nb::ndarray<T, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
template <class T, int N>
using Given = Array<const T, N>;

Lstm make_lstm(Given<float, 2> by_type, Given<float, 2> by_hidden, Given<float, 1> bias) {
    return Lstm(by_type.data(), by_hidden.data(), bias.data(), int(by_type.shape(0)), int(by_hidden.shape(0)));
}

Readout make_readout(Given<float, 2> matrix) {
    return Readout(matrix.data(), int(matrix.shape(0)), int(matrix.shape(1)));
}

Readout make_readout(Given<float, 2> matrix, Given<float, 2> below) {
    return Readout(matrix.data(), int(matrix.shape(0)), int(matrix.shape(1)), below.data(), int(below.shape(0)));
}

// Of the sizes of a matrix's numbers, |P|, as below.
Product make_sizes(Given<float, 2> matrix) {
    return Product(int(matrix.shape(1)), int(matrix.shape(0)), [&](int d, int u) { return std::abs(matrix(u, d)); });
}

// The transpose of a matrix [units, D].
Product make_product(Given<float, 2> matrix) {
    return Product(int(matrix.shape(1)), int(matrix.shape(0)), [&](int d, int u) { return matrix(u, d); });
}

std::optional<Mixing> make_mixing(Given<float, 2> readout, Given<float, 1> bias) {
    if (!bias.shape(0)) return std::nullopt;
    return Mixing(make_readout(readout), bias.data(), int(bias.shape(0)));
}

// The observed streams of a batch, padded: edges [B, S], types [B, S - 1], how many are real [B].
struct Batch {
    Given<double, 2> edges;
    Given<int32_t, 2> types;
    Given<int32_t, 1> lengths;
    Given<int64_t, 1> keys;
    Given<bool, 1> draws_start, ends_seen, ends_missing;
};

// Missing rates of the same streams: log(1 - rho) of their events [B, S - 1], rho at both ends [B, K], and their pieces
// (missingness/pieces.py), none where rates never change; a season's factors in these pieces, and at the end [B, K].
struct Rates {
    Given<double, 2> log_seen, start, end;
    Given<double, 2> breaks;
    Given<double, 4> rates;
    Given<bool, 2> bends;
    std::optional<Given<double, 4>> factors;
    std::optional<Given<double, 2>> end_factor;
};

// Arrays that ``sweep`` fills.
struct Results {
    Array<double, 1> log_evidence;
    Array<double, 2> ess;
    Array<int32_t, 3> parents;
    Array<bool, 2> resampled;
    Array<double, 3> log_weights;
    Array<int32_t, 3> heads;
};

// Particles to go on from, which ``sweep`` replaces by what becomes of them: R = B M rows.
struct Particles {
    Array<double, 2> states;
    Array<double, 1> since, log_weights, windows;
    Array<int64_t, 1> counters;
    Array<double, 1> begins;   // [B]
    Array<int64_t, 1> numbers; // [B]
    bool ends;

    bool fit(size_t B, size_t M, size_t width) const {
        const size_t R = B * M;
        return states.shape(0) == R && states.shape(1) == width && since.size() == R && log_weights.size() == R &&
               windows.size() == R && counters.size() == R && begins.size() == B && numbers.size() == B;
    }
};

// The events of all particles, to be written into arrays once it is known how many there are.
struct Histories {
    std::vector<Outcome> outcomes;
    int particles;

    size_t size() const {
        size_t sum = 0;
        for (const Outcome& outcome : outcomes) sum += outcome.history.size();
        return sum;
    }

    // One forest of all streams: heads are renumbered accordingly.
    void write(Array<double, 1> times, Array<int32_t, 1> types, Array<int32_t, 1> before, Array<int32_t, 3> heads) const {
        const size_t a_stream = heads.shape(1) * heads.shape(2);
        int32_t first = 0;
        for (size_t b = 0; b < outcomes.size(); b++) {
            const History& history = outcomes[b].history;
            history.write(first, times.data() + first, types.data() + first, before.data() + first);
            int32_t* own = heads.data() + b * a_stream;
            for (size_t i = 0; i < a_stream; i++)
                if (own[i] != History::kNothing) own[i] += first;
            first += static_cast<int32_t>(history.size());
        }
    }

    bool runaway() const {
        for (const Outcome& outcome : outcomes)
            if (outcome.runaway) return true;
        return false;
    }
};

// Threads take groups of streams until none is left.
template <class Work>
void share_out(int groups, int threads, Work work) {
    std::atomic<int> next{0};
    std::exception_ptr failure;
    std::mutex guard;
    auto labour = [&] {
        try {
            work(next);
        } catch (...) {
            std::lock_guard<std::mutex> lock(guard);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    others.reserve(std::max(threads, 1));
    try {
        for (int t = 1; t < std::min(threads, groups); t++) others.emplace_back(labour);
    } catch (const std::system_error&) {
        // No more threads to be had: those there are do it.
    }
    labour();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

// The pieces of one stream; those that fill up its row are left out.
Timetable timetable(const Rates& rates, int b, int P, int K) {
    if (!P) return {};
    const double* breaks = &rates.breaks(b, 0);
    int count = 1;
    while (count < P && breaks[count + 1] > breaks[count]) count++;
    const size_t first = size_t(b) * P * 4 * K;
    return {count, breaks, rates.rates.data() + first, rates.bends.data() + size_t(b) * P,
            rates.factors ? rates.factors->data() + first : nullptr};
}

template <class Process>
Histories sweep(const typename Process::Weights& weights, const FutureWeights* future, const Settings& settings,
                const Batch& batch, const Rates& rates, std::optional<Given<float, 3>> shares, Results& results,
                int group, int threads, Particles* particles) {
    const int B = int(batch.lengths.shape(0)), S = int(batch.edges.shape(1)), M = settings.particles;
    Histories histories{std::vector<Outcome>(B), M};
    const int P = int(rates.bends.shape(1)), K = int(rates.start.shape(1));
    std::vector<Observed> observed(B);
    std::vector<Begun> begun(particles ? B : 0);
    if (particles && !particles->fit(B, M, Process::width(weights)))
        throw std::invalid_argument("the particles do not fit the streams or the model");
    for (int b = 0; b < B; b++) {
        observed[b] = {batch.lengths(b), &batch.edges(b, 0), batch.types.data() + size_t(b) * (S - 1),
                       static_cast<uint64_t>(batch.keys(b)), batch.draws_start(b),
                       rates.log_seen.data() + size_t(b) * (S - 1), rates.start.data() + size_t(b) * K,
                       timetable(rates, b, P, K), shares ? &(*shares)(b, 0, 0) : nullptr, batch.ends_seen(b),
                       batch.ends_missing(b), rates.end.data() + size_t(b) * K,
                       rates.end_factor ? rates.end_factor->data() + size_t(b) * K : nullptr};
        Outcome& outcome = histories.outcomes[b];
        outcome.log_evidence = &results.log_evidence(b), outcome.ess = &results.ess(b, 0);
        outcome.parents = &results.parents(b, 0, 0), outcome.resampled = &results.resampled(b, 0);
        outcome.log_weights = &results.log_weights(b, 0, 0), outcome.heads = &results.heads(b, 0, 0);
        if (!particles) continue;
        const size_t row = size_t(b) * M;
        begun[b] = {particles->states.data() + row * particles->states.shape(1), particles->since.data() + row,
                    particles->log_weights.data() + row, particles->windows.data() + row,
                    particles->counters.data() + row, particles->begins(b), particles->numbers(b), particles->ends};
        outcome.begun = &begun[b];
    }
    nb::gil_scoped_release release;
    const int groups = (B + group - 1) / group;
    share_out(groups, threads, [&](std::atomic<int>& next) {
        Sweep<Process> own(weights, future, settings);
        for (int g = next++; g < groups; g = next++)
            own.run(&observed[g * group], &histories.outcomes[g * group], std::min(group, B - g * group));
    });
    return histories;
}

}  // namespace

NB_MODULE(RETRODICT_MODULE, m) {
    m.attr("width") = W;
    nb::class_<NeuralWeights>(m, "NeuralWeights")
        .def("__init__", [](NeuralWeights* self, Given<float, 2> by_type, Given<float, 2> by_hidden, Given<float, 1> bias,
                            Given<float, 2> readout, Given<float, 1> scale, double time_scale, Given<float, 2> units) {
            new (self) NeuralWeights(make_lstm(by_type, by_hidden, bias), make_readout(readout), make_product(units),
                                     scale.data(), time_scale);
        });
    nb::class_<HawkesWeights>(m, "HawkesWeights")
        .def("__init__", [](HawkesWeights* self, std::vector<double> base, std::vector<double> decay,
                            Given<double, 2> jumps, Given<float, 2> units) {
            new (self) HawkesWeights{base, decay, {jumps.data(), jumps.data() + jumps.size()}, make_product(units),
                                    make_sizes(units)};
        });
    nb::class_<StateSpaceWeights>(m, "StateSpaceWeights")
        .def("__init__", [](StateSpaceWeights* self, Given<float, 1> decay, Given<float, 1> bias, Given<float, 2> gates,
                            Given<float, 2> jumps, Given<float, 2> readout, Given<float, 1> offset,
                            Given<float, 1> scale, double time_scale, Given<float, 2> units) {
            new (self) StateSpaceWeights(ScaledSoftplus(scale.data(), int(scale.shape(0)), time_scale),
                                         make_readout(readout), make_product(units), decay.data(), int(decay.shape(0)),
                                         bias.data(), int(bias.shape(0)), gates.data(), jumps.data(), offset.data());
        });
    nb::class_<FutureWeights>(m, "FutureWeights")
        .def("__init__", [](FutureWeights* self, Given<float, 2> by_type, Given<float, 2> by_hidden, Given<float, 1> bias,
                            Given<float, 2> readout, Given<float, 2> start, double time_scale, Given<float, 2> units,
                            Given<float, 1> unit_bias, Given<float, 2> unit_readout, Given<float, 1> weight) {
            Lstm lstm = make_lstm(by_type, by_hidden, bias);
            Buffer<float> padded_weight(lstm.Dp);
            std::fill_n(padded_weight.data(), lstm.Dp, 0.0f);
            std::copy_n(weight.data(), weight.size(), padded_weight.data());
            new (self) FutureWeights{std::move(lstm), make_readout(readout, units), make_readout(start), 1 / time_scale,
                                     make_mixing(unit_readout, unit_bias), std::move(padded_weight)};
        });
    nb::class_<Recent>(m, "Recent")
        .def("__init__", [](Recent* self, std::vector<uint8_t> trigger, double reach, std::vector<double> soon,
                            std::vector<double> late) { new (self) Recent{trigger, reach, soon, late}; });
    nb::class_<Settings>(m, "Settings")
        .def("__init__", [](Settings* self, int particles, int scheme, double ess_threshold, bool inversion,
                            int64_t max_events, std::vector<double> nodes, std::vector<double> weights, double reach,
                            double ratio, double error, bool exact,
                            std::vector<double> grid, std::vector<double> antiderivatives, std::vector<double> missing,
                            std::vector<Recent> after, std::vector<double> log_atom, std::vector<double> by_count,
                            std::vector<double> by_type, double by_time, std::vector<double> by_feature) {
            new (self) Settings{particles, Scheme(scheme), ess_threshold, inversion, max_events, nodes, weights,
                                {reach, ratio, error}, exact, grid, antiderivatives, missing, after, log_atom,
                                {by_count, by_type, by_time, by_feature}};
        });
    nb::class_<Batch>(m, "Batch")
        .def("__init__", [](Batch* self, Given<double, 2> edges, Given<int32_t, 2> types, Given<int32_t, 1> lengths,
                            Given<int64_t, 1> keys, Given<bool, 1> draws_start, Given<bool, 1> ends_seen,
                            Given<bool, 1> ends_missing) {
            new (self) Batch{edges, types, lengths, keys, draws_start, ends_seen, ends_missing};
        });
    nb::class_<Rates>(m, "Rates")
        .def("__init__", [](Rates* self, Given<double, 2> log_seen, Given<double, 2> start, Given<double, 2> end,
                            Given<double, 2> breaks, Given<double, 4> rates, Given<bool, 2> bends,
                            std::optional<Given<double, 4>> factors, std::optional<Given<double, 2>> end_factor) {
            new (self) Rates{log_seen, start, end, breaks, rates, bends, factors, end_factor};
        }, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none());
    nb::class_<Results>(m, "Results")
        .def("__init__", [](Results* self, Array<double, 1> log_evidence, Array<double, 2> ess,
                            Array<int32_t, 3> parents, Array<bool, 2> resampled, Array<double, 3> log_weights,
                            Array<int32_t, 3> heads) {
            new (self) Results{log_evidence, ess, parents, resampled, log_weights, heads};
        });
    nb::class_<Particles>(m, "Particles")
        .def("__init__", [](Particles* self, Array<double, 2> states, Array<double, 1> since, Array<double, 1> log_weights,
                            Array<double, 1> windows, Array<int64_t, 1> counters, Array<double, 1> begins,
                            Array<int64_t, 1> numbers, bool ends) {
            new (self) Particles{states, since, log_weights, windows, counters, begins, numbers, ends};
        });
    nb::class_<Histories>(m, "Histories")
        .def("write", &Histories::write)
        .def_prop_ro("size", &Histories::size)
        .def_prop_ro("runaway", &Histories::runaway);
    m.def("sweep", &sweep<Neural>, nb::arg("weights"), nb::arg("future").none(), nb::arg("settings"), nb::arg("batch"),
          nb::arg("rates"), nb::arg("shares").none(), nb::arg("results"), nb::arg("group"), nb::arg("threads"),
          nb::arg("particles").none() = nb::none());
    m.def("sweep", &sweep<Excited>, nb::arg("weights"), nb::arg("future").none(), nb::arg("settings"), nb::arg("batch"),
          nb::arg("rates"), nb::arg("shares").none(), nb::arg("results"), nb::arg("group"), nb::arg("threads"),
          nb::arg("particles").none() = nb::none());
    m.def("sweep", &sweep<Remembering>, nb::arg("weights"), nb::arg("future").none(), nb::arg("settings"), nb::arg("batch"),
          nb::arg("rates"), nb::arg("shares").none(), nb::arg("results"), nb::arg("group"), nb::arg("threads"),
          nb::arg("particles").none() = nb::none());
    m.def("best", [] {
#if defined(__x86_64__) && !defined(_WIN32)  // clang-cl links nothing that knows the processor
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
            return "avx512";
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "avx2";
#endif
        return "portable";
    });
}
