#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "models/graph/operator_internal.h"

// Elements and rows by index. An index out of range gives NaN (for integers 0), so that training
// ends with an error about the loss and no memory outside is read.
namespace sluice::models::graph {
namespace {

constexpr size_t kNowhere = static_cast<size_t>(-1);

size_t PlaceOf(int64_t index, int64_t extent) {
  const int64_t place = index < 0 ? index + extent : index;
  return place < 0 || place >= extent ? kNowhere : static_cast<size_t>(place);
}

Status NeedIndices(const OperatorContext& node, size_t k) {
  if (node.In(k).type != ElementType::kInteger) {
    return InvalidArgument(
        fmt::format("input {} must be integers, not {}", k + 1, TypeText(node.In(k).type)));
  }
  if (node.In(0).type == ElementType::kBag) {
    return InvalidArgument("a feature of several ids per row has no elements");
  }
  return OkStatus();
}

// Slices along an axis; of a table, the rows of the batch by their positions in it.
class Gather final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(NeedIndices(node, 1));
    const Shape& x = node.In(0).shape;
    const Shape& indices = node.In(1).shape;
    ASSIGN_OR_RETURN(const size_t axis, AxisOf(node.attributes->Integer("axis", 0), x.size()));
    outer_ = static_cast<size_t>(ExtentOf(x, 0, axis));
    extent_ = x[axis];
    inner_ = static_cast<size_t>(ExtentOf(x, axis + 1));
    rows_ = axis + 2 == x.size() && node.In(0).type == ElementType::kFloat;
    Shape shape(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis));
    shape.insert(shape.end(), indices.begin(), indices.end());
    shape.insert(shape.end(), x.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.end());
    return node.Shaped(std::move(shape), node.In(0).type);
  }
  void Forward(const OperatorContext& node) override {
    Number(node);
    const Tensor& x = node.In(0);
    if (x.type == ElementType::kFloat) {
      Move(x.numbers, std::numeric_limits<float>::quiet_NaN(), node.Out().numbers,
           LineOf(node.Out()));
    } else {
      Move(x.integers, int64_t{0}, node.Out().integers, inner_);
    }
  }
  void Backward(const OperatorContext& node) override {
    float* to = node.Zeroed(0);
    const float* back = node.Back();
    for (size_t o = 0; to != nullptr && o < outer_; ++o) {
      for (size_t i = 0; i < places_.size(); ++i) {
        if (places_[i] == kNowhere) {
          continue;
        }
        const float* from = back + (o * places_.size() + i) * LineOf(node.Out());
        float* own = to + (o * static_cast<size_t>(extent_) + places_[i]) * inner_;
        for (size_t k = 0; k < inner_; ++k) {
          own[k] += from[k];
        }
      }
    }
  }
  bool LeavesGaps() const override { return rows_; }

 private:
  size_t LineOf(const Tensor& y) const { return y.line == 0 ? inner_ : y.line; }
  void Number(const OperatorContext& node) {
    const Tensor& indices = node.In(1);
    places_.resize(indices.count());
    if (const TableReads* reads = node.In(0).reads) {
      const RowUse* use = reads->By(indices);
      for (size_t i = 0; i < places_.size(); ++i) {
        places_[i] = use->positions[i];
      }
      return;
    }
    for (size_t i = 0; i < places_.size(); ++i) {
      places_[i] = PlaceOf(indices.integers[i], extent_);
    }
  }
  template <typename T>
  void Move(const T* x, T nothing, T* y, size_t line) const {
    for (size_t o = 0; o < outer_; ++o) {
      for (size_t i = 0; i < places_.size(); ++i) {
        T* to = y + (o * places_.size() + i) * line;
        if (places_[i] == kNowhere) {
          std::fill_n(to, inner_, nothing);
        } else {
          std::copy_n(x + (o * static_cast<size_t>(extent_) + places_[i]) * inner_, inner_, to);
        }
      }
    }
  }

  size_t outer_ = 0;
  size_t inner_ = 0;
  int64_t extent_ = 0;
  bool rows_ = false;  // each index chooses a row of the last axis, of floats
  std::vector<size_t> places_;
};

// One element for each index; its coordinates in all other axes are those of the index.
class GatherElements final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(NeedIndices(node, 1));
    const Shape& x = node.In(0).shape;
    const Shape& indices = node.In(1).shape;
    ASSIGN_OR_RETURN(axis_, AxisOf(node.attributes->Integer("axis", 0), x.size()));
    bool fits = indices.size() == x.size();
    for (size_t axis = 0; fits && axis < x.size(); ++axis) {
      fits = axis == axis_ || indices[axis] <= x[axis];
    }
    if (!fits) {
      return InvalidArgument(fmt::format("indices of shape {} do not fit to a value of shape {}",
                                         ShapeText(indices), ShapeText(x)));
    }
    return node.Shaped(indices, node.In(0).type);
  }
  void Forward(const OperatorContext& node) override {
    const Tensor& x = node.In(0);
    Tensor& y = node.Out();
    Number(node);
    for (size_t i = 0; i < places_.size(); ++i) {
      if (x.type == ElementType::kFloat) {
        y.numbers[i] = places_[i] == kNowhere ? std::numeric_limits<float>::quiet_NaN()
                                              : x.numbers[places_[i]];
      } else {
        y.integers[i] = places_[i] == kNowhere ? 0 : x.integers[places_[i]];
      }
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    float* to = node.Zeroed(0);
    for (size_t i = 0; to != nullptr && i < places_.size(); ++i) {
      if (places_[i] != kNowhere) {
        to[places_[i]] += back[i];
      }
    }
  }

 private:
  void Number(const OperatorContext& node) {
    const Shape& x = node.In(0).shape;
    const Tensor& indices = node.In(1);
    places_.resize(indices.count());
    for (size_t i = 0; i < places_.size(); ++i) {
      size_t rest = i;
      size_t place = 0;
      size_t stride = 1;
      bool found = true;
      for (size_t axis = x.size(); axis-- > 0;) {
        const auto extent = static_cast<size_t>(indices.shape[axis]);
        size_t at = rest % extent;
        rest /= extent;
        if (axis == axis_) {
          at = PlaceOf(indices.integers[i], x[axis]);
          found = at != kNowhere;
        }
        place += found ? at * stride : 0;
        stride *= static_cast<size_t>(x[axis]);
      }
      places_[i] = found ? place : kNowhere;
    }
  }

  size_t axis_ = 0;
  std::vector<size_t> places_;
};

}  // namespace

std::span<const OperatorEntry> GatherOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Gather", 2, 2, 1, "axis", MakeOperator<Gather>},
      {"GatherElements", 2, 2, 1, "axis", MakeOperator<GatherElements>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
