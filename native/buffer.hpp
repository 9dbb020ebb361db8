// Memory aligned for vectors, grown but never shrunk.
#pragma once

#include <cstddef>
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
    ~Buffer() { release(); }

    // Room for n numbers; what was there is lost where it has to grow.
    void reserve(size_t n) {
        if (n <= size_) return;
        release();
        data_ = static_cast<T*>(::operator new(n * sizeof(T) + 64, std::align_val_t{64}));
        size_ = n;
    }

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](size_t i) { return data_[i]; }
    const T& operator[](size_t i) const { return data_[i]; }

private:
    void release() {
        if (data_) ::operator delete(data_, std::align_val_t{64});
        data_ = nullptr, size_ = 0;
    }

    T* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace retrodict
