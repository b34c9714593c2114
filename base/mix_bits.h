#pragma once

#include <cstdint>

namespace sluice {

// SplitMix64's finaliser (Steele, Lea, Flood 2014): a bijection in which every input bit affects
// every output bit, so counters are suitable as input. 0 maps to 0.
constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace sluice
