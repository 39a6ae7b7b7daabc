// Memory for large tables with random access: on huge pages if the system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tallybayes {

// n zero-initialized elements.
template <class T>
class Zeros {
 public:
  explicit Zeros(size_t n = 0) : n_(n) {
    if (!n) return;
    if (n > SIZE_MAX / (2 * sizeof(T))) throw std::bad_alloc();
#if defined(__linux__)
    if (n * sizeof(T) >= large_page) {
      mapped_ = n * sizeof(T) + large_page;
      memory_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory_ == MAP_FAILED) throw std::bad_alloc();
      const uintptr_t start = (reinterpret_cast<uintptr_t>(memory_) + large_page - 1) & ~(large_page - 1);
      data_ = reinterpret_cast<T*>(start);
      madvise(data_, n * sizeof(T), MADV_HUGEPAGE);  // failure only costs time
      return;
    }
#endif
    memory_ = std::calloc(n, sizeof(T));
    if (!memory_) throw std::bad_alloc();
    data_ = static_cast<T*>(memory_);
  }
  ~Zeros() {
#if defined(__linux__)
    if (mapped_) {
      munmap(memory_, mapped_);
      return;
    }
#endif
    std::free(memory_);
  }
  Zeros(Zeros&& other) noexcept { swap(other); }
  Zeros& operator=(Zeros&& other) noexcept {
    swap(other);
    return *this;
  }

  void swap(Zeros& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
  }
  size_t size() const { return n_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](size_t k) { return data_[k]; }
  const T& operator[](size_t k) const { return data_[k]; }
  T* begin() { return data_; }
  T* end() { return data_ + n_; }

 private:
  static constexpr uintptr_t large_page = uintptr_t{2} << 20;
  void* memory_ = nullptr;
  size_t mapped_ = 0;
  T* data_ = nullptr;
  size_t n_ = 0;
};

}  // namespace tallybayes
