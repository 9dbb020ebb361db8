// Vectors of doubles, and the functions that Hawkes processes need of them: right to a few units in the last place.
#pragma once

#include <limits>

#include "vec.hpp"

namespace retrodict {

constexpr int DW = W / 2;

typedef double dvec __attribute__((vector_size(8 * DW)));
typedef int64_t lvec __attribute__((vector_size(8 * DW)));

inline dvec larger(dvec a, dvec b) { return a > b ? a : b; }
inline dvec smaller(dvec a, dvec b) { return a < b ? a : b; }

// ln(2) as a number with zeros at its end, and what is left.
constexpr double kLog2 = 6.93147180369123816490e-01, kLog2Rest = 1.90821492927058770002e-10;
constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves a whole number in the lowest bits

// exp(x) = 2^n exp(r) with |r| <= log(2)/2, as in vec.hpp; Taylor's series of exp(r). Zero below -708.
RETRODICT_INLINE dvec exp(dvec x) {
    const dvec inside = smaller(larger(x, dvec{} - 708.0), dvec{} + 709.0);
    const dvec t = inside * 1.4426950408889634 + kShift, n = t - kShift;
    const dvec r = (inside - n * kLog2) - n * kLog2Rest;
    dvec p = dvec{} + 1.0 / 6227020800;
    for (const double c : {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                           1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0})
        p = p * r + c;
    const lvec power = (reinterpret_cast<lvec>(t) + 1023) << 52;
    return x < dvec{} - 708.0 ? dvec{} : p * reinterpret_cast<dvec>(power);
}

// log((1 + s) / (1 - s)) for |s| <= 1/3: 2 s times a series in s^2.
RETRODICT_INLINE dvec log_of_quotient(dvec s) {
    const dvec q = s * s;
    dvec p = dvec{} + 2.0 / 31;
    for (int k = 29; k > 0; k -= 2) p = p * q + 2.0 / k;
    return p * s;
}

// log(x) = e log(2) + log(m) with m from sqrt(1/2) to sqrt(2); minus infinity for what is no normal number above zero.
RETRODICT_INLINE dvec log(dvec x) {
    const lvec bits = reinterpret_cast<lvec>(x);
    const lvec e = (bits - 0x3FE6A09E667F3BCD) >> 52;
    const dvec m = reinterpret_cast<dvec>(bits - (e << 52));
    const dvec n = reinterpret_cast<dvec>(e + 0x4338000000000000) - kShift;
    const dvec found = n * kLog2 + (log_of_quotient((m - 1.0) / (m + 1.0)) + n * kLog2Rest);
    return x < dvec{} + std::numeric_limits<double>::min() ? dvec{} - std::numeric_limits<double>::infinity() : found;
}

// max(x, 0) + log(1 + y) with y = exp(-|x|).
RETRODICT_INLINE dvec softplus(dvec x) {
    const dvec y = exp(x < dvec{} ? x : -x);
    return larger(x, dvec{}) + log_of_quotient(y / (y + 2.0));
}

// Its inverse: x + log(1 - exp(-x)), where 1 - exp(-x) is a series for small x.
RETRODICT_INLINE dvec softplus_inverse(dvec x) {
    dvec p = dvec{} + 1.0 / 6227020800;
    for (const double c : {-1.0 / 479001600, 1.0 / 39916800, -1.0 / 3628800, 1.0 / 362880, -1.0 / 40320, 1.0 / 5040,
                           -1.0 / 720, 1.0 / 120, -1.0 / 24, 1.0 / 6, -0.5, 1.0})
        p = p * x + c;
    return x + log(x < dvec{} + 0.34 ? p * x : 1.0 - exp(-x));
}

// y = f(x) for n numbers.
template <class Function>
RETRODICT_INLINE void each(int n, const double* x, double* y, Function f) {
    dvec some;
    int i = 0;
    for (; i + DW <= n; i += DW) {
        std::memcpy(&some, x + i, sizeof some);
        some = f(some);
        std::memcpy(y + i, &some, sizeof some);
    }
    if (i == n) return;
    some = dvec{};
    for (int j = i; j < n; j++) some[j - i] = x[j];
    some = f(some);
    for (int j = i; j < n; j++) y[j] = some[j - i];
}

}  // namespace retrodict
