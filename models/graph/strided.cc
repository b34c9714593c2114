#include <fmt/core.h>

#include <algorithm>

#include "base/short_copy.h"
#include "models/graph/operator_internal.h"

// Operators that move elements to other strides: transpose, slice, pad.
namespace sluice::models::graph {
namespace {

// Elements of one line along the last axis: at [i, i + count), and at place, place + step ...
struct PlacedLine {
  size_t i, count;
  int64_t place, step;
};

// Visits the lines of a shape in order, together with an offset that moves by other strides.
template <typename Body>
void ForEachLine(const Shape& shape, const std::vector<int64_t>& strides, int64_t first,
                 Body body) {
  const int64_t n = ExtentOf(shape, 0);
  const int64_t count = shape.empty() ? 1 : shape.back();
  std::vector<int64_t> at(shape.size(), 0);
  int64_t place = first;
  for (int64_t i = 0; i < n; i += count) {
    body(PlacedLine{static_cast<size_t>(i), static_cast<size_t>(count), place,
                    shape.empty() ? 1 : strides.back()});
    for (size_t axis = std::max<size_t>(shape.size(), 1) - 1; axis-- > 0;) {
      place += strides[axis];
      if (++at[axis] < shape[axis]) {
        break;
      }
      place -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
}

template <typename Body>
void ForEachPlace(const Shape& shape, const std::vector<int64_t>& strides, int64_t first,
                  Body body) {
  ForEachLine(shape, strides, first, [&](const PlacedLine& line) {
    for (size_t j = 0; j < line.count; ++j) {
      body(line.i + j, static_cast<size_t>(line.place + static_cast<int64_t>(j) * line.step));
    }
  });
}

std::vector<int64_t> StridesOf(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) {
    strides[axis - 1] = strides[axis] * shape[axis];
  }
  return strides;
}

// Common to Slice and Transpose: elements of the input at other strides, each once.
class Strided : public Operator {
 public:
  void Forward(const OperatorContext& node) final {
    WithElements(node.In(0), node.Out(), [&](auto* from, auto* to) {
      ForEachLine(node.Out().shape, strides_, first_, [&](const PlacedLine& line) {
        if (line.step == 1) {
          CopyShort(from + line.place, line.count, to + line.i);
          return;
        }
        for (size_t j = 0; j < line.count; ++j) {
          to[line.i + j] = from[line.place + static_cast<int64_t>(j) * line.step];
        }
      });
    });
  }
  void Backward(const OperatorContext& node) final {
    const float* back = node.Back();
    if (float* to = node.Zeroed(0)) {
      ForEachLine(node.Out().shape, strides_, first_, [&](const PlacedLine& line) {
        float* own = to + line.place;
        const float* from = back + line.i;
        if (line.step == 1) {
          for (size_t j = 0; j < line.count; ++j) {
            own[j] += from[j];
          }
          return;
        }
        for (size_t j = 0; j < line.count; ++j) {
          own[static_cast<int64_t>(j) * line.step] += from[j];
        }
      });
    }
  }

 protected:
  std::vector<int64_t> strides_;
  int64_t first_ = 0;
};

class Transpose final : public Strided {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(NoBag(node.In(0)));
    const Shape& x = node.In(0).shape;
    std::vector<int64_t> order = node.attributes->Integers("perm");
    if (order.empty()) {
      for (size_t axis = x.size(); axis-- > 0;) {
        order.push_back(static_cast<int64_t>(axis));
      }
    }
    std::vector<bool> seen(x.size(), false);
    const std::vector<int64_t> strides = StridesOf(x);
    Shape shape;
    strides_.clear();
    for (const int64_t named : order) {
      ASSIGN_OR_RETURN(const size_t axis, AxisOf(named, x.size()));
      if (seen[axis]) {
        break;
      }
      seen[axis] = true;
      shape.push_back(x[axis]);
      strides_.push_back(strides[axis]);
    }
    if (shape.size() != x.size() || order.size() != x.size()) {
      return InvalidArgument(fmt::format("perm {} does not name each axis of shape {} once",
                                         ShapeText(order), ShapeText(x)));
    }
    return node.Shaped(std::move(shape), node.In(0).type);
  }
};

class Slice final : public Strided {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(NoBag(node.In(0)));
    Shape shape = node.In(0).shape;
    ASSIGN_OR_RETURN(const std::vector<int64_t> begins, node.Known(1, "the begins"));
    ASSIGN_OR_RETURN(const std::vector<int64_t> ends, node.Known(2, "the ends"));
    std::vector<int64_t> axes;
    for (size_t i = 0; i < begins.size(); ++i) {
      axes.push_back(static_cast<int64_t>(i));
    }
    if (node.Has(3)) {
      ASSIGN_OR_RETURN(axes, node.Known(3, "the axes"));
    }
    std::vector<int64_t> steps(begins.size(), 1);
    if (node.Has(4)) {
      ASSIGN_OR_RETURN(steps, node.Known(4, "the steps"));
    }
    if (ends.size() != begins.size() || axes.size() != begins.size() ||
        steps.size() != begins.size()) {
      return InvalidArgument("begins, ends, axes and steps are not as many");
    }
    strides_ = StridesOf(shape);
    first_ = 0;
    std::vector<bool> cut(shape.size(), false);
    for (size_t i = 0; i < begins.size(); ++i) {
      ASSIGN_OR_RETURN(const size_t axis, AxisOf(axes[i], shape.size()));
      if (cut[axis]) {
        return InvalidArgument(fmt::format("axis {} is named twice", axis));
      }
      cut[axis] = true;
      RETURN_IF_ERROR(Cut(begins[i], ends[i], steps[i], axis, &shape));
    }
    return node.Shaped(std::move(shape), node.In(0).type);
  }

 private:
  Status Cut(int64_t begin, int64_t end, int64_t step, size_t axis, Shape* shape) {
    const int64_t extent = (*shape)[axis];
    if (step == 0 || step < -kMaxElements || step > kMaxElements) {
      return InvalidArgument(fmt::format("a step of {}", step));
    }
    const auto from_end = [extent](int64_t at) { return at < 0 ? at + extent : at; };
    if (step > 0) {
      begin = std::clamp<int64_t>(from_end(begin), 0, extent);
      end = std::clamp<int64_t>(from_end(end), 0, extent);
      (*shape)[axis] = end <= begin ? 0 : (end - begin - 1) / step + 1;
    } else {
      begin = std::clamp<int64_t>(from_end(begin), -1, extent - 1);
      end = std::clamp<int64_t>(from_end(end), -1, extent - 1);
      (*shape)[axis] = end >= begin ? 0 : (begin - end - 1) / -step + 1;
    }
    first_ += begin * strides_[axis];
    strides_[axis] *= step;
    return OkStatus();
  }
};

// Surrounds the elements by a constant, as PyTorch does before pooling.
class Pad final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    ASSIGN_OR_RETURN(const std::vector<int64_t> pads, node.Known(1, "the pads"));
    Shape shape = node.In(0).shape;
    if (node.attributes->Text("mode", "constant") != "constant") {
      return Unimplemented("only mode=constant is supported");
    }
    if (pads.size() != 2 * shape.size() || std::any_of(pads.begin(), pads.end(), [](int64_t pad) {
          return pad < 0 || pad > kMaxElements;
        })) {
      return InvalidArgument(fmt::format("pads {} are not two of at least 0 for each of {} axes",
                                         ShapeText(pads), shape.size()));
    }
    if (node.Has(2)) {
      RETURN_IF_ERROR(node.NeedFloat(2));
      if (node.In(2).size() != 1) {
        return InvalidArgument("the value must be one number");
      }
    }
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      shape[axis] += pads[axis] + pads[axis + shape.size()];
    }
    RETURN_IF_ERROR(CheckShape(shape));
    strides_ = StridesOf(shape);
    first_ = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      first_ += pads[axis] * strides_[axis];
    }
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    const float* x = node.In(0).numbers;
    float* y = node.Out().numbers;
    std::fill_n(y, node.Out().count(), node.Has(2) ? *node.In(2).numbers : 0.0F);
    ForEachPlace(node.In(0).shape, strides_, first_,
                 [&](size_t i, size_t place) { y[place] = x[i]; });
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    if (float* to = node.Zeroed(0)) {
      ForEachPlace(node.In(0).shape, strides_, first_,
                   [&](size_t i, size_t place) { to[i] += back[place]; });
    }
  }

 private:
  std::vector<int64_t> strides_;
  int64_t first_ = 0;  // the input's first element
};

}  // namespace

std::span<const OperatorEntry> StridedOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Slice", 3, 5, 1, "", MakeOperator<Slice>},
      {"Transpose", 1, 1, 1, "perm", MakeOperator<Transpose>},
      {"Pad", 2, 3, 1, "mode", MakeOperator<Pad>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
