#include <fmt/core.h>

#include <algorithm>

#include "models/graph/operator_internal.h"
#include "models/graph/recurrent_cells_internal.h"

// Recurrent layers over steps x rows x channels: forwards, backwards or both.
namespace sluice::models::graph {
namespace {

// Each step of a sequence is a pass over the whole batch and depends on the previous step.
constexpr int64_t kMaxSteps = 4096;

// X, W, R, B, sequence_lens, initial_h, initial_c, P to Y, Y_h, Y_c.
template <Cell kCell>
class Recurrent final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (k == 4 && node.Has(k)) {
        return Unimplemented("sequence_lens is not supported")
            .Hint("all rows have as many steps; use a mask");
      }
      if (k == 7 && node.Has(k)) {
        return Unimplemented("peepholes (P) are not supported");
      }
      if (k < 3 || node.Has(k)) {
        RETURN_IF_ERROR(node.NeedFloat(k));
      }
    }
    RETURN_IF_ERROR(ReadAttributes(*node.attributes));
    const Shape& x = node.In(0).shape;
    const Shape& w = node.In(1).shape;
    const Shape& r = node.In(2).shape;
    if (x.size() != 3 || w.size() != 3 || r.size() != 3) {
      return InvalidArgument(fmt::format("X, W and R need three axes, not the shapes {}, {}, {}",
                                         ShapeText(x), ShapeText(w), ShapeText(r)));
    }
    if (x[0] > kMaxSteps) {
      return InvalidArgument(fmt::format("a sequence has {} steps: at most {}", x[0], kMaxSteps))
          .Hint("each step waits for the one before");
    }
    const auto directions = static_cast<int64_t>(directions_.size());
    constexpr auto kGates = static_cast<int64_t>(GatesOf(kCell));
    const int64_t hidden = r[2];
    const Shape state = {directions, x[1], hidden};
    if (hidden == 0 || x[0] == 0 || w != Shape{directions, kGates * hidden, x[2]} ||
        r != Shape{directions, kGates * hidden, hidden} ||
        (node.Has(3) && node.In(3).shape != Shape{directions, 2 * kGates * hidden}) ||
        (node.Has(5) && node.In(5).shape != state) || (node.Has(6) && node.In(6).shape != state)) {
      return InvalidArgument(fmt::format(
          "the weights' shapes {} and {}, the biases' or the first states' do not fit to {} "
          "directions and a value of shape {}",
          ShapeText(w), ShapeText(r), directions, ShapeText(x)));
    }
    RETURN_IF_ERROR(graph::CheckShape({x[0], x[1], kGates * hidden, directions}));
    for (Direction<kCell>& direction : directions_) {
      direction.steps = static_cast<size_t>(x[0]);
      direction.rows = static_cast<size_t>(x[1]);
      direction.inputs = static_cast<size_t>(x[2]);
      direction.hidden = static_cast<size_t>(hidden);
    }
    RETURN_IF_ERROR(node.Shaped({x[0], directions, x[1], hidden}));
    RETURN_IF_ERROR(node.Shaped(state, ElementType::kFloat, 1));
    return node.Shaped(state, ElementType::kFloat, 2);
  }

  void Forward(const OperatorContext& node) override {
    const size_t rows = directions_[0].rows;
    const size_t n = rows * directions_[0].hidden;
    if (!node.Reads(0)) {
      values_.resize(directions_[0].steps * directions_.size() * n);
    }
    for (size_t d = 0; d < directions_.size(); ++d) {
      Direction<kCell>& direction = directions_[d];
      const auto memory = MemoryOf(node, d);
      direction.Forward(*node.kernels, memory);
      const size_t last = direction.StepOf(direction.steps - 1);
      if (node.Reads(1)) {
        std::copy_n(memory.y + last * memory.y_stride, n, node.Out(1).numbers + d * n);
      }
      if (node.Reads(2) && kCell == Cell::kLstm) {
        std::copy_n(direction.LastCells(), n, node.Out(2).numbers + d * n);
      }
    }
  }

  void Backward(const OperatorContext& node) override {
    constexpr size_t kGates = GatesOf(kCell);
    float* const x = node.Zeroed(0);
    float* const w = node.Zeroed(1);
    float* const r = node.Zeroed(2);
    float* const bias = node.Zeroed(3);
    float* const first_h = node.Zeroed(5);
    float* const first_c = node.Zeroed(6);
    for (size_t d = 0; d < directions_.size(); ++d) {
      Direction<kCell>& direction = directions_[d];
      const size_t width = kGates * direction.hidden;
      const size_t n = direction.rows * direction.hidden;
      const auto part = [d](auto* base, size_t size) {
        return base == nullptr ? nullptr : base + d * size;
      };
      typename Direction<kCell>::Back back;
      back.y = part(node.Back(0), n);
      back.last_h = part(node.Back(1), n);
      back.last_c = part(node.Back(2), n);
      back.x = x;
      back.w = part(w, width * direction.inputs);
      back.r = part(r, width * direction.hidden);
      back.bias = part(bias, 2 * width);
      back.first_h = part(first_h, n);
      back.first_c = part(first_c, n);
      direction.Backward(*node.kernels, MemoryOf(node, d), back);
    }
  }

 private:
  Status ReadAttributes(const Attributes& attributes) {
    const std::string way = attributes.Text("direction", "forward");
    if (way != "forward" && way != "reverse" && way != "bidirectional") {
      return InvalidArgument(fmt::format("no direction '{}'", way))
          .Hint("forward, reverse or bidirectional");
    }
    if (attributes.Integer("layout", 0) != 0) {
      return Unimplemented("layout=1 is not supported").Hint("steps come first: say Transpose");
    }
    if (attributes.Integer("input_forget", 0) != 0) {
      return Unimplemented("input_forget is not supported");
    }
    directions_.resize(way == "bidirectional" ? 2 : 1);
    directions_[0].backwards = way == "reverse";
    directions_.back().backwards = way != "forward";
    const std::vector<std::string> functions = attributes.Texts("activations");
    const std::vector<std::string> usual = kCell == Cell::kSimple ? std::vector<std::string>{"Tanh"}
                                           : kCell == Cell::kLstm
                                               ? std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}
                                               : std::vector<std::string>{"Sigmoid", "Tanh"};
    bool relu = false;
    for (size_t i = 0; i < functions.size(); ++i) {
      const bool is_relu = kCell == Cell::kSimple && functions[i] == "Relu";
      relu = i == 0 ? is_relu : relu;
      if ((functions[i] != usual[i % usual.size()] && !is_relu) || is_relu != relu) {
        return Unimplemented(fmt::format("the activation {} is not supported here", functions[i]))
            .Hint(fmt::format("{}", usual[i % usual.size()]));
      }
    }
    for (Direction<kCell>& direction : directions_) {
      direction.relu = relu;
      direction.reset_after = attributes.Integer("linear_before_reset", 0) != 0;
    }
    return OkStatus();
  }
  typename Direction<kCell>::Memory MemoryOf(const OperatorContext& node, size_t d) {
    const Direction<kCell>& direction = directions_[d];
    const size_t width = GatesOf(kCell) * direction.hidden;
    const size_t n = direction.rows * direction.hidden;
    const auto part = [&](size_t k, size_t size) {
      return node.Has(k) ? node.In(k).numbers + d * size : nullptr;
    };
    typename Direction<kCell>::Memory memory;
    memory.x = node.In(0).numbers;
    memory.w = part(1, width * direction.inputs);
    memory.r = part(2, width * direction.hidden);
    memory.bias = part(3, 2 * width);
    memory.first_h = part(5, n);
    memory.first_c = part(6, n);
    memory.y = (node.Reads(0) ? node.Out(0).numbers : values_.data()) + d * n;
    memory.y_stride = directions_.size() * n;
    return memory;
  }

  std::vector<Direction<kCell>> directions_;
  std::vector<float> values_;  // Y, if only the last step is read
};

}  // namespace

std::span<const OperatorEntry> RecurrentOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"RNN", 3, 6, 2, "activations direction hidden_size layout",
       MakeOperator<Recurrent<Cell::kSimple>>},
      {"LSTM", 3, 8, 3, "activations direction hidden_size input_forget layout",
       MakeOperator<Recurrent<Cell::kLstm>>},
      {"GRU", 3, 6, 2, "activations direction hidden_size layout linear_before_reset",
       MakeOperator<Recurrent<Cell::kGru>>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
