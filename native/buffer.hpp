// Memory aligned for vectors, grown but never shrunk.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

namespace retrodict {

template <class T>
class Buffer {
    static_assert(std::is_trivially_copyable<T>::value, "plain numbers only");

public:
    Buffer() = default;
    explicit Buffer(size_t n) { reserve(n); }
    Buffer(Buffer&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr, other.size_ = 0; }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(data_); }

    // Room for n numbers; what was there is lost where it has to grow.
    void reserve(size_t n) {
        if (n <= size_) return;
        std::free(data_);
        data_ = static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 127) / 64 * 64));
        if (!data_) throw std::bad_alloc();
        size_ = n;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

private:
    T* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace retrodict
