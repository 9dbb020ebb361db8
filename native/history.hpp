// The missing events of all particles of a stream: a forest in which each event knows the one before it.
//
// A particle is the path that ends at its head, so resampling copies heads alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace retrodict {

class History {
public:
    static constexpr int32_t kNothing = -1;

    int32_t append(int32_t head, double time, int32_t type) {
        times_.push_back(time), types_.push_back(type), before_.push_back(head);
        return static_cast<int32_t>(times_.size()) - 1;
    }

    size_t size() const { return times_.size(); }

    // All events, as they are numbered from ``first`` on.
    void write(int32_t first, double* times, int32_t* types, int32_t* before) const {
        std::copy(times_.begin(), times_.end(), times);
        std::copy(types_.begin(), types_.end(), types);
        for (size_t i = 0; i < before_.size(); i++) before[i] = before_[i] == kNothing ? kNothing : before_[i] + first;
    }

private:
    std::vector<double> times_;
    std::vector<int32_t> types_, before_;
};

}  // namespace retrodict
