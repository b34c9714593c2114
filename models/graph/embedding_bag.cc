#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/graph/operator_internal.h"
#include "models/networks/id_factors.h"

namespace sluice::models::graph {
namespace {

// One for each feature of a table; features of one value per row have one id in each.
constexpr size_t kMaxInputs = 20'000;

// Not of ONNX: combines the embeddings of the ids that a row has of a feature into one: their
// weighted sum, mean, or sum divided by the root of the sum of squared weights. A row without ids
// gives 0. Those of several features of one table are added up; and to the last input, if that is
// [rows, width] or [width], which is the same for all rows. `columns`: the begin and the end of the
// table's columns that are read.
class EmbeddingBag final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    const Tensor& table = node.In(0);
    if (table.axes() != 2) {
      return InvalidArgument(
          fmt::format("a table has rows and columns, not the shape {}", ShapeText(table.shape)));
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
      return InvalidArgument(
          fmt::format("columns {} are not the begin and the end of some of a "
                      "table of shape {}",
                      ShapeText(columns), ShapeText(table.shape)));
    }
    table_rows_ = static_cast<size_t>(table.shape[0]);
    stride_ = static_cast<size_t>(table.shape[1]);
    first_ = static_cast<size_t>(columns[0]);
    width_ = static_cast<size_t>(columns[1] - columns[0]);
    RETURN_IF_ERROR(PlanBags(node));
    rows_ = static_cast<size_t>(node.In(1).shape[0]);
    Shape shape = {node.In(1).shape[0], columns[1] - columns[0]};
    RETURN_IF_ERROR(PlanStart(shape));
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    const TableReads* reads = node.In(0).reads;
    for (size_t k = 0; k < bags_.size(); ++k) {
      bags_[k].rows = reads == nullptr ? nullptr : reads->By(*bags_[k].ids, k);
    }
    const size_t line = LineOf(node.Out());
    bool begun = false;
    if (start_ != nullptr) {
      for (size_t row = 0; row < rows_; ++row) {
        std::copy_n(start_->numbers + row * start_line_, width_, node.Out().numbers + row * line);
      }
      begun = true;
    }
    for (Bag& bag : bags_) {
      AddBag(node, line, begun, &bag);
      begun = true;
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const size_t line = LineOf(node.Out());
    if (start_ != nullptr) {
      BackwardStart(node, back, line);
    }
    float* to = node.Zeroed(0);
    for (const Bag& bag : bags_) {
      if (to != nullptr) {
        BackwardBag(node, back, line, bag, to + first_);
      }
    }
  }
  bool LeavesGaps() const override { return true; }

 private:
  struct Bag {
    const Tensor* ids = nullptr;
    const RowUse* rows =
        nullptr;                 // of the table; nullptr: it is a parameter, whose rows the ids are
    std::vector<float> factors;  // by id; empty: all are 1
  };

  Status PlanBags(const OperatorContext& node) {
    bags_.clear();
    start_ = nullptr;
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      const bool bag = node.Has(k) && node.In(k).type == ElementType::kBag;
      if (!bag && k > 1 && k + 1 == node.inputs.size() && node.Has(k)) {
        RETURN_IF_ERROR(node.NeedFloat(k));
        start_ = &node.In(k);
        start_input_ = k;
      } else if (!bag) {
        return InvalidArgument("the ids must be a feature's, as many per row as there are")
            .Hint("say Gather");
      } else {
        Bag& own = bags_.emplace_back();
        own.ids = &node.In(k);
      }
    }
    return OkStatus();
  }
  Status PlanStart(const Shape& shape) {
    if (start_ == nullptr) {
      return OkStatus();
    }
    const bool same_for_all = start_->shape == Shape{shape[1]};
    if (!same_for_all && start_->shape != shape) {
      return InvalidArgument(
          fmt::format("embeddings of shape {} cannot be added to a value of shape {}",
                      ShapeText(shape), ShapeText(start_->shape)));
    }
    start_line_ = same_for_all ? 0 : width_;
    return OkStatus();
  }
  size_t LineOf(const Tensor& y) const { return y.line == 0 ? width_ : y.line; }
  // Whether each row has exactly one of the table's rows, of weight 1.
  static bool OneRowEach(const Bag& bag) {
    return bag.rows != nullptr && bag.ids->use->ends.empty() && bag.ids->use->weights.empty();
  }
  void AddBag(const OperatorContext& node, size_t line, bool begun, Bag* bag) {
    const float* table = node.In(0).numbers;  // null: no row of the batch has an id
    float* y = node.Out().numbers;
    if (OneRowEach(*bag)) {
      const auto move = begun ? node.kernels->gather_add_rows : node.kernels->gather_rows;
      if (rows_ > 0) {
        move(table + first_, stride_, bag->rows->positions.data(), rows_, width_, y, line);
      }
      return;
    }
    for (size_t row = 0; row < rows_ && !begun; ++row) {
      std::fill_n(y + row * line, width_, 0.0F);
    }
    const RowUse& use = *bag->ids->use;
    IdFactors(combiner_, rows_, use.ends, use.weights, &bag->factors);
    ForEach(*bag, [&](size_t row, size_t position, float factor) {
      for (size_t k = 0; k < width_; ++k) {
        y[row * line + k] += factor * table[position * stride_ + first_ + k];
      }
    });
  }
  void BackwardBag(const OperatorContext& node, const float* back, size_t line, const Bag& bag,
                   float* to) const {
    if (OneRowEach(bag)) {
      node.kernels->scatter_add_rows(back, line, bag.rows->positions.data(), rows_, width_, to,
                                     stride_);
      return;
    }
    ForEach(bag, [&](size_t row, size_t position, float factor) {
      for (size_t k = 0; k < width_; ++k) {
        to[position * stride_ + k] += factor * back[row * line + k];
      }
    });
  }
  void BackwardStart(const OperatorContext& node, const float* back, size_t line) {
    const GradientTarget target = node.Target(start_input_);
    if (!target) {
      return;
    }
    if (start_line_ == 0) {
      sums_.resize(width_);
      float* to = target.add ? sums_.data() : target.to;
      node.kernels->column_sums(rows_, width_, back, line, to);
      for (size_t k = 0; target.add && k < width_; ++k) {
        target.to[k] += to[k];
      }
      return;
    }
    for (size_t row = 0; row < rows_; ++row) {
      const float* from = back + row * line;
      float* to = target.to + row * width_;
      for (size_t k = 0; k < width_; ++k) {
        to[k] = target.add ? to[k] + from[k] : from[k];
      }
    }
  }
  static size_t EndOf(const RowUse& bag, size_t row) {
    return bag.ends.empty() ? row + 1 : bag.ends[row];
  }
  // body(row, table row, factor) for each id.
  template <typename Body>
  void ForEach(const Bag& own, Body body) const {
    const RowUse& bag = *own.ids->use;
    const RowUse& rows = own.rows == nullptr ? bag : *own.rows;
    size_t begin = 0;
    for (size_t row = 0; row < rows_; ++row) {
      const size_t end = EndOf(bag, row);
      for (size_t i = begin; i < end; ++i) {
        if (own.rows != nullptr || rows.positions[i] < table_rows_) {
          body(row, rows.positions[i], own.factors.empty() ? 1.0F : own.factors[i]);
        }
      }
      begin = end;
    }
  }

  std::string combiner_;
  size_t table_rows_ = 0;
  size_t stride_ = 0;  // from one to the next
  size_t first_ = 0;   // column that is read
  size_t width_ = 0;   // number of them
  size_t rows_ = 0;    // of the batch
  std::vector<Bag> bags_;
  const Tensor* start_ = nullptr;
  size_t start_input_ = 0;
  size_t start_line_ = 0;  // 0: the same for all rows
  std::vector<float> sums_;
};

}  // namespace

std::span<const OperatorEntry> EmbeddingOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"EmbeddingBag", 2, kMaxInputs, 1, "combiner columns", MakeOperator<EmbeddingBag>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
