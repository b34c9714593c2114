#include <fmt/core.h>

#include <cmath>

#include "models/graph/broadcast_internal.h"
#include "models/graph/operator_internal.h"

// Comparisons and logic, and the operators that booleans control.
namespace sluice::models::graph {
namespace {

class Where final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    const Tensor& yes = node.In(1);
    const Tensor& no = node.In(2);
    if (node.In(0).type != ElementType::kBool) {
      return InvalidArgument("the condition must be booleans").Hint("say Cast");
    }
    if (yes.type != no.type || yes.type == ElementType::kBag) {
      return InvalidArgument(fmt::format("either {} or {}", TypeText(yes.type), TypeText(no.type)));
    }
    ASSIGN_OR_RETURN(Shape shape, BroadcastShape(yes.shape, no.shape));
    ASSIGN_OR_RETURN(shape, BroadcastShape(shape, node.In(0).shape));
    broadcast_ = Broadcast(shape, {&node.In(0).shape, &yes.shape, &no.shape});
    return node.Shaped(std::move(shape), yes.type);
  }
  void Forward(const OperatorContext& node) override {
    const Tensor& yes = node.In(1);
    if (yes.type == ElementType::kFloat) {
      Choose(node.In(0).integers, yes.numbers, node.In(2).numbers, node.Out().numbers);
    } else {
      Choose(node.In(0).integers, yes.integers, node.In(2).integers, node.Out().integers);
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const int64_t* condition = node.In(0).integers;
    const size_t step = broadcast_.step(0);
    for (const size_t k : {size_t{1}, size_t{2}}) {
      if (float* to = node.Zeroed(k)) {
        AddPlaces(broadcast_, k, to, [&](size_t place, size_t i, const auto& first) {
          const bool yes = condition[static_cast<size_t>(first[0]) + i * step] != 0;
          return yes == (k == 1) ? back[place] : 0.0F;
        });
      }
    }
  }

 private:
  template <typename T>
  void Choose(const int64_t* condition, const T* yes, const T* no, T* to) const {
    const size_t step_condition = broadcast_.step(0);
    const size_t step_yes = broadcast_.step(1);
    const size_t step_no = broadcast_.step(2);
    broadcast_.ForEachRun([&](size_t place, size_t n, const auto& first) {
      for (size_t i = 0; i < n; ++i) {
        to[place + i] = condition[static_cast<size_t>(first[0]) + i * step_condition] != 0
                            ? yes[static_cast<size_t>(first[1]) + i * step_yes]
                            : no[static_cast<size_t>(first[2]) + i * step_no];
      }
    });
  }
  Broadcast broadcast_;
};

struct Equal {
  static constexpr bool kOfBooleans = true;
  template <typename T>
  static bool Of(T a, T b) {
    return a == b;
  }
};
struct Less {
  static constexpr bool kOfBooleans = false;
  template <typename T>
  static bool Of(T a, T b) {
    return a < b;
  }
};
struct Greater {
  static constexpr bool kOfBooleans = false;
  template <typename T>
  static bool Of(T a, T b) {
    return a > b;
  }
};
struct And {
  static bool Of(int64_t a, int64_t b) { return (a & b) != 0; }
};
struct Or {
  static bool Of(int64_t a, int64_t b) { return (a | b) != 0; }
};

template <typename Function, bool kLogical>
class Comparison final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    const Tensor& a = node.In(0);
    const Tensor& b = node.In(1);
    bool fits = a.type == b.type && a.type != ElementType::kBag;
    if constexpr (kLogical) {
      fits = fits && a.type == ElementType::kBool;
    } else {
      fits = fits && (Function::kOfBooleans || a.type != ElementType::kBool);
    }
    if (!fits) {
      return InvalidArgument(
          fmt::format("{} and {} cannot be compared", TypeText(a.type), TypeText(b.type)));
    }
    ASSIGN_OR_RETURN(Shape shape, BroadcastShape(a.shape, b.shape));
    broadcast_ = Broadcast(shape, {&a.shape, &b.shape});
    return node.Shaped(std::move(shape), ElementType::kBool);
  }
  void Forward(const OperatorContext& node) override {
    const auto one_or_zero = [](auto a, auto b) { return int64_t{Function::Of(a, b) ? 1 : 0}; };
    if constexpr (!kLogical) {
      if (node.In(0).type == ElementType::kFloat) {
        MapPlaces(broadcast_, node.In(0).numbers, node.In(1).numbers, node.Out().integers,
                  one_or_zero);
        return;
      }
    }
    MapPlaces(broadcast_, node.In(0).integers, node.In(1).integers, node.Out().integers,
              one_or_zero);
  }

 private:
  Broadcast broadcast_;
};

class IsNaN final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    return node.Shaped(node.In(0).shape, ElementType::kBool);
  }
  void Forward(const OperatorContext& node) override {
    for (size_t i = 0, n = node.Out().count(); i < n; ++i) {
      node.Out().integers[i] = std::isnan(node.In(0).numbers[i]) ? 1 : 0;
    }
  }
};

class Not final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    if (node.In(0).type != ElementType::kBool) {
      return InvalidArgument("the input must be booleans");
    }
    return node.Shaped(node.In(0).shape, ElementType::kBool);
  }
  void Forward(const OperatorContext& node) override {
    for (size_t i = 0, n = node.Out().count(); i < n; ++i) {
      node.Out().integers[i] = node.In(0).integers[i] == 0 ? 1 : 0;
    }
  }
};

}  // namespace

std::span<const OperatorEntry> LogicOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Where", 3, 3, 1, "", MakeOperator<Where>},
      {"Equal", 2, 2, 1, "", MakeOperator<Comparison<Equal, false>>},
      {"Less", 2, 2, 1, "", MakeOperator<Comparison<Less, false>>},
      {"Greater", 2, 2, 1, "", MakeOperator<Comparison<Greater, false>>},
      {"And", 2, 2, 1, "", MakeOperator<Comparison<And, true>>},
      {"Or", 2, 2, 1, "", MakeOperator<Comparison<Or, true>>},
      {"Not", 1, 1, 1, "", MakeOperator<Not>},
      {"IsNaN", 1, 1, 1, "", MakeOperator<IsNaN>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
