#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace sluice {

// What the processor's translation cache and the kernel handle as one page: randomly accessed
// tables miss that cache less often, and fault less often when they are new.
inline constexpr size_t kHugePage = size_t{2} << 20;

// Memory for std::vector and the like; large allocations are placed in huge pages if the kernel has
// some.
template <typename T>
struct HugePageAllocator {
  using value_type = T;
  HugePageAllocator() = default;
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    if (bytes < kHugePage) {
      return std::allocator<T>().allocate(count);
    }
    const size_t pages = (bytes + kHugePage - 1) / kHugePage;
    void* memory = std::aligned_alloc(kHugePage, pages * kHugePage);
    if (memory == nullptr) {
      throw std::bad_alloc();
    }
    static_cast<void>(madvise(memory, pages * kHugePage, MADV_HUGEPAGE));  // or small ones
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t count) {
    if (count * sizeof(T) < kHugePage) {
      std::allocator<T>().deallocate(memory, count);
    } else {
      std::free(memory);
    }
  }
  bool operator==(const HugePageAllocator&) const = default;
};

// Values that are not initialised.
template <typename T>
class HugePageBlock {
 public:
  explicit HugePageBlock(size_t count) : count_(count), values_(Allocator().allocate(count)) {}
  ~HugePageBlock() {
    if (values_ != nullptr) {
      Allocator().deallocate(values_, count_);
    }
  }
  HugePageBlock(HugePageBlock&& other) noexcept
      : count_(other.count_), values_(std::exchange(other.values_, nullptr)) {}
  HugePageBlock(const HugePageBlock&) = delete;
  HugePageBlock& operator=(const HugePageBlock&) = delete;
  HugePageBlock& operator=(HugePageBlock&&) = delete;

  T* data() const { return values_; }

 private:
  using Allocator = HugePageAllocator<T>;
  const size_t count_;
  T* values_;
};

}  // namespace sluice
