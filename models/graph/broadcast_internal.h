#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "models/graph/tensor_internal.h"

namespace sluice::models::graph {

// The shape that two shapes have together, as numpy and ONNX say.
Result<Shape> BroadcastShape(const Shape& a, const Shape& b);

// How up to three operands repeat over the places of a larger shape. The places are walked in
// row-major order, whatever repeats, so that sums over them have one order.
class Broadcast {
 public:
  static constexpr size_t kOperands = 3;
  Broadcast() = default;
  Broadcast(const Shape& places, std::initializer_list<const Shape*> operands);

  // body(place, n, first): n neighbouring places from `place` on; operand k has its elements
  // first[k], first[k] + step(k), ...
  template <typename Body>
  void ForEachRun(Body body) const {
    if (places_ == 0) {
      return;
    }
    std::array<int64_t, kOperands> first{};
    std::array<int64_t, kMaxAxes> at{};
    const int64_t run = extents_[axes_ - 1];
    for (int64_t place = 0; place < places_; place += run) {
      body(static_cast<size_t>(place), static_cast<size_t>(run), first);
      for (size_t axis = axes_ - 1; axis-- > 0;) {
        for (size_t k = 0; k < kOperands; ++k) {
          first[k] += strides_[k][axis];
        }
        if (++at[axis] < extents_[axis]) {
          break;
        }
        for (size_t k = 0; k < kOperands; ++k) {
          first[k] -= strides_[k][axis] * extents_[axis];
        }
        at[axis] = 0;
      }
    }
  }
  // 0 or 1: of operand k within a run.
  size_t step(size_t k) const { return static_cast<size_t>(strides_[k][axes_ - 1]); }

 private:
  size_t axes_ = 1;  // at least one; neighbouring ones that repeat alike are one
  int64_t places_ = 0;
  std::array<int64_t, kMaxAxes> extents_{};
  std::array<std::array<int64_t, kMaxAxes>, kOperands> strides_{};
};

// Calls body with the two steps as constants, so that the compiler knows what repeats.
template <typename Body>
void WithSteps(size_t a, size_t b, Body body) {
  using Zero = std::integral_constant<size_t, 0>;
  using One = std::integral_constant<size_t, 1>;
  if (a == 1) {
    b == 1 ? body(One(), One()) : body(One(), Zero());
  } else {
    b == 1 ? body(Zero(), One()) : body(Zero(), Zero());
  }
}

// to[place] = function(a, b).
template <typename T, typename To, typename Function>
void MapPlaces(const Broadcast& broadcast, const T* a, const T* b, To* to, Function function) {
  WithSteps(broadcast.step(0), broadcast.step(1), [&](auto step_a, auto step_b) {
    broadcast.ForEachRun([&](size_t place, size_t n, const auto& first) {
      const T* own_a = a + first[0];
      const T* own_b = b + first[1];
      To* own = to + place;
      for (size_t i = 0; i < n; ++i) {
        own[i] = function(own_a[i * step_a], own_b[i * step_b]);
      }
    });
  });
}

// to += function(place), at operand k's elements, place after place.
template <typename Function>
void AddPlaces(const Broadcast& broadcast, size_t k, float* to, Function function) {
  broadcast.ForEachRun([&](size_t place, size_t n, const auto& first) {
    float* own = to + first[k];
    if (broadcast.step(k) == 1) {
      for (size_t i = 0; i < n; ++i) {
        own[i] += function(place + i, i, first);
      }
    } else {
      float sum = *own;
      for (size_t i = 0; i < n; ++i) {
        sum += function(place + i, i, first);
      }
      *own = sum;
    }
  });
}

}  // namespace sluice::models::graph
