// The end atom: the probability that an event is the last one of its stream (models/end.py).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace retrodict {

struct EndAtom {
    std::vector<double> by_count;    // of the first event, the second ...; empty where the model has no atom
    std::vector<double> by_type;
    double by_time = 0;              // per unit of the streams' time
    std::vector<double> by_feature;

    explicit operator bool() const { return !by_count.empty(); }

    // log pi of a last event, log(1 - pi) of another: the n-th, of a type, at a time, with a sum over features.
    double log_prob(int64_t n, int type, double time, double features, bool last) const {
        const int64_t place = std::min<int64_t>(n, static_cast<int64_t>(by_count.size())) - 1;
        const double odds = by_count[place] + by_type[type] + by_time * time + features, x = last ? -odds : odds;
        return x > 0 ? -x - std::log1p(std::exp(-x)) : -std::log1p(std::exp(x));
    }
};

}  // namespace retrodict
