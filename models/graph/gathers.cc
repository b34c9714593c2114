#include <fmt/core.h>

#include <algorithm>
#include <cmath>
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
    if (const RowUse* use = node.In(0).use) {
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

// Not of ONNX: combines the embeddings of a row's ids into one: their weighted sum, mean, or sum
// divided by the root of the sum of squared weights. A row without ids gives 0. `columns`: the begin
// and the end of the table's columns that are read.
class EmbeddingBag final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    const Tensor& table = node.In(0);
    if (table.axes() != 2) {
      return InvalidArgument(
          fmt::format("a table has rows and columns, not the shape {}", ShapeText(table.shape)));
    }
    if (node.In(1).type != ElementType::kBag) {
      return InvalidArgument("the ids must be a feature's, as many per row as there are")
          .Hint("say Gather");
    }
    combiner_ = node.attributes->Text("combiner", "sum");
    if (combiner_ != "sum" && combiner_ != "mean" && combiner_ != "sqrtn") {
      return InvalidArgument(fmt::format("no combiner '{}'", combiner_)).Hint("sum, mean or sqrtn");
    }
    Shape columns = {0, table.shape[1]};
    if (node.attributes->Has("columns")) {
      columns = node.attributes->Integers("columns");
    }
    if (columns.size() != 2 || columns[0] < 0 || columns[0] >= columns[1] ||
        columns[1] > table.shape[1]) {
      return InvalidArgument(fmt::format("columns {} are not the begin and the end of some of a "
                                         "table of shape {}",
                                         ShapeText(columns), ShapeText(table.shape)));
    }
    rows_ = static_cast<size_t>(table.shape[0]);
    stride_ = static_cast<size_t>(table.shape[1]);
    first_ = static_cast<size_t>(columns[0]);
    width_ = static_cast<size_t>(columns[1] - columns[0]);
    return node.Shaped({node.In(1).shape[0], columns[1] - columns[0]});
  }
  void Forward(const OperatorContext& node) override {
    const float* table = node.In(0).numbers;  // null: no row of the batch has an id
    float* y = node.Out().numbers;
    const size_t line = LineOf(node.Out());
    const size_t rows = RowsOf(node);
    if (const RowUse* use = OneRowEach(node); use != nullptr && rows > 0) {
      node.kernels->gather_rows(table + first_, stride_, use->positions.data(), rows, width_, y,
                                line);
      return;
    }
    for (size_t row = 0; row < rows; ++row) {
      std::fill_n(y + row * line, width_, 0.0F);
    }
    Weigh(node);
    ForEach(node, [&](size_t row, size_t position, float factor) {
      for (size_t k = 0; k < width_; ++k) {
        y[row * line + k] += factor * table[position * stride_ + first_ + k];
      }
    });
  }
  void Backward(const OperatorContext& node) override {
    float* to = node.Zeroed(0);
    if (to == nullptr) {
      return;
    }
    to += first_;
    const float* back = node.Back();
    const size_t line = LineOf(node.Out());
    if (const RowUse* use = OneRowEach(node)) {
      node.kernels->scatter_add_rows(back, line, use->positions.data(), RowsOf(node), width_, to,
                                     stride_);
      return;
    }
    ForEach(node, [&](size_t row, size_t position, float factor) {
      for (size_t k = 0; k < width_; ++k) {
        to[position * stride_ + k] += factor * back[row * line + k];
      }
    });
  }
  bool LeavesGaps() const override { return true; }

 private:
  size_t LineOf(const Tensor& y) const { return y.line == 0 ? width_ : y.line; }
  static size_t RowsOf(const OperatorContext& node) {
    return static_cast<size_t>(node.Out().shape[0]);
  }
  // Whether each row has exactly one of the table's rows, of weight 1; nullptr: not so.
  static const RowUse* OneRowEach(const OperatorContext& node) {
    const RowUse& bag = *node.In(1).use;
    return bag.ends.empty() && bag.weights.empty() ? node.In(0).use : nullptr;
  }
  static size_t EndOf(const RowUse& bag, size_t row) {
    return bag.ends.empty() ? row + 1 : bag.ends[row];
  }
  void Weigh(const OperatorContext& node) {
    const RowUse& bag = *node.In(1).use;
    factors_.resize(bag.positions.size());
    size_t begin = 0;
    for (size_t row = 0; row < RowsOf(node); ++row) {
      const size_t end = EndOf(bag, row);
      float sum = 0;
      float squares = 0;
      for (size_t i = begin; i < end; ++i) {
        factors_[i] = bag.weights.empty() ? 1.0F : bag.weights[i];
        sum += factors_[i];
        squares += factors_[i] * factors_[i];
      }
      const float divisor =
          combiner_ == "mean" ? sum : (combiner_ == "sqrtn" ? std::sqrt(squares) : 1.0F);
      // If the weights cancel out, there is no mean: the row counts as empty.
      const float scale = divisor == 0 ? 0.0F : 1.0F / divisor;
      for (size_t i = begin; i < end; ++i) {
        factors_[i] *= scale;
      }
      begin = end;
    }
  }
  // body(row, table row, factor) for each id.
  template <typename Body>
  void ForEach(const OperatorContext& node, Body body) const {
    const RowUse& bag = *node.In(1).use;
    const RowUse& rows = node.In(0).use == nullptr ? bag : *node.In(0).use;
    size_t begin = 0;
    for (size_t row = 0; row < RowsOf(node); ++row) {
      const size_t end = EndOf(bag, row);
      for (size_t i = begin; i < end; ++i) {
        if (node.In(0).use != nullptr || rows.positions[i] < rows_) {
          body(row, rows.positions[i], factors_[i]);
        }
      }
      begin = end;
    }
  }

  std::string combiner_;
  size_t rows_ = 0;    // of the table
  size_t stride_ = 0;  // from one to the next
  size_t first_ = 0;   // column that is read
  size_t width_ = 0;   // number of them
  std::vector<float> factors_;
};

}  // namespace

std::span<const OperatorEntry> GatherOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Gather", 2, 2, 1, "axis", MakeOperator<Gather>},
      {"GatherElements", 2, 2, 1, "axis", MakeOperator<GatherElements>},
      {"EmbeddingBag", 2, 2, 1, "combiner columns", MakeOperator<EmbeddingBag>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
