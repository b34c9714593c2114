#pragma once

// The registers of the instruction set that the including file is compiled for, under common names.
// Included only by kernels_<set>.cc, which are compiled with special flags: do not include anything
// from the standard library here, since the linker could then keep a copy of an inline function
// that the actual processor cannot run.

#include <stddef.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace sluice::models {
namespace {

#if defined(__AVX512F__)

constexpr size_t kLanes = 16;
using Vector = __m512;
using IntVector = __m512i;

inline Vector Load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void Store(float* p, Vector v) {
  _mm512_storeu_ps(p, v);
}
inline __mmask16 FirstLanes(size_t count) {
  return static_cast<__mmask16>((1u << count) - 1u);
}
inline Vector LoadFirst(const float* p, size_t count) {
  return _mm512_maskz_loadu_ps(FirstLanes(count), p);
}
inline void StoreFirst(float* p, Vector v, size_t count) {
  _mm512_mask_storeu_ps(p, FirstLanes(count), v);
}
inline Vector Broadcast(float x) {
  return _mm512_set1_ps(x);
}
inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Vector SquareRoot(Vector x) {
  return _mm512_sqrt_ps(x);
}
inline Vector Min(Vector a, Vector b) {
  return _mm512_min_ps(a, b);
}
inline Vector Max(Vector a, Vector b) {
  return _mm512_max_ps(a, b);
}
// yes if x > 0, else no.
inline Vector SelectPositive(Vector x, Vector yes, Vector no) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), no, yes);
}
inline IntVector RoundToInt(Vector x) {
  return _mm512_cvtps_epi32(x);
}
inline Vector ToFloat(IntVector i) {
  return _mm512_cvtepi32_ps(i);
}
inline Vector PowerOfTwo(IntVector i) {  // 2^i for i in [-126, 127]
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(i, _mm512_set1_epi32(127)), 23));
}
inline Vector ExponentOf(Vector x) {  // of normal x > 0 = m 2^e with m in [0.5, 1): e
  const IntVector bits = _mm512_srli_epi32(_mm512_castps_si512(x), 23);
  return ToFloat(_mm512_sub_epi32(bits, _mm512_set1_epi32(126)));
}
inline Vector MantissaOf(Vector x) {  // m
  const IntVector bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x007fffff));
  return _mm512_castsi512_ps(_mm512_or_si512(bits, _mm512_set1_epi32(0x3f000000)));
}

#elif defined(__AVX2__) && defined(__FMA__)

constexpr size_t kLanes = 8;
using Vector = __m256;
using IntVector = __m256i;

inline Vector Load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline void Store(float* p, Vector v) {
  _mm256_storeu_ps(p, v);
}
inline __m256i FirstLanes(size_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vector LoadFirst(const float* p, size_t count) {
  return _mm256_maskload_ps(p, FirstLanes(count));
}
inline void StoreFirst(float* p, Vector v, size_t count) {
  _mm256_maskstore_ps(p, FirstLanes(count), v);
}
inline Vector Broadcast(float x) {
  return _mm256_set1_ps(x);
}
inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Vector SquareRoot(Vector x) {
  return _mm256_sqrt_ps(x);
}
inline Vector Min(Vector a, Vector b) {
  return _mm256_min_ps(a, b);
}
inline Vector Max(Vector a, Vector b) {
  return _mm256_max_ps(a, b);
}
inline Vector SelectPositive(Vector x, Vector yes, Vector no) {
  return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ));
}
inline IntVector RoundToInt(Vector x) {
  return _mm256_cvtps_epi32(x);
}
inline Vector ToFloat(IntVector i) {
  return _mm256_cvtepi32_ps(i);
}
inline Vector PowerOfTwo(IntVector i) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(i, _mm256_set1_epi32(127)), 23));
}
inline Vector ExponentOf(Vector x) {  // of normal x > 0 = m 2^e with m in [0.5, 1): e
  const IntVector bits = _mm256_srli_epi32(_mm256_castps_si256(x), 23);
  return ToFloat(_mm256_sub_epi32(bits, _mm256_set1_epi32(126)));
}
inline Vector MantissaOf(Vector x) {  // m
  const IntVector bits = _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(0x007fffff));
  return _mm256_castsi256_ps(_mm256_or_si256(bits, _mm256_set1_epi32(0x3f000000)));
}

#elif defined(__SSE2__)

constexpr size_t kLanes = 4;
using Vector = __m128;
using IntVector = __m128i;

inline Vector Load(const float* p) {
  return _mm_loadu_ps(p);
}
inline void Store(float* p, Vector v) {
  _mm_storeu_ps(p, v);
}
inline Vector LoadFirst(const float* p, size_t count) {
  float lanes[kLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    lanes[i] = p[i];
  }
  return Load(lanes);
}
inline void StoreFirst(float* p, Vector v, size_t count) {
  float lanes[kLanes];
  Store(lanes, v);
  for (size_t i = 0; i < count; ++i) {
    p[i] = lanes[i];
  }
}
inline Vector Broadcast(float x) {
  return _mm_set1_ps(x);
}
inline Vector MultiplyAdd(Vector a, Vector b, Vector c) {
  return _mm_add_ps(_mm_mul_ps(a, b), c);
}
inline Vector SquareRoot(Vector x) {
  return _mm_sqrt_ps(x);
}
inline Vector Min(Vector a, Vector b) {
  return _mm_min_ps(a, b);
}
inline Vector Max(Vector a, Vector b) {
  return _mm_max_ps(a, b);
}
inline Vector SelectPositive(Vector x, Vector yes, Vector no) {
  const Vector mask = _mm_cmpgt_ps(x, _mm_setzero_ps());
  return _mm_or_ps(_mm_and_ps(mask, yes), _mm_andnot_ps(mask, no));
}
inline IntVector RoundToInt(Vector x) {
  return _mm_cvtps_epi32(x);
}
inline Vector ToFloat(IntVector i) {
  return _mm_cvtepi32_ps(i);
}
inline Vector PowerOfTwo(IntVector i) {
  return _mm_castsi128_ps(_mm_slli_epi32(_mm_add_epi32(i, _mm_set1_epi32(127)), 23));
}
inline Vector ExponentOf(Vector x) {  // of normal x > 0 = m 2^e with m in [0.5, 1): e
  const IntVector bits = _mm_srli_epi32(_mm_castps_si128(x), 23);
  return ToFloat(_mm_sub_epi32(bits, _mm_set1_epi32(126)));
}
inline Vector MantissaOf(Vector x) {  // m
  const IntVector bits = _mm_and_si128(_mm_castps_si128(x), _mm_set1_epi32(0x007fffff));
  return _mm_castsi128_ps(_mm_or_si128(bits, _mm_set1_epi32(0x3f000000)));
}

#else
#error "the kernels need SSE2 at least: every x86-64 processor has it"
#endif

inline Vector Add(Vector a, Vector b) {
  return a + b;
}
inline Vector Negate(Vector a) {
  return Broadcast(0.0f) - a;
}

}  // namespace
}  // namespace sluice::models
