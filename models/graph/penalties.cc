#include <fmt/core.h>

#include <algorithm>

#include "models/graph/operator_internal.h"

// Not of ONNX: values pass unchanged, and their size is added to the loss.
namespace sluice::models::graph {
namespace {

// Passes weights on, and adds to the mean loss l1 times their absolute values and l2 times their
// squares, by its gradient only: a regularizer of Keras.
class WeightPenalty final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    l1_ = node.attributes->Number("l1", 0);
    l2_ = node.attributes->Number("l2", 0);
    if (!(l1_ >= 0 && l2_ >= 0)) {
      return InvalidArgument(fmt::format("penalties of {} and {}: at least 0", l1_, l2_));
    }
    return node.Shaped(node.In(0).shape);
  }
  void Forward(const OperatorContext& node) override {
    std::copy_n(node.In(0).numbers, node.Out().count(), node.Out().numbers);
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const float* w = node.In(0).numbers;
    const GradientTarget target = node.Target(0);
    for (size_t i = 0, n = node.Out().count(); target && i < n; ++i) {
      const float sign = w[i] > 0 ? 1.0F : w[i] < 0 ? -1.0F : 0.0F;
      const float own = back[i] + l1_ * sign + 2 * l2_ * w[i];
      target.to[i] = target.add ? target.to[i] + own : own;
    }
  }

 private:
  float l1_ = 0;
  float l2_ = 0;
};

// Passes its input on, and adds half of l2 times the square of each number to the row's loss, by
// its gradient only (the loss is the mean over the rows): Rendle 2010, section V.
class L2Penalty final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    l2_ = node.attributes->Number("l2", 0);
    if (!(l2_ >= 0)) {
      return InvalidArgument(fmt::format("l2 is {}: at least 0", l2_));
    }
    if (node.In(0).axes() == 0) {
      return InvalidArgument("a penalty is of rows, not of one number");
    }
    return node.Shaped(node.In(0).shape);
  }
  void Forward(const OperatorContext& node) override {
    std::copy_n(node.In(0).numbers, node.Out().count(), node.Out().numbers);
  }
  void Backward(const OperatorContext& node) override {
    const GradientTarget target = node.Target(0);
    const float* x = node.In(0).numbers;
    const float* back = node.Back();
    const auto rows = static_cast<float>(std::max<int64_t>(node.Out().shape[0], 1));
    for (size_t i = 0, n = node.Out().count(); target && i < n; ++i) {
      const float own = back[i] + l2_ / rows * x[i];
      target.to[i] = target.add ? target.to[i] + own : own;
    }
  }

 private:
  float l2_ = 0;
};

}  // namespace

std::span<const OperatorEntry> PenaltyOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"L2Penalty", 1, 1, 1, "l2", MakeOperator<L2Penalty>},
      {"WeightPenalty", 1, 1, 1, "l1 l2", MakeOperator<WeightPenalty>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
