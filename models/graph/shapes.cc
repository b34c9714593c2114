#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "models/graph/operator_internal.h"
#include "models/model.pb.h"

// Other shapes and types of the same elements, and values that are known before any batch.
namespace sluice::models::graph {
namespace {

// An output that shares its input's memory.
class View : public Operator {
 public:
  void Forward(const OperatorContext& node) final {
    node.Out().numbers = node.In(0).numbers;
    node.Out().integers = node.In(0).integers;
  }
  void Backward(const OperatorContext& node) final {
    const float* back = node.Back();
    const GradientTarget target = node.Target(0);
    if (!target || target.to == back) {  // see Tensor::base
      return;
    }
    for (size_t i = 0, n = node.Out().count(); i < n; ++i) {
      target.to[i] = target.add ? target.to[i] + back[i] : back[i];
    }
  }
  bool IsView() const final { return true; }
};

Status Viewed(const OperatorContext& node, Shape shape) {
  const Tensor& x = node.In(0);
  if (x.type == ElementType::kBag) {
    return InvalidArgument("a feature of several ids per row has no shape")
        .Hint("EmbeddingBag reads it");
  }
  RETURN_IF_ERROR(CheckShape(shape));
  if (ExtentOf(shape, 0) != x.size()) {
    return InvalidArgument(
        fmt::format("a value of shape {} cannot become {}", ShapeText(x.shape), ShapeText(shape)));
  }
  return node.Shaped(std::move(shape), x.type);
}

class Identity final : public View {
 public:
  Status Plan(const OperatorContext& node) override { return Viewed(node, node.In(0).shape); }
};

// The product of all extents except 0.
int64_t ProductOfOthers(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    product *= extent == 0 ? 1 : extent;
  }
  return product;
}

class Reshape final : public View {
 public:
  Status Plan(const OperatorContext& node) override {
    ASSIGN_OR_RETURN(Shape shape, node.Known(1, "a shape"));
    const Shape& x = node.In(0).shape;
    const bool zero_means_zero = node.attributes->Integer("allowzero", 0) != 0;
    size_t free = shape.size();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] == 0 && !zero_means_zero) {
        if (axis >= x.size()) {
          return InvalidArgument(fmt::format("the shape {} takes axis {} of a value with {}",
                                             ShapeText(shape), axis, x.size()));
        }
        shape[axis] = x[axis];
      } else if (shape[axis] == -1 && free == shape.size()) {
        free = axis;
        shape[axis] = 1;
      }
    }
    RETURN_IF_ERROR(CheckShape(shape));
    if (free < shape.size()) {
      // A batch without rows gets the shape that one with rows would have.
      shape[free] = ProductOfOthers(x) / ProductOfOthers(shape);
    }
    return Viewed(node, std::move(shape));
  }
};

class Flatten final : public View {
 public:
  Status Plan(const OperatorContext& node) override {
    const Shape& x = node.In(0).shape;
    const int64_t named = node.attributes->Integer("axis", 1);
    size_t axis = x.size();
    if (named != static_cast<int64_t>(x.size())) {
      ASSIGN_OR_RETURN(axis, AxisOf(named, x.size()));
    }
    return Viewed(node, {ExtentOf(x, 0, axis), ExtentOf(x, axis)});
  }
};

// The axes of extent 1, given by attribute or input.
Result<std::vector<bool>> AxesOf(const OperatorContext& node, size_t axes) {
  std::vector<int64_t> named = node.attributes->Integers("axes");
  if (node.Has(1)) {
    ASSIGN_OR_RETURN(named, node.Known(1, "the axes"));
  }
  std::vector<bool> chosen(axes, false);
  for (const int64_t name : named) {
    ASSIGN_OR_RETURN(const size_t axis, AxisOf(name, axes));
    if (chosen[axis]) {
      return InvalidArgument(fmt::format("axis {} is named twice", axis));
    }
    chosen[axis] = true;
  }
  return chosen;
}

class Squeeze final : public View {
 public:
  Status Plan(const OperatorContext& node) override {
    const Shape& x = node.In(0).shape;
    ASSIGN_OR_RETURN(const std::vector<bool> chosen, AxesOf(node, x.size()));
    const bool all = std::find(chosen.begin(), chosen.end(), true) == chosen.end();
    Shape shape;
    for (size_t axis = 0; axis < x.size(); ++axis) {
      if (chosen[axis] && x[axis] != 1) {
        return InvalidArgument(
            fmt::format("axis {} of a value of shape {} is not 1", axis, ShapeText(x)));
      }
      if (!chosen[axis] && !(all && x[axis] == 1)) {
        shape.push_back(x[axis]);
      }
    }
    return Viewed(node, std::move(shape));
  }
};

class Unsqueeze final : public View {
 public:
  Status Plan(const OperatorContext& node) override {
    const Shape& x = node.In(0).shape;
    size_t more = node.attributes->Integers("axes").size();
    if (node.Has(1)) {
      more = node.In(1).count();
    }
    if (more > kMaxAxes) {
      return InvalidArgument(fmt::format("{} new axes: at most {}", more, kMaxAxes));
    }
    ASSIGN_OR_RETURN(const std::vector<bool> chosen, AxesOf(node, x.size() + more));
    Shape shape;
    auto next = x.begin();
    for (const bool fresh : chosen) {
      shape.push_back(fresh ? 1 : *next++);
    }
    return Viewed(node, std::move(shape));
  }
};

// Casts to floats, integers or booleans, given by ONNX's type numbers.
class Cast final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    constexpr int64_t kFloat32 = 1, kInt32 = 6, kInt64 = 7, kBool = 9, kFloat64 = 11;
    if (node.In(0).type == ElementType::kBag) {
      return InvalidArgument("a feature of several ids per row has no elements");
    }
    ElementType type = ElementType::kFloat;
    switch (const int64_t to = node.attributes->Integer("to", 0)) {
      case kFloat32:
      case kFloat64:
        break;
      case kInt32:
      case kInt64:
        type = ElementType::kInteger;
        break;
      case kBool:
        type = ElementType::kBool;
        break;
      default:
        return Unimplemented(fmt::format("to={} is not supported", to))
            .Hint("1 and 11 are numbers, 6 and 7 integers, 9 booleans");
    }
    return node.Shaped(node.In(0).shape, type);
  }
  void Forward(const OperatorContext& node) override {
    const Tensor& x = node.In(0);
    Tensor& y = node.Out();
    for (size_t i = 0, n = y.count(); i < n; ++i) {
      if (y.type == ElementType::kFloat) {
        y.numbers[i] =
            x.type == ElementType::kFloat ? x.numbers[i] : static_cast<float>(x.integers[i]);
      } else if (y.type == ElementType::kInteger) {
        y.integers[i] = x.type == ElementType::kFloat ? Truncated(x.numbers[i]) : x.integers[i];
      } else {
        y.integers[i] = (x.type == ElementType::kFloat ? x.numbers[i] != 0 : x.integers[i] != 0);
      }
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const GradientTarget target = node.Target(0);
    for (size_t i = 0, n = node.Out().count(); target && i < n; ++i) {
      target.to[i] = target.add ? target.to[i] + back[i] : back[i];
    }
  }

 private:
  // Truncates; values out of range become the nearest integer, NaN becomes 0.
  static int64_t Truncated(float x) {
    if (!(x > -0x1p63F)) {
      return x == x ? std::numeric_limits<int64_t>::min() : 0;
    }
    return x < 0x1p63F ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::max();
  }
};

class ShapeOf final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    shape_ = node.In(0).shape;
    const auto axes = static_cast<int64_t>(shape_.size());
    const auto within = [axes](int64_t axis) {
      return std::clamp<int64_t>(axis < 0 ? axis + axes : axis, 0, axes);
    };
    const int64_t begin = within(node.attributes->Integer("start", 0));
    const int64_t end = std::max(begin, within(node.attributes->Integer("end", axes)));
    shape_ = Shape(shape_.begin() + begin, shape_.begin() + end);
    return node.Shaped({end - begin}, ElementType::kInteger);
  }
  void Forward(const OperatorContext& node) override {
    std::copy(shape_.begin(), shape_.end(), node.Out().integers);
  }

 private:
  Shape shape_;
};

ElementType TypeOf(const GraphTensor& tensor) {
  switch (tensor.type()) {
    case GraphTensor::INTEGER:
      return ElementType::kInteger;
    case GraphTensor::BOOLEAN:
      return ElementType::kBool;
    default:
      return ElementType::kFloat;
  }
}

// Writes element i of a constant to [first, first + n).
void FillFrom(const GraphTensor& tensor, int i, size_t n, Tensor* to) {
  if (to->type == ElementType::kFloat) {
    std::fill_n(to->numbers, n, tensor.numbers(i));
  } else if (to->type == ElementType::kInteger) {
    std::fill_n(to->integers, n, tensor.integers(i));
  } else {
    std::fill_n(to->integers, n, tensor.integers(i) != 0 ? 1 : 0);
  }
}

int ElementsOf(const GraphTensor& tensor) {
  return TypeOf(tensor) == ElementType::kFloat ? tensor.numbers_size() : tensor.integers_size();
}

class Constant final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    const GraphTensor& value = node.attributes->node().constant();
    const Shape shape(value.shape().begin(), value.shape().end());
    RETURN_IF_ERROR(CheckShape(shape));
    if (ExtentOf(shape, 0) != ElementsOf(value)) {
      return InvalidArgument(fmt::format("a constant of shape {} has {} elements", ShapeText(shape),
                                         ElementsOf(value)));
    }
    return node.Shaped(shape, TypeOf(value));
  }
  void Forward(const OperatorContext& node) override {
    const GraphTensor& value = node.attributes->node().constant();
    Tensor part = node.Out();
    for (int i = 0; i < ElementsOf(value); ++i) {
      FillFrom(value, i, 1, &part);
      part.numbers += part.type == ElementType::kFloat ? 1 : 0;
      part.integers += part.type == ElementType::kFloat ? 0 : 1;
    }
  }
};

class ConstantOfShape final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    ASSIGN_OR_RETURN(Shape shape, node.Known(0, "a shape"));
    const GraphNode& own = node.attributes->node();
    if (own.has_constant() && ElementsOf(own.constant()) != 1) {
      return InvalidArgument("the value must be one element");
    }
    return node.Shaped(std::move(shape),
                       own.has_constant() ? TypeOf(own.constant()) : ElementType::kFloat);
  }
  void Forward(const OperatorContext& node) override {
    const GraphNode& own = node.attributes->node();
    if (own.has_constant()) {
      FillFrom(own.constant(), 0, node.Out().count(), &node.Out());
    } else {
      std::fill_n(node.Out().numbers, node.Out().count(), 0.0F);
    }
  }
};

}  // namespace

std::span<const OperatorEntry> ShapeOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Identity", 1, 1, 1, "", MakeOperator<Identity>},
      {"Reshape", 2, 2, 1, "allowzero", MakeOperator<Reshape>},
      {"Flatten", 1, 1, 1, "axis", MakeOperator<Flatten>},
      {"Squeeze", 1, 2, 1, "axes", MakeOperator<Squeeze>},
      {"Unsqueeze", 1, 2, 1, "axes", MakeOperator<Unsqueeze>},
      {"Cast", 1, 1, 1, "to", MakeOperator<Cast>},
      {"Shape", 1, 1, 1, "end start", MakeOperator<ShapeOf>},
      {"Constant", 0, 0, 1, "", MakeOperator<Constant>},
      {"ConstantOfShape", 1, 1, 1, "", MakeOperator<ConstantOfShape>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
