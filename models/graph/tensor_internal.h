#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

// The values that pass between the operators of a graph.
namespace sluice::models::graph {

using Shape = std::vector<int64_t>;

// Rows, steps of a sequence, channels, heads and directions: models of tables rarely have more than
// five axes.
constexpr size_t kMaxAxes = 8;
// Of one value of one batch: 1 GiB of floats. A larger shape is a mistake.
constexpr int64_t kMaxElements = int64_t{1} << 28;

enum class ElementType { kFloat, kInteger, kBool, kBag };

// The ids that each row of the batch has of a feature. For a table, `positions` are indices into
// its rows in the batch (RowSet::positions); for an input, they are the ids themselves.
struct RowUse {
  std::span<const uint32_t> positions;
  std::span<const uint32_t> ends;  // as IdSlot::ends; empty: one per row
  std::span<const float> weights;  // as IdSlot::weights
};

struct Tensor;

// By which inputs a table is read, and the positions of their ids among its rows in the batch.
struct TableReads {
  std::vector<const Tensor*> inputs;
  std::vector<RowUse> uses;  // by input
  // nullptr: it is not one of them. `likely`: where it may be found at once.
  const RowUse* By(const Tensor& input, size_t likely = 0) const;
};

// A value of the current batch. Numbers are row-major; booleans are the integers 0 and 1. Bags (a
// variable number of ids per row) have no elements: only EmbeddingBag reads them.
struct Tensor {
  ElementType type = ElementType::kFloat;
  Shape shape;
  bool known = false;                 // before a batch: its elements may determine shapes
  bool fixed = false;                 // the same for all batches of a size
  bool trained = false;               // its gradient is needed
  bool written = false;               // `gradient`, by this batch's Backward
  float* numbers = nullptr;           // kFloat
  int64_t* integers = nullptr;        // kInteger, kBool
  float* gradient = nullptr;          // of `numbers`, from Backward on
  size_t gradient_count = 0;          // of a table: for the rows of the batch
  const RowUse* use = nullptr;        // of a bag
  const TableReads* reads = nullptr;  // of a table
  // Where it lies in a wider value: the distance of its rows, along the last axis. Else 0.
  size_t line = 0;
  Tensor* base = nullptr;  // what a view shows in another shape; they share their gradient

  int64_t size() const {
    int64_t size = 1;
    for (const int64_t extent : shape) {
      size *= extent;
    }
    return size;
  }
  size_t count() const { return static_cast<size_t>(size()); }
  size_t axes() const { return shape.size(); }
  // The value whose `written` counts for `gradient`: of views, what they show.
  Tensor& gradient_owner() { return base == nullptr ? *this : *base; }
  const Tensor& gradient_owner() const { return base == nullptr ? *this : *base; }
};

// The product of the extents of the axes [begin, end).
int64_t ExtentOf(const Shape& shape, size_t begin, size_t end);
inline int64_t ExtentOf(const Shape& shape, size_t begin) {
  return ExtentOf(shape, begin, shape.size());
}
// "[256, 64]".
std::string ShapeText(const Shape& shape);
std::string_view TypeText(ElementType type);
// Fails if it is too large for a batch.
Status CheckShape(const Shape& shape);
Status NoBag(const Tensor& tensor);
// Calls body(from, to) with the elements of both, for their element type.
template <typename Body>
void WithElements(const Tensor& from, const Tensor& to, Body body) {
  if (from.type == ElementType::kFloat) {
    body(static_cast<const float*>(from.numbers), to.numbers);
  } else {
    body(static_cast<const int64_t*>(from.integers), to.integers);
  }
}
// Negative: counted from the end.
Result<size_t> AxisOf(int64_t axis, size_t axes);

}  // namespace sluice::models::graph
