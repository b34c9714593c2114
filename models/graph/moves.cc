#include <fmt/core.h>

#include <algorithm>

#include "base/short_copy.h"
#include "models/graph/broadcast_internal.h"
#include "models/graph/operator_internal.h"

// Operators that move whole runs of elements: concatenate, split, repeat.
namespace sluice::models::graph {
namespace {

class Concat final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    if (!node.Has(0) || !node.attributes->Has("axis")) {
      return InvalidArgument("the first value or the axis is missing");
    }
    Shape shape = node.In(0).shape;
    ASSIGN_OR_RETURN(axis_, AxisOf(node.attributes->Integer("axis", 0), shape.size()));
    shape[axis_] = 0;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (!node.Has(k)) {
        return InvalidArgument(fmt::format("input {} is left out", k + 1));
      }
      RETURN_IF_ERROR(NoBag(node.In(k)));
      const Shape& own = node.In(k).shape;
      bool fits = own.size() == shape.size() && node.In(k).type == node.In(0).type;
      for (size_t axis = 0; fits && axis < shape.size(); ++axis) {
        fits = axis == axis_ || own[axis] == shape[axis];
      }
      if (!fits) {
        return InvalidArgument(
            fmt::format("{} of shape {} and {} of shape {} cannot stand side by side along axis {}",
                        TypeText(node.In(0).type), ShapeText(node.In(0).shape),
                        TypeText(node.In(k).type), ShapeText(own), axis_));
      }
      shape[axis_] += own[axis_];
    }
    outer_ = static_cast<size_t>(ExtentOf(shape, 0, axis_));
    joins_rows_ = axis_ + 1 == shape.size();
    return node.Shaped(std::move(shape), node.In(0).type);
  }
  void Forward(const OperatorContext& node) override {
    const auto line = static_cast<size_t>(ExtentOf(node.Out().shape, axis_));
    size_t at = 0;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const auto width = static_cast<size_t>(ExtentOf(node.In(k).shape, axis_));
      if (node.In(k).line == 0) {
        WithElements(node.In(k), node.Out(), [&](auto* from, auto* to) {
          for (size_t i = 0; i < outer_; ++i) {
            CopyShort(from + i * width, width, to + i * line + at);
          }
        });
      }
      at += width;
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const auto line = static_cast<size_t>(ExtentOf(node.Out().shape, axis_));
    size_t at = 0;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const auto width = static_cast<size_t>(ExtentOf(node.In(k).shape, axis_));
      const GradientTarget target = node.Target(k);
      if (target && node.In(k).line == 0) {
        for (size_t i = 0; i < outer_; ++i) {
          const float* from = back + i * line + at;
          float* to = target.to + i * width;
          if (!target.add) {
            CopyShort(from, width, to);
            continue;
          }
          for (size_t j = 0; j < width; ++j) {
            to[j] += from[j];
          }
        }
      }
      at += width;
    }
  }
  bool JoinsRows() const override { return joins_rows_; }

 private:
  size_t axis_ = 0;
  size_t outer_ = 0;
  bool joins_rows_ = false;
};

class Split final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(NoBag(node.In(0)));
    Shape shape = node.In(0).shape;
    ASSIGN_OR_RETURN(axis_, AxisOf(node.attributes->Integer("axis", 0), shape.size()));
    const int64_t whole = shape[axis_];
    const auto parts = static_cast<int64_t>(node.outputs.size());
    widths_ = node.attributes->Integers("split");
    if (node.Has(1)) {
      ASSIGN_OR_RETURN(widths_, node.Known(1, "the parts' sizes"));
    }
    if (widths_.empty()) {
      if (whole % parts != 0) {
        return InvalidArgument(fmt::format("axis {} of shape {} has no {} equal parts", axis_,
                                           ShapeText(shape), parts));
      }
      widths_.assign(static_cast<size_t>(parts), whole / parts);
    }
    int64_t sum = 0;
    for (const int64_t width : widths_) {
      if (width < 0 || width > whole) {
        sum = -1;
        break;
      }
      sum += width;
    }
    if (sum != whole || static_cast<int64_t>(widths_.size()) != parts) {
      return InvalidArgument(fmt::format("parts of {} do not make axis {} of shape {}",
                                         ShapeText(widths_), axis_, ShapeText(shape)));
    }
    outer_ = static_cast<size_t>(ExtentOf(shape, 0, axis_));
    inner_ = static_cast<size_t>(ExtentOf(shape, axis_ + 1));
    for (size_t k = 0; k < widths_.size(); ++k) {
      shape[axis_] = widths_[k];
      RETURN_IF_ERROR(node.Shaped(shape, node.In(0).type, k));
    }
    return OkStatus();
  }
  void Forward(const OperatorContext& node) override {
    const auto line = static_cast<size_t>(ExtentOf(node.In(0).shape, axis_));
    size_t at = 0;
    for (size_t k = 0; k < widths_.size(); ++k) {
      const size_t width = static_cast<size_t>(widths_[k]) * inner_;
      if (node.Reads(k)) {
        WithElements(node.In(0), node.Out(k), [&](auto* from, auto* to) {
          for (size_t i = 0; i < outer_; ++i) {
            CopyShort(from + i * line + at, width, to + i * width);
          }
        });
      }
      at += width;
    }
  }
  void Backward(const OperatorContext& node) override {
    float* to = node.Zeroed(0);
    const auto line = static_cast<size_t>(ExtentOf(node.In(0).shape, axis_));
    size_t at = 0;
    for (size_t k = 0; to != nullptr && k < widths_.size(); ++k) {
      const size_t width = static_cast<size_t>(widths_[k]) * inner_;
      if (const float* back = node.Back(k)) {
        for (size_t i = 0; i < outer_; ++i) {
          for (size_t j = 0; j < width; ++j) {
            to[i * line + at + j] += back[i * width + j];
          }
        }
      }
      at += width;
    }
  }

 private:
  size_t axis_ = 0;
  size_t outer_ = 0;
  size_t inner_ = 0;
  std::vector<int64_t> widths_;
};

class Expand final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(NoBag(node.In(0)));
    ASSIGN_OR_RETURN(const Shape wanted, node.Known(1, "a shape"));
    RETURN_IF_ERROR(CheckShape(wanted));
    ASSIGN_OR_RETURN(Shape shape, BroadcastShape(node.In(0).shape, wanted));
    broadcast_ = Broadcast(shape, {&node.In(0).shape});
    return node.Shaped(std::move(shape), node.In(0).type);
  }
  void Forward(const OperatorContext& node) override {
    const size_t step = broadcast_.step(0);
    WithElements(node.In(0), node.Out(), [&](auto* from, auto* to) {
      broadcast_.ForEachRun([&](size_t place, size_t n, const auto& first) {
        for (size_t i = 0; i < n; ++i) {
          to[place + i] = from[static_cast<size_t>(first[0]) + i * step];
        }
      });
    });
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    float* to = node.Zeroed(0);
    if (to != nullptr && back != nullptr) {
      AddPlaces(broadcast_, 0, to,
                [back](size_t place, size_t, const auto&) { return back[place]; });
    }
  }

 private:
  Broadcast broadcast_;
};

}  // namespace

std::span<const OperatorEntry> MoveOperators() {
  constexpr size_t kMaxParts = 20'000;
  static constexpr OperatorEntry kEntries[] = {
      {"Concat", 1, kMaxParts, 1, "axis", MakeOperator<Concat>},
      {"Split", 1, 2, kMaxParts, "axis split", MakeOperator<Split>},
      {"Expand", 2, 2, 1, "", MakeOperator<Expand>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
