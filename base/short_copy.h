#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace sluice {

// As std::copy_n, for runs of mostly a few numbers, of which there are so many that the call of a
// library's memmove would cost more than the copies. The runs do not overlap.
template <typename Number>
inline void CopyShort(const Number* from, size_t count, Number* to) {
  static_assert(std::is_trivially_copyable_v<Number>);
  constexpr size_t kTogether = 16 / sizeof(Number);
  constexpr size_t kShort = 8 * kTogether;
  static_assert(kTogether > 0);
  if (count > kShort) {
    std::memcpy(to, from, count * sizeof(Number));
    return;
  }
  while (count >= kTogether) {
    std::memcpy(to, from, kTogether * sizeof(Number));  // one instruction
    from += kTogether;
    to += kTogether;
    count -= kTogether;
  }
  for (size_t i = 0; i < count; ++i) {
    to[i] = from[i];
  }
}

}  // namespace sluice
