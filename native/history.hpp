// The missing events of all particles of a stream: a forest in which each event knows the one before it.
//
// A particle is the path that ends at its head, so resampling copies heads alone.
#pragma once

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

    // The count events up to head, in order of time.
    void write(int32_t head, int64_t count, double* times, int64_t* types) const {
        for (int64_t i = count - 1; i >= 0; i--, head = before_[head]) times[i] = times_[head], types[i] = types_[head];
    }

private:
    std::vector<double> times_;
    std::vector<int32_t> types_, before_;
};

}  // namespace retrodict
