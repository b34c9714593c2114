#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/graph/broadcast_internal.h"
#include "models/graph/tensor_internal.h"

namespace sluice::models::graph {

const RowUse* TableReads::By(const Tensor& input, size_t likely) const {
  if (likely < inputs.size() && inputs[likely] == &input) {
    return &uses[likely];
  }
  const auto found = std::find(inputs.begin(), inputs.end(), &input);
  return found == inputs.end() ? nullptr : &uses[static_cast<size_t>(found - inputs.begin())];
}

int64_t ExtentOf(const Shape& shape, size_t begin, size_t end) {
  int64_t extent = 1;
  for (size_t axis = begin; axis < std::min(end, shape.size()); ++axis) {
    extent *= shape[axis];
  }
  return extent;
}

std::string ShapeText(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string_view TypeText(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return "numbers";
    case ElementType::kInteger:
      return "integers";
    case ElementType::kBool:
      return "booleans";
    case ElementType::kBag:
      return "several ids per row";
  }
  return "";
}

Status CheckShape(const Shape& shape) {
  if (shape.size() > kMaxAxes) {
    return InvalidArgument(fmt::format("a value has {} axes: at most {}", shape.size(), kMaxAxes))
        .Hint("rows, steps, channels, heads and directions are five; Reshape joins axes");
  }
  // Checked even if an extent is 0: products of some of the extents are computed, too.
  int64_t size = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || extent > kMaxElements ||
        (size *= std::max<int64_t>(extent, 1)) > kMaxElements) {
      return InvalidArgument(fmt::format("a value of shape {} is too large: at most {} elements",
                                         ShapeText(shape), kMaxElements))
          .Hint(
              "that is a GiB for every batch; a smaller train.batch_size makes it smaller where "
              "rows do");
    }
  }
  return OkStatus();
}

Status NoBag(const Tensor& tensor) {
  return tensor.type == ElementType::kBag
             ? InvalidArgument("a feature of several ids per row has no elements")
             : OkStatus();
}

Result<size_t> AxisOf(int64_t axis, size_t axes) {
  const int64_t count = static_cast<int64_t>(axes);
  if (axis < -count || axis >= count) {
    return InvalidArgument(fmt::format("axis {} of a value with {}", axis, axes));
  }
  return static_cast<size_t>(axis < 0 ? axis + count : axis);
}

Result<Shape> BroadcastShape(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()), 1);
  for (size_t k = 1; k <= shape.size(); ++k) {
    const int64_t own_a = k <= a.size() ? a[a.size() - k] : 1;
    const int64_t own_b = k <= b.size() ? b[b.size() - k] : 1;
    if (own_a != own_b && own_a != 1 && own_b != 1) {
      return InvalidArgument(
          fmt::format("the shapes {} and {} do not fit together", ShapeText(a), ShapeText(b)));
    }
    shape[shape.size() - k] = own_a == 1 ? own_b : own_a;
  }
  RETURN_IF_ERROR(CheckShape(shape));
  return shape;
}

Broadcast::Broadcast(const Shape& places, std::initializer_list<const Shape*> operands) {
  std::array<std::array<int64_t, kMaxAxes>, kOperands> strides{};
  size_t k = 0;
  for (const Shape* operand : operands) {
    const size_t missing = places.size() - operand->size();
    int64_t stride = 1;
    for (size_t axis = operand->size(); axis-- > 0;) {
      strides[k][missing + axis] = (*operand)[axis] == 1 ? 0 : stride;
      stride *= (*operand)[axis];
    }
    ++k;
  }
  places_ = ExtentOf(places, 0);
  axes_ = 0;
  for (size_t axis = 0; axis < places.size(); ++axis) {
    if (places[axis] == 1) {
      continue;
    }
    const auto joins = [&](size_t operand) {
      return strides_[operand][axes_ - 1] == strides[operand][axis] * places[axis];
    };
    if (axes_ > 0 && joins(0) && joins(1) && joins(2)) {
      extents_[axes_ - 1] *= places[axis];
      for (size_t operand = 0; operand < kOperands; ++operand) {
        strides_[operand][axes_ - 1] = strides[operand][axis];
      }
      continue;
    }
    extents_[axes_] = places[axis];
    for (size_t operand = 0; operand < kOperands; ++operand) {
      strides_[operand][axes_] = strides[operand][axis];
    }
    ++axes_;
  }
  if (axes_ == 0) {
    extents_[0] = 1;
    axes_ = 1;
  }
}

}  // namespace sluice::models::graph
