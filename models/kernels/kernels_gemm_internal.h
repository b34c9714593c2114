#pragma once

#include "models/kernels/kernels.h"
#include "models/kernels/vector_internal.h"

// Matrix product. Included only by kernels_<set>.cc: see vector_internal.h.
namespace sluice::models {
namespace {

// The initial value of a block of C.
enum class Start { kZero, kBias, kAdd };

// Rows x vectors of C held in registers. AVX-512 has 32 registers, the others 16; the remaining
// ones hold a row of B and one broadcast of A.
#if defined(__AVX512F__)
constexpr size_t kPanelVectors = 4;
constexpr size_t kTallRows = 12;  // for panels of at most two vectors
#else
constexpr size_t kPanelVectors = 2;
constexpr size_t kTallRows = 6;
#endif
constexpr size_t kBlockRows = 6;
constexpr size_t kPanelColumns = kPanelVectors * kLanes;
// Rows of B that are processed before the next ones: their panel (256 KiB with AVX-512) stays in
// the second-level cache however many rows the batch has. The result is the same to the bit, since
// the sums continue where they stopped.
constexpr size_t kBlockDepth = 1024;

// One block of kRows x kVectors vectors. The last vector has `last` lanes if kPartial.
template <size_t kRows, size_t kVectors, bool kPartial>
void Block(const GemmShape& s, const float* a, const float* b, const float* bias, float* c,
           Start start, size_t last) {
  Vector sums[kRows][kVectors];
  for (size_t j = 0; j < kVectors; ++j) {
    const bool partial = kPartial && j + 1 == kVectors;
    Vector first = Broadcast(0.0f);
    if (start == Start::kBias) {
      first = partial ? LoadFirst(bias + j * kLanes, last) : Load(bias + j * kLanes);
    }
    for (size_t i = 0; i < kRows; ++i) {
      const float* own = c + i * s.c_stride + j * kLanes;
      sums[i][j] = start == Start::kAdd ? (partial ? LoadFirst(own, last) : Load(own)) : first;
    }
  }
  for (size_t k = 0; k < s.k; ++k) {
    Vector row[kVectors];
#pragma GCC unroll 4
    for (size_t j = 0; j < kVectors; ++j) {
      row[j] =
          kPartial && j + 1 == kVectors ? LoadFirst(b + j * kLanes, last) : Load(b + j * kLanes);
    }
#pragma GCC unroll 12
    for (size_t i = 0; i < kRows; ++i) {
      const Vector factor = Broadcast(a[i * s.a_row_stride]);
#pragma GCC unroll 4
      for (size_t j = 0; j < kVectors; ++j) {
        sums[i][j] = MultiplyAdd(factor, row[j], sums[i][j]);
      }
    }
    a += s.a_column_stride;
    b += s.b_stride;
  }
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t j = 0; j < kVectors; ++j) {
      float* own = c + i * s.c_stride + j * kLanes;
      if (kPartial && j + 1 == kVectors) {
        StoreFirst(own, sums[i][j], last);
      } else {
        Store(own, sums[i][j]);
      }
    }
  }
}

// All rows of one panel, in the tallest blocks that fit.
template <size_t kVectors, bool kPartial>
void Panel(const GemmShape& s, const float* a, const float* b, const float* bias, float* c,
           Start start, size_t last) {
  size_t i = 0;
  if constexpr (kVectors <= 2 && kTallRows > kBlockRows) {
    for (; i + kTallRows <= s.m; i += kTallRows) {
      Block<kTallRows, kVectors, kPartial>(s, a + i * s.a_row_stride, b, bias, c + i * s.c_stride,
                                           start, last);
    }
  }
  for (; i + kBlockRows <= s.m; i += kBlockRows) {
    Block<kBlockRows, kVectors, kPartial>(s, a + i * s.a_row_stride, b, bias, c + i * s.c_stride,
                                          start, last);
  }
  for (; i + 4 <= s.m; i += 4) {
    Block<4, kVectors, kPartial>(s, a + i * s.a_row_stride, b, bias, c + i * s.c_stride, start,
                                 last);
  }
  for (; i < s.m; ++i) {
    Block<1, kVectors, kPartial>(s, a + i * s.a_row_stride, b, bias, c + i * s.c_stride, start,
                                 last);
  }
}

void AnyPanel(const GemmShape& s, size_t columns, const float* a, const float* b, const float* bias,
              float* c, Start start) {
  const size_t vectors = (columns + kLanes - 1) / kLanes;
  const size_t last = columns - (vectors - 1) * kLanes;
  const bool partial = last != kLanes;
  switch (vectors * 2 + (partial ? 1 : 0)) {
    case 2:
      return Panel<1, false>(s, a, b, bias, c, start, last);
    case 3:
      return Panel<1, true>(s, a, b, bias, c, start, last);
    case 4:
      return Panel<2, false>(s, a, b, bias, c, start, last);
    case 5:
      return Panel<2, true>(s, a, b, bias, c, start, last);
#if defined(__AVX512F__)
    case 6:
      return Panel<3, false>(s, a, b, bias, c, start, last);
    case 7:
      return Panel<3, true>(s, a, b, bias, c, start, last);
    case 8:
      return Panel<4, false>(s, a, b, bias, c, start, last);
    case 9:
      return Panel<4, true>(s, a, b, bias, c, start, last);
#endif
    default:
      return;  // no columns
  }
}

void GemmFrom(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
              Start start) {
  GemmShape block = shape;
  size_t k = 0;
  do {  // at least once, even if k == 0: C still has to start from 0 or the bias
    block.k = shape.k - k < kBlockDepth ? shape.k - k : kBlockDepth;
    for (size_t j = 0; j < shape.n; j += kPanelColumns) {
      const size_t columns = shape.n - j < kPanelColumns ? shape.n - j : kPanelColumns;
      AnyPanel(block, columns, a + k * shape.a_column_stride, b + k * shape.b_stride + j,
               bias == nullptr ? nullptr : bias + j, c + j, k == 0 ? start : Start::kAdd);
    }
    k += block.k;
  } while (k < shape.k);
}

void Gemm(const GemmShape& shape, const float* a, const float* b, float* c) {
  GemmFrom(shape, a, b, nullptr, c, Start::kZero);
}
void GemmBias(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c) {
  GemmFrom(shape, a, b, bias, c, Start::kBias);
}
void GemmAdd(const GemmShape& shape, const float* a, const float* b, float* c) {
  GemmFrom(shape, a, b, nullptr, c, Start::kAdd);
}

// Sixteen values in registers: takes a quarter of the time of copying one by one.
inline void TransposeSquare(const float* from, size_t from_stride, float* to, size_t to_stride) {
  const __m128 a = _mm_loadu_ps(from);
  const __m128 b = _mm_loadu_ps(from + from_stride);
  const __m128 c = _mm_loadu_ps(from + 2 * from_stride);
  const __m128 d = _mm_loadu_ps(from + 3 * from_stride);
  const __m128 low_ab = _mm_unpacklo_ps(a, b);
  const __m128 low_cd = _mm_unpacklo_ps(c, d);
  const __m128 high_ab = _mm_unpackhi_ps(a, b);
  const __m128 high_cd = _mm_unpackhi_ps(c, d);
  _mm_storeu_ps(to, _mm_movelh_ps(low_ab, low_cd));
  _mm_storeu_ps(to + to_stride, _mm_movehl_ps(low_cd, low_ab));
  _mm_storeu_ps(to + 2 * to_stride, _mm_movelh_ps(high_ab, high_cd));
  _mm_storeu_ps(to + 3 * to_stride, _mm_movehl_ps(high_cd, high_ab));
}

void Transpose(size_t rows, size_t columns, const float* from, size_t from_stride, float* to,
               size_t to_stride) {
  constexpr size_t kSide = 4;
  const size_t whole_rows = rows / kSide * kSide;
  const size_t whole_columns = columns / kSide * kSide;
  for (size_t j = 0; j < whole_columns; j += kSide) {
    for (size_t i = 0; i < whole_rows; i += kSide) {
      TransposeSquare(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j) {
      to[j * to_stride + i] = from[i * from_stride + j];
    }
  }
}

void RowDots(size_t rows, size_t columns, const float* values, size_t stride, const float* weights,
             float bias, float* dots) {
  constexpr size_t kSums = 16;
  constexpr size_t kVectors = kSums / kLanes;
  for (size_t r = 0; r < rows; ++r) {
    const float* row = values + r * stride;
    Vector sums[kVectors];
    for (Vector& sum : sums) {
      sum = Broadcast(0.0f);
    }
    size_t k = 0;
    for (; k + kSums <= columns; k += kSums) {
      for (size_t v = 0; v < kVectors; ++v) {
        const size_t at = k + v * kLanes;
        sums[v] = MultiplyAdd(Load(row + at), Load(weights + at), sums[v]);
      }
    }
    for (size_t v = 0; v < kVectors && k < columns; ++v, k += kLanes) {
      const size_t count = columns - k < kLanes ? columns - k : kLanes;
      sums[v] = MultiplyAdd(LoadFirst(row + k, count), LoadFirst(weights + k, count), sums[v]);
    }
    float lanes[kSums];
    for (size_t v = 0; v < kVectors; ++v) {
      Store(lanes + v * kLanes, sums[v]);
    }
    for (size_t half = kSums / 2; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) {
        lanes[i] += lanes[i + half];
      }
    }
    dots[r] = bias + lanes[0];
  }
}

void ColumnSums(size_t rows, size_t columns, const float* values, size_t stride, float* sums) {
  size_t j = 0;
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes) {
    Vector low = Broadcast(0.0f);
    Vector high = low;
    for (size_t i = 0; i < rows; ++i) {
      low = Add(low, Load(values + i * stride + j));
      high = Add(high, Load(values + i * stride + j + kLanes));
    }
    Store(sums + j, low);
    Store(sums + j + kLanes, high);
  }
  for (; j < columns; j += kLanes) {
    const size_t count = columns - j < kLanes ? columns - j : kLanes;
    Vector sum = Broadcast(0.0f);
    for (size_t i = 0; i < rows; ++i) {
      sum = Add(sum, LoadFirst(values + i * stride + j, count));
    }
    StoreFirst(sums + j, sum, count);
  }
}

}  // namespace
}  // namespace sluice::models
