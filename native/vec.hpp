// Vectors of floats as wide as the processor's registers, and the functions an LSTM needs of them.
//
// Written with the vector extensions of GCC and Clang, so one source serves AVX-512, AVX2, SSE and NEON: the width
// follows from the flags that the file is compiled with.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

// Compilers think these functions too long to be worth it, and calls spill every register.
#define RETRODICT_INLINE inline __attribute__((always_inline))

namespace retrodict {

#if defined(__AVX512F__)
constexpr int W = 16;
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float vec __attribute__((vector_size(4 * W)));
typedef int32_t ivec __attribute__((vector_size(4 * W)));

inline int padded(int n) { return (n + W - 1) / W * W; }

inline vec load(const float* p) { return *reinterpret_cast<const vec*>(p); }
inline void store(float* p, vec x) { *reinterpret_cast<vec*>(p) = x; }

// How numbers of a kind are worked on: floats by the vector, doubles one by one.
template <class Real>
struct Lanes;
template <>
struct Lanes<float> {
    using Type = vec;
    static constexpr int width = W;
};
template <>
struct Lanes<double> {
    using Type = double;
    static constexpr int width = 1;
};
inline double load(const double* p) { return *p; }
inline void store(double* p, double x) { *p = x; }
inline double larger(double a, double b) { return a > b ? a : b; }
inline double smaller(double a, double b) { return a < b ? a : b; }
inline double magnitude(double x) { return x < 0 ? -x : x; }
inline double sum(double x) { return x; }

inline vec larger(vec a, vec b) { return a > b ? a : b; }
inline vec smaller(vec a, vec b) { return a < b ? a : b; }
inline vec clamp(vec x, float low, float high) { return smaller(larger(x, vec{} + low), vec{} + high); }
inline vec magnitude(vec x) { return reinterpret_cast<vec>(reinterpret_cast<ivec>(x) & 0x7FFFFFFF); }

RETRODICT_INLINE vec reciprocal(vec x) {
#if defined(__AVX512F__)
    // An estimate of 14 bits and one step of Newton's method: faster than division, 23 bits right.
    vec r = reinterpret_cast<vec>(_mm512_rcp14_ps(reinterpret_cast<__m512>(x)));
    return r * (2.0f - x * r);
#else
    return 1.0f / x;
#endif
}

inline float sum(vec x) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps(reinterpret_cast<__m512>(x));
#else
    float total = 0;
    for (int i = 0; i < W; i++) total += x[i];
    return total;
#endif
}

// exp(x) = 2^n exp(r) with |r| <= log(2)/2; n is found by adding 1.5 * 2^23, which leaves it in the lowest bits.
RETRODICT_INLINE vec exp(vec x) {
#if defined(__AVX512F__)
    // The same by powers of two, which instructions of this set take apart and put together.
    const vec t = x * 1.44269504f;
    const __m512 n = _mm512_roundscale_ps(reinterpret_cast<__m512>(t), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const vec r = t - reinterpret_cast<vec>(n);
    vec p = r * 0.00132647272f + 0.00967151264f;
    p = p * r + 0.0555073374f;
    p = p * r + 0.240222421f;
    p = p * r + 0.693146978f;
    p = p * r + 1.0f;
    return reinterpret_cast<vec>(_mm512_scalef_ps(reinterpret_cast<__m512>(p), n));
#else
    x = clamp(x, -87.0f, 88.0f);
    constexpr float shift = 12582912.0f;
    vec t = x * 1.44269504f + shift;
    vec n = t - shift;
    vec r = x - n * 0.693359375f;
    r = r + n * 2.12194440e-4f;
    vec p = r * (1.0f / 720) + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    ivec power = (reinterpret_cast<ivec>(t) + 127) << 23;
    return p * reinterpret_cast<vec>(power);
#endif
}

// An odd polynomial over an even one, right to a few units in the last place.
RETRODICT_INLINE vec tanh(vec x) {
#if defined(__AVX512DQ__)
    constexpr int smaller_size = 2;
    x = reinterpret_cast<vec>(_mm512_range_ps(reinterpret_cast<__m512>(x), _mm512_set1_ps(7.9f), smaller_size));
#else
    x = clamp(x, -7.9f, 7.9f);
#endif
    vec q = x * x;
    vec p = q * -2.76076847742355e-16f + 2.00018790482477e-13f;
    p = p * q + -8.60467152213735e-11f;
    p = p * q + 5.12229709037114e-08f;
    p = p * q + 1.48572235717979e-05f;
    p = p * q + 6.37261928875436e-04f;
    p = p * q + 4.89352455891786e-03f;
    vec d = q * 1.19825839466702e-06f + 1.18534705686654e-04f;
    d = d * q + 2.26843463243900e-03f;
    d = d * q + 4.89352518554385e-03f;
    return p * x * reciprocal(d);
}

RETRODICT_INLINE vec sigmoid(vec x) { return tanh(x * 0.5f) * 0.5f + 0.5f; }

// max(x, 0) + log(1 + y) with y = exp(-|x|), by the series of log((1 + s) / (1 - s)) at s = y / (2 + y) <= 1/3.
RETRODICT_INLINE vec softplus(vec x) {
    vec y = exp(-magnitude(x));
    vec s = y * reciprocal(y + 2.0f);
    vec q = s * s;
    vec p = q * (2.0f / 13) + 2.0f / 11;
    p = p * q + 2.0f / 9;
    p = p * q + 2.0f / 7;
    p = p * q + 2.0f / 5;
    p = p * q + 2.0f / 3;
    p = p * q + 2.0f;
    return larger(x, vec{}) + p * s;
}

}  // namespace retrodict
