#pragma once

// Random values from counters. Included by initialize.cc for the mixer, and by kernels_<set>.cc,
// which are compiled with special flags: do not include anything from the standard library here.

#include <stddef.h>
#include <stdint.h>

#include "models/kernels/kernels.h"

namespace sluice::models {
namespace {

constexpr size_t kBlockPairs = kInitialValues / 2;
constexpr size_t kPairs = kInitialBlocks * kBlockPairs;
constexpr uint64_t kCounterStep = 0x9e3779b97f4a7c15u;
constexpr float kLn2 = 0.693147180559945309F;
constexpr float kHalfPi = 1.57079632679489662F;

// SplitMix64's finaliser (Steele, Lea, Flood 2014): every input bit affects every output bit, so
// counters are suitable as input.
inline uint64_t MixBits(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

// 64 random bits for each pair, 32 for each of its values.
inline void RandomBits(uint64_t key, const uint64_t* first_pairs, uint64_t* bits) {
  for (size_t block = 0; block < kInitialBlocks; ++block) {
    const uint64_t start = key + (first_pairs[block] + 1) * kCounterStep;
    // Kept as a loop: from unrolled statements the compiler makes shorter vectors.
#pragma GCC unroll 1
    for (size_t i = 0; i < kBlockPairs; ++i) {
      bits[block * kBlockPairs + i] = MixBits(start + i * kCounterStep);
    }
  }
}
inline int32_t Left(uint64_t bits) {
  return static_cast<int32_t>(bits >> 32);
}
inline int32_t Right(uint64_t bits) {
  return static_cast<int32_t>(bits);
}

// The code below has no branch, call or fused operation, so the compiler vectorises it and the
// vector width does not change the result.

// [-1, 1].
inline float Signed(int32_t bits) {
  return static_cast<float>(bits) * 0x1p-31F;
}

// ln x for normal x: x = 2^e m with m about 1, and ln m = 2 atanh((m - 1) / (m + 1)), whose series
// is exact to a float's precision after the fifth term.
inline float Log(float x) {
  constexpr int32_t kRootHalf = 0x3f3504f3;  // the bits of sqrt(1/2), the smallest m
  constexpr int32_t kMantissa = 0x007fffff;
  const int32_t bits = __builtin_bit_cast(int32_t, x) + (0x3f800000 - kRootHalf);
  const float exponent = static_cast<float>((bits >> 23) - 127);
  const float m = __builtin_bit_cast(float, (bits & kMantissa) + kRootHalf);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float z = s * s;
  const float series = 1.0F + z * (1.0F / 3 + z * (1.0F / 5 + z * (1.0F / 7 + z * (1.0F / 9))));
  return exponent * kLn2 + 2.0F * s * series;
}

// The Taylor series for |x| <= pi / 2, to a float's precision.
inline float Sine(float x) {
  const float z = x * x;
  return x * (1.0F + z * (-1.0F / 6 +
                          z * (1.0F / 120 +
                               z * (-1.0F / 5040 + z * (1.0F / 362880 + z * (-1.0F / 39916800))))));
}
inline float Cosine(float x) {
  const float z = x * x;
  return 1.0F + z * (-1.0F / 2 +
                     z * (1.0F / 24 +
                          z * (-1.0F / 720 + z * (1.0F / 40320 + z * (-1.0F / 3628800 +
                                                                      z * (1.0F / 479001600))))));
}

inline void Uniforms(uint64_t key, const uint64_t* first_pairs, float limit, float* values) {
  uint64_t bits[kPairs];
  RandomBits(key, first_pairs, bits);
  for (size_t i = 0; i < kPairs; ++i) {
    values[2 * i] = limit * Signed(Left(bits[i]));
    values[2 * i + 1] = limit * Signed(Right(bits[i]));
  }
}

// Box and Muller 1958.
inline void Normals(uint64_t key, const uint64_t* first_pairs, float stddev, float* values) {
  uint64_t bits[kPairs];
  RandomBits(key, first_pairs, bits);
  for (size_t i = 0; i < kPairs; ++i) {
    // (0, 1]: never less than 2^-32, so that the radius is at most 6.7.
    const float uniform = (static_cast<float>(Left(bits[i]) & 0x7fffffff) + 0.5F) * 0x1p-31F;
    const float radius = stddev * __builtin_sqrtf(-2.0F * Log(uniform));
    // Computed from half of the full turn, where the series are accurate.
    const float half = Signed(Right(bits[i])) * (kHalfPi);
    const float sine = Sine(half);
    values[2 * i] = radius * (1.0F - 2.0F * sine * sine);
    values[2 * i + 1] = radius * (2.0F * sine * Cosine(half));
  }
}

}  // namespace
}  // namespace sluice::models
