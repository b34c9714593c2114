#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "models/graph/operator_internal.h"

// Convolution and pooling along one axis: rows x channels x positions.
namespace sluice::models::graph {
namespace {

// A window that slides over the positions of a value.
struct Window {
  int64_t places = 0;  // of the input
  int64_t size = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t before = 0;  // positions of padding
  int64_t after = 0;
  int64_t steps = 0;  // positions of the output

  int64_t span() const { return (size - 1) * dilation + 1; }
  // The input position of an element of the window; outside [0, places): padding.
  int64_t PlaceOf(int64_t step, int64_t inside) const {
    return step * stride - before + inside * dilation;
  }
  bool Holds(int64_t place) const { return place >= 0 && place < places; }
};

constexpr int64_t kWidest = 4096;  // of a window, its stride, its padding

Result<int64_t> OneOf(const Attributes& attributes, std::string_view name, int64_t otherwise) {
  const std::vector<int64_t> values = attributes.Integers(name);
  if (values.empty()) {
    return otherwise;
  }
  if (values.size() != 1) {
    return Unimplemented(fmt::format("{} has {} numbers: only one axis of places is supported",
                                     name, values.size()));
  }
  if (values[0] < 1 || values[0] > kWidest) {
    return InvalidArgument(fmt::format("{} must be between 1 and {}", name, kWidest));
  }
  return values[0];
}

Result<Window> WindowOf(const OperatorContext& node, int64_t size) {
  const Attributes& attributes = *node.attributes;
  const Shape& x = node.In(0).shape;
  if (x.size() != 3) {
    return Unimplemented(fmt::format("a value of shape {}: rows x channels x places are supported",
                                     ShapeText(x)))
        .Hint("a window moves along one axis here (Conv1d, MaxPool1d)");
  }
  Window window;
  window.places = x[2];
  ASSIGN_OR_RETURN(window.size, OneOf(attributes, "kernel_shape", size));
  ASSIGN_OR_RETURN(window.stride, OneOf(attributes, "strides", 1));
  ASSIGN_OR_RETURN(window.dilation, OneOf(attributes, "dilations", 1));
  const std::string automatic = attributes.Text("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") {
    return Unimplemented(fmt::format("auto_pad={} is not supported", automatic)).Hint("say pads");
  }
  const std::vector<int64_t> pads = attributes.Integers("pads");
  if (!pads.empty()) {
    if (pads.size() != 2 || std::min(pads[0], pads[1]) < 0 ||
        std::max(pads[0], pads[1]) > kWidest) {
      return InvalidArgument(fmt::format("pads must be two numbers between 0 and {}", kWidest));
    }
    window.before = pads[0];
    window.after = pads[1];
  }
  const int64_t room = window.places + window.before + window.after - window.span();
  if (room < 0) {
    return InvalidArgument(fmt::format("a window of {} does not fit into {} places", window.span(),
                                       window.places + window.before + window.after));
  }
  const bool up = attributes.Integer("ceil_mode", 0) != 0;
  window.steps = (up ? room + window.stride - 1 : room) / window.stride + 1;
  if (up && (window.steps - 1) * window.stride >= window.places + window.before) {
    --window.steps;  // a window that would begin after the last position
  }
  return window;
}

// Computed as a matrix product: each window of a row becomes a row of `columns_`.
class Conv final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (k < 2 || node.Has(k)) {
        RETURN_IF_ERROR(node.NeedFloat(k));
      }
    }
    const Shape& x = node.In(0).shape;
    const Shape& w = node.In(1).shape;
    if (w.size() != 3) {
      return Unimplemented(
                 fmt::format("weights of shape {}: outputs x channels x window are supported",
                             ShapeText(w)))
          .Hint("a window moves along one axis here (Conv1d); images (Conv2d) have no counterpart");
    }
    ASSIGN_OR_RETURN(window_, WindowOf(node, w[2]));
    const int64_t groups = node.attributes->Integer("group", 1);
    if (groups < 1 || groups > kMaxElements || w[2] != window_.size || w[0] % groups != 0 ||
        x[1] != w[1] * groups || w[0] == 0 || w[1] == 0) {
      return InvalidArgument(fmt::format("weights of shape {} do not fit to a value of shape {}",
                                         ShapeText(w), ShapeText(x)));
    }
    if (node.Has(2) && (node.In(2).axes() != 1 || node.In(2).shape[0] != w[0])) {
      return InvalidArgument(fmt::format("{} outputs need as many biases", w[0]));
    }
    rows_ = static_cast<size_t>(x[0]);
    groups_ = static_cast<size_t>(groups);
    channels_ = static_cast<size_t>(w[1]);
    outputs_ = static_cast<size_t>(w[0] / groups);
    RETURN_IF_ERROR(CheckShape({x[0], x[1], window_.steps, window_.size}));
    return node.Shaped({x[0], w[0], window_.steps});
  }
  void Forward(const OperatorContext& node) override {
    const size_t lines = rows_ * static_cast<size_t>(window_.steps);
    const size_t steps = static_cast<size_t>(window_.steps);
    const size_t depth = channels_ * static_cast<size_t>(window_.size);
    columns_.resize(groups_ * lines * depth);
    made_.resize(lines * outputs_);
    weights_.resize(depth * outputs_);
    biases_.assign(outputs_, 0.0F);
    for (size_t g = 0; g < groups_; ++g) {
      float* columns = columns_.data() + g * lines * depth;
      Gather(node.In(0).numbers, g, columns);
      node.kernels->transpose(outputs_, depth, node.In(1).numbers + g * outputs_ * depth, depth,
                              weights_.data(), outputs_);
      if (node.Has(2)) {
        std::copy_n(node.In(2).numbers + g * outputs_, outputs_, biases_.data());
      }
      if (lines > 0) {
        node.kernels->gemm_bias({lines, outputs_, depth, depth, 1, outputs_, outputs_}, columns,
                                weights_.data(), biases_.data(), made_.data());
      }
      for (size_t r = 0; r < rows_; ++r) {
        node.kernels->transpose(steps, outputs_, made_.data() + r * steps * outputs_, outputs_,
                                node.Out().numbers + (r * groups_ + g) * outputs_ * steps, steps);
      }
    }
  }
  void Backward(const OperatorContext& node) override {
    const size_t lines = rows_ * static_cast<size_t>(window_.steps);
    const size_t steps = static_cast<size_t>(window_.steps);
    const size_t depth = channels_ * static_cast<size_t>(window_.size);
    float* to_x = node.Zeroed(0);
    float* to_w = node.Zeroed(1);
    float* to_b = node.Has(2) ? node.Zeroed(2) : nullptr;
    for (size_t g = 0; lines > 0 && g < groups_; ++g) {
      for (size_t r = 0; r < rows_; ++r) {
        node.kernels->transpose(outputs_, steps, node.Back() + (r * groups_ + g) * outputs_ * steps,
                                steps, made_.data() + r * steps * outputs_, outputs_);
      }
      if (to_w != nullptr) {
        node.kernels->gemm_add({outputs_, depth, lines, 1, outputs_, depth, depth}, made_.data(),
                               columns_.data() + g * lines * depth, to_w + g * outputs_ * depth);
      }
      if (to_b != nullptr) {
        node.kernels->column_sums(lines, outputs_, made_.data(), outputs_, biases_.data());
        for (size_t o = 0; o < outputs_; ++o) {
          to_b[g * outputs_ + o] += biases_[o];
        }
      }
      if (to_x != nullptr) {
        spread_.resize(lines * depth);
        node.kernels->gemm({lines, depth, outputs_, outputs_, 1, depth, depth}, made_.data(),
                           node.In(1).numbers + g * outputs_ * depth, spread_.data());
        Scatter(g, to_x);
      }
    }
  }

 private:
  // body(element of x, element of columns), without the padding. Those of one element of x come in
  // the order of the steps.
  template <typename Body>
  void ForEach(size_t group, Body body) const {
    const auto size = static_cast<size_t>(window_.size);
    const size_t depth = channels_ * size;
    for (int64_t i = window_.size - 1; i >= 0; --i) {
      int64_t first = 0;  // the steps whose place is none of the padding are a range
      while (first < window_.steps && !window_.Holds(window_.PlaceOf(first, i))) {
        ++first;
      }
      int64_t end = first;
      while (end < window_.steps && window_.Holds(window_.PlaceOf(end, i))) {
        ++end;
      }
      const auto count = static_cast<size_t>(end - first);
      const auto stride = static_cast<size_t>(window_.stride);
      const size_t begin = count == 0 ? 0 : static_cast<size_t>(window_.PlaceOf(first, i));
      for (size_t r = 0; count > 0 && r < rows_; ++r) {
        const size_t step = r * static_cast<size_t>(window_.steps) + static_cast<size_t>(first);
        for (size_t c = 0; c < channels_; ++c) {
          const size_t channel = (r * groups_ + group) * channels_ + c;
          size_t of_x = channel * static_cast<size_t>(window_.places) + begin;
          size_t at = step * depth + c * size + static_cast<size_t>(i);
          for (size_t k = 0; k < count; ++k, of_x += stride, at += depth) {
            body(of_x, at);
          }
        }
      }
    }
  }
  void Gather(const float* x, size_t group, float* columns) const {
    if (window_.before > 0 || window_.after > 0) {
      std::fill_n(columns, rows_ * static_cast<size_t>(window_.steps * window_.size) * channels_,
                  0.0F);
    }
    ForEach(group, [&](size_t from, size_t at) { columns[at] = x[from]; });
  }
  void Scatter(size_t group, float* to_x) const {
    ForEach(group, [&](size_t to, size_t at) { to_x[to] += spread_[at]; });
  }

  Window window_;
  size_t rows_ = 0;
  size_t groups_ = 1;
  size_t channels_ = 0;  // of a group
  size_t outputs_ = 0;   // of a group
  std::vector<float> columns_;
  std::vector<float> weights_;
  std::vector<float> biases_;
  std::vector<float> made_;
  std::vector<float> spread_;
};

enum class Pooling { kMax, kAverage };

// The maximum or the mean of each window, or of all positions.
template <Pooling kPooling, bool kGlobal>
class Pool final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    Shape shape = node.In(0).shape;
    if constexpr (kGlobal) {
      if (shape.size() < 3) {
        return InvalidArgument(
            fmt::format("a value of shape {} has no places to pool", ShapeText(shape)));
      }
      window_ = Window();
      window_.places = window_.size = ExtentOf(shape, 2);
      window_.steps = 1;
      if (window_.places == 0) {
        return InvalidArgument("there are no places to pool");
      }
      std::fill(shape.begin() + 2, shape.end(), 1);
    } else {
      if (!node.attributes->Has("kernel_shape")) {
        return InvalidArgument("kernel_shape is missing");
      }
      ASSIGN_OR_RETURN(window_, WindowOf(node, 1));
      shape[2] = window_.steps;
    }
    count_padding_ = node.attributes->Integer("count_include_pad", 0) != 0;
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    const float* x = node.In(0).numbers;
    float* y = node.Out().numbers;
    if (kPooling == Pooling::kMax) {
      winners_.resize(node.Out().count());
    }
    ForEach(node, [&](size_t at, size_t first, int64_t step) {
      if constexpr (kPooling == Pooling::kMax) {
        int64_t best = -1;
        for (int64_t i = 0; i < window_.size; ++i) {
          const int64_t place = window_.PlaceOf(step, i);
          if (!window_.Holds(place)) {
            continue;
          }
          const float own = x[first + static_cast<size_t>(place)];
          if (best < 0 || own > x[first + static_cast<size_t>(best)] || own != own) {
            best = place;
          }
        }
        winners_[at] = best;
        y[at] = best < 0 ? -std::numeric_limits<float>::infinity()
                         : x[first + static_cast<size_t>(best)];
      } else {
        float sum = 0;
        for (int64_t i = 0; i < window_.size; ++i) {
          const int64_t place = window_.PlaceOf(step, i);
          sum += window_.Holds(place) ? x[first + static_cast<size_t>(place)] : 0.0F;
        }
        y[at] = sum / DivisorOf(step);
      }
    });
  }
  void Backward(const OperatorContext& node) override {
    float* to = node.Zeroed(0);
    if (to == nullptr) {
      return;
    }
    const float* back = node.Back();
    ForEach(node, [&](size_t at, size_t first, int64_t step) {
      if constexpr (kPooling == Pooling::kMax) {
        if (winners_[at] >= 0) {
          to[first + static_cast<size_t>(winners_[at])] += back[at];
        }
      } else {
        const float share = back[at] / DivisorOf(step);
        for (int64_t i = 0; i < window_.size; ++i) {
          const int64_t place = window_.PlaceOf(step, i);
          if (window_.Holds(place)) {
            to[first + static_cast<size_t>(place)] += share;
          }
        }
      }
    });
  }

 private:
  // body(output element, first input element of the channel, step).
  template <typename Body>
  void ForEach(const OperatorContext& node, Body body) const {
    const Shape& x = node.In(0).shape;
    const auto lines = static_cast<size_t>(x[0] * x[1]);
    size_t at = 0;
    for (size_t line = 0; line < lines; ++line) {
      for (int64_t step = 0; step < window_.steps; ++step) {
        body(at++, line * static_cast<size_t>(window_.places), step);
      }
    }
  }
  float DivisorOf(int64_t step) const {
    int64_t count = 0;
    for (int64_t i = 0; i < window_.size; ++i) {
      const int64_t place = window_.PlaceOf(step, i);
      // The part of a rounded-up last window that lies beyond the padding never counts.
      const bool counted = count_padding_ && place < window_.places + window_.after;
      count += counted || window_.Holds(place) ? 1 : 0;
    }
    return static_cast<float>(std::max<int64_t>(count, 1));
  }

  Window window_;
  bool count_padding_ = false;
  std::vector<int64_t> winners_;  // the positions of the maxima
};

}  // namespace

std::span<const OperatorEntry> ConvolutionOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Conv", 2, 3, 1, "auto_pad dilations group kernel_shape pads strides", MakeOperator<Conv>},
      {"MaxPool", 1, 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
       MakeOperator<Pool<Pooling::kMax, false>>},
      {"AveragePool", 1, 1, 1, "auto_pad ceil_mode count_include_pad kernel_shape pads strides",
       MakeOperator<Pool<Pooling::kAverage, false>>},
      {"GlobalMaxPool", 1, 1, 1, "", MakeOperator<Pool<Pooling::kMax, true>>},
      {"GlobalAveragePool", 1, 1, 1, "", MakeOperator<Pool<Pooling::kAverage, true>>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
