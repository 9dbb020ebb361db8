// Counter-based random numbers: the same SplitMix64 keys as retrodict/random.py, bit for bit.
#pragma once

#include <cmath>
#include <cstdint>

namespace retrodict {

constexpr uint64_t kStep = 0x9E3779B97F4A7C15ull;

inline uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

inline uint64_t split(uint64_t key, uint64_t branch) { return mix(mix(key) + (branch + 1) * kStep); }

// In the open interval (0, 1).
inline double uniform(uint64_t key, uint64_t counter) {
    return (static_cast<double>(mix(key + (counter + 1) * kStep) >> 12) + 0.5) * 0x1p-52;
}

// The numbers of one particle, in order.
struct Draws {
    uint64_t key = 0, counter = 0;
    double next() { return uniform(key, counter++); }
    double exponential() { return -std::log(next()); }
};

// Branches of a stream's key (as in smc/sampler.py).
constexpr uint64_t kResampleBranch = 6, kParticleBranch = 8;

}  // namespace retrodict
