#include "tests/support/allocation_meter.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace sluice {
namespace {

std::atomic<size_t> held = 0;
std::atomic<size_t> most = 0;

}  // namespace

AllocationMeter::AllocationMeter() : before_(held) {
  most = before_;
}

size_t AllocationMeter::Peak() const {
  return most - before_;
}

}  // namespace sluice

namespace {

void* Allocate(size_t size) {
  void* memory = std::malloc(std::max<size_t>(size, 1));
  if (memory != nullptr) {
    const size_t now = sluice::held += malloc_usable_size(memory);
    size_t highest = sluice::most;
    while (now > highest && !sluice::most.compare_exchange_weak(highest, now)) {
    }
  }
  return memory;
}

void* AllocateOrThrow(size_t size) {
  void* memory = Allocate(size);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) {
    sluice::held -= malloc_usable_size(memory);
  }
  std::free(memory);
}

}  // namespace

// All overloads except those for over-aligned types: a sanitizer has its own version of any that is
// missing, and refuses to free memory from another allocator.
void* operator new(size_t size) {
  return AllocateOrThrow(size);
}
void* operator new[](size_t size) {
  return AllocateOrThrow(size);
}
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return Allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return Allocate(size);
}
void operator delete(void* memory) noexcept {
  Free(memory);
}
void operator delete[](void* memory) noexcept {
  Free(memory);
}
void operator delete(void* memory, size_t /*size*/) noexcept {
  Free(memory);
}
void operator delete[](void* memory, size_t /*size*/) noexcept {
  Free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  Free(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  Free(memory);
}
