#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::elastic {

inline constexpr size_t kMaxFurtherResources = 4;

// The capacity of a node, or the request of a process.
struct Capacity {
  double cpu = 0;
  int64_t memory_bytes = 0;
  double gpu = 0;
  double processes = 0;  // how many a node takes; a process requests one where that is limited
  std::array<double, kMaxFurtherResources> further{};  // of kinds that only the caller knows

  bool Fits(const Capacity& request) const;
  Capacity& operator+=(const Capacity& other);
  Capacity& operator-=(const Capacity& other);
};
Capacity operator*(const Capacity& one, double times);

}  // namespace sluice::elastic
