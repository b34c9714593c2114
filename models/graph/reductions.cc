#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/graph/broadcast_internal.h"
#include "models/graph/operator_internal.h"

// Reductions; sums are computed in the order of the elements.
namespace sluice::models::graph {
namespace {

enum class Reduction { kSum, kMean, kMax, kL2, kSumSquare };

template <Reduction kReduction>
class Reduce final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    const Shape& x = node.In(0).shape;
    std::vector<int64_t> axes = node.attributes->Integers("axes");
    if (node.Has(1)) {
      ASSIGN_OR_RETURN(axes, node.Known(1, "the axes"));
    }
    const bool nothing = axes.empty() && node.attributes->Integer("noop_with_empty_axes", 0) != 0;
    std::vector<bool> reduced(x.size(), axes.empty() && !nothing);
    for (const int64_t named : axes) {
      ASSIGN_OR_RETURN(const size_t axis, AxisOf(named, x.size()));
      reduced[axis] = true;
    }
    const bool keep = node.attributes->Integer("keepdims", 1) != 0;
    Shape shape;
    Shape kept = x;
    for (size_t axis = 0; axis < x.size(); ++axis) {
      if (reduced[axis]) {
        kept[axis] = 1;
      }
      if (keep || !reduced[axis]) {
        shape.push_back(kept[axis]);
      }
    }
    const int64_t sums = ExtentOf(kept, 0);
    each_ = sums == 0 ? 0 : ExtentOf(x, 0) / sums;
    if (kReduction == Reduction::kMax && sums > 0 && each_ == 0) {
      return InvalidArgument(
          fmt::format("nothing is the greatest of a value of shape {}", ShapeText(x)));
    }
    broadcast_ = Broadcast(x, {&kept});
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    const float* x = node.In(0).numbers;
    float* y = node.Out().numbers;
    const size_t n = node.Out().count();
    if constexpr (kReduction == Reduction::kMax) {
      Greatest(x, y, n);
      return;
    }
    std::fill_n(y, n, 0.0F);
    constexpr bool kSquares = kReduction == Reduction::kL2 || kReduction == Reduction::kSumSquare;
    AddPlaces(broadcast_, 0, y, [x](size_t place, size_t, const auto&) {
      return kSquares ? x[place] * x[place] : x[place];
    });
    for (size_t i = 0; i < n; ++i) {
      if constexpr (kReduction == Reduction::kMean) {
        y[i] /= static_cast<float>(each_);
      } else if constexpr (kReduction == Reduction::kL2) {
        y[i] = std::sqrt(y[i]);
      }
    }
  }
  void Backward(const OperatorContext& node) override {
    const GradientTarget target = node.Target(0);
    if (!target) {
      return;
    }
    const float* x = node.In(0).numbers;
    const float* y = node.Out().numbers;
    const float* back = node.Back();
    const size_t step = broadcast_.step(0);
    const float share = 1.0F / static_cast<float>(std::max<int64_t>(each_, 1));
    broadcast_.ForEachRun([&](size_t place, size_t n, const auto& first) {
      for (size_t i = 0; i < n; ++i) {
        const size_t from = static_cast<size_t>(first[0]) + i * step;
        float own = back[from];
        if constexpr (kReduction == Reduction::kMean) {
          own *= share;
        } else if constexpr (kReduction == Reduction::kMax) {
          own = winners_[from] == place + i ? own : 0.0F;
        } else if constexpr (kReduction == Reduction::kL2) {
          own = y[from] == 0 ? 0.0F : own * x[place + i] / y[from];  // at 0: as PyTorch
        } else if constexpr (kReduction == Reduction::kSumSquare) {
          own *= 2 * x[place + i];
        }
        target.to[place + i] = target.add ? target.to[place + i] + own : own;
      }
    });
  }

 private:
  void Greatest(const float* x, float* y, size_t n) {
    constexpr size_t kNone = static_cast<size_t>(-1);
    winners_.assign(n, kNone);
    const size_t step = broadcast_.step(0);
    broadcast_.ForEachRun([&](size_t place, size_t run, const auto& first) {
      if (step == 0 && run > 0) {  // all of them become one
        const auto to = static_cast<size_t>(first[0]);
        size_t winner = winners_[to] == kNone ? place : winners_[to];
        float greatest = x[winner];
        for (size_t i = 0; i < run; ++i) {
          const bool wins = x[place + i] > greatest || std::isnan(x[place + i]);
          winner = wins ? place + i : winner;
          greatest = wins ? x[place + i] : greatest;
        }
        winners_[to] = winner;
        y[to] = greatest;
        return;
      }
      for (size_t i = 0; i < run; ++i) {
        const size_t to = static_cast<size_t>(first[0]) + i * step;
        const float own = x[place + i];
        if (winners_[to] == kNone || own > y[to] || std::isnan(own)) {
          winners_[to] = place + i;
          y[to] = own;
        }
      }
    });
  }

  Broadcast broadcast_;
  int64_t each_ = 0;  // numbers that are reduced to one
  std::vector<size_t> winners_;
};

}  // namespace

std::span<const OperatorEntry> ReductionOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"ReduceSum", 1, 2, 1, "axes keepdims noop_with_empty_axes",
       MakeOperator<Reduce<Reduction::kSum>>},
      {"ReduceMean", 1, 2, 1, "axes keepdims noop_with_empty_axes",
       MakeOperator<Reduce<Reduction::kMean>>},
      {"ReduceMax", 1, 2, 1, "axes keepdims noop_with_empty_axes",
       MakeOperator<Reduce<Reduction::kMax>>},
      {"ReduceL2", 1, 2, 1, "axes keepdims noop_with_empty_axes",
       MakeOperator<Reduce<Reduction::kL2>>},
      {"ReduceSumSquare", 1, 2, 1, "axes keepdims noop_with_empty_axes",
       MakeOperator<Reduce<Reduction::kSumSquare>>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
