// Resampling schemes (smc/resampling.py): which particles live on, and how often.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace retrodict {

enum Scheme { kNone = 0, kMultinomial, kStratified, kSystematic, kResidual };

// The particle on whose stretch of the unit interval a point falls.
class Inverse {
public:
    explicit Inverse(const std::vector<double>& weights) : edges_(weights.size()) {
        double sum = 0;
        for (size_t m = 0; m < weights.size(); m++) {
            edges_[m] = sum += weights[m];
            if (weights[m] > 0) highest_ = static_cast<int>(m);
        }
        for (double& edge : edges_) edge /= sum;
    }

    int operator()(double point) const {
        auto where = std::upper_bound(edges_.begin(), edges_.end(), point) - edges_.begin();
        return std::min(static_cast<int>(where), highest_);
    }

private:
    std::vector<double> edges_;
    int highest_ = 0;
};

// weights [M] are normalised, u(m) the m-th uniform number.
template <class Uniform>
void resample(Scheme scheme, const std::vector<double>& weights, Uniform u, std::vector<int>& parents) {
    const int M = static_cast<int>(weights.size());
    parents.resize(M);
    if (scheme != kResidual) {
        Inverse inverse(weights);
        for (int m = 0; m < M; m++)
            parents[m] = inverse(scheme == kMultinomial ? u(m) : (m + u(scheme == kSystematic ? 0 : m)) / M);
        return;
    }
    std::vector<double> left(M);
    int given = 0;
    double rest = 0;
    for (int m = 0; m < M; m++) {
        // A share that is whole but for rounding counts as whole.
        int certain = std::min(M - given, static_cast<int>(std::floor(weights[m] * M + 1e-9)));
        for (int i = 0; i < certain; i++) parents[given++] = m;
        rest += left[m] = std::max(weights[m] * M - certain, 0.0);
    }
    Inverse inverse(rest > 0 ? left : weights);
    for (int m = given; m < M; m++) parents[m] = inverse(u(m));
}

}  // namespace retrodict
