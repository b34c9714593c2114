#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

// What flows between the operators of a graph.
namespace sluice::models::graph {

using Shape = std::vector<int64_t>;

// Rows, a step of a sequence, its channels, heads and directions: five axes is the most that models
// of tables were seen to have.
constexpr size_t kMostAxes = 8;
// Of one value of one batch, 1 GiB of floats: beyond it a shape is a mistake, not a model.
constexpr int64_t kMostElements = int64_t{1} << 28;

enum class ElementType { kFloat, kInteger, kBool, kBag };

// What each row of the batch has of a feature of several ids. As a table's, `positions` count its
// rows in the batch (RowSet::positions); as an input's, they are the ids themselves.
struct RowUse {
  std::span<const uint32_t> positions;
  std::span<const uint32_t> ends;  // as IdSlot::ends: empty: one per row
  std::span<const float> weights;  // as IdSlot::weights
};

// A value as the batch at hand has it. Numbers are row-major; booleans are integers 0 and 1. Bags
// (the ids of a feature, as many per row as there are) have no elements: only EmbeddingBag reads
// them.
struct Tensor {
  ElementType type = ElementType::kFloat;
  Shape shape;
  bool known = false;           // before a batch: its elements may decide shapes
  bool fixed = false;           // the same for all batches of a size
  bool trained = false;         // somebody wants its gradient
  bool written = false;         // of `gradient`, by this batch's way back
  float* numbers = nullptr;     // kFloat
  int64_t* integers = nullptr;  // kInteger, kBool
  float* gradient = nullptr;    // of `numbers`, once the way back has begun
  size_t gradient_count = 0;    // of a table: of the rows that the batch has
  const RowUse* use = nullptr;  // a table's rows, a bag's ids

  int64_t size() const {
    int64_t size = 1;
    for (const int64_t extent : shape) {
      size *= extent;
    }
    return size;
  }
  size_t count() const { return static_cast<size_t>(size()); }
  size_t axes() const { return shape.size(); }
};

// The product of the extents of the axes [begin, end).
int64_t ExtentOf(const Shape& shape, size_t begin, size_t end);
inline int64_t ExtentOf(const Shape& shape, size_t begin) {
  return ExtentOf(shape, begin, shape.size());
}
// "[256, 64]".
std::string ShapeText(const Shape& shape);
std::string_view TypeText(ElementType type);
// Fails where a batch could not hold it.
Status CheckShape(const Shape& shape);
// Counts from the end where negative.
Result<size_t> AxisOf(int64_t axis, size_t axes);

}  // namespace sluice::models::graph
