#include "executor/scoring/prediction_columns.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "models/features/cell_format.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// Classes are stored as text; a boolean is "t" or "f" there. Of a time, its microseconds.
int64_t ClassAsInteger(const std::string& text, DataType type) {
  if (type == DataType::kTimestamp) {
    return models::ParseTimestamp(text).value_or(0);
  }
  if (text == "t") {
    return 1;
  }
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The nearest integer of 64 bits.
int64_t ToInteger(double number) {
  constexpr double kBeyond = 0x1p63;
  return number >= kBeyond    ? std::numeric_limits<int64_t>::max()
         : number <= -kBeyond ? std::numeric_limits<int64_t>::min()
                              : std::llround(number);
}

double ClassAsNumber(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Result<PredictionColumns> PredictionColumns::Make(const plan::PredictPlan& plan,
                                                  const models::LabelPlan& label, size_t outputs,
                                                  std::optional<double> threshold) {
  PredictionColumns result;
  result.threshold_ = threshold;
  result.outputs_ = outputs;
  result.classifier_ = label.kind() == models::LabelPlan::CLASS;
  result.vector_ = label.kind() == models::LabelPlan::VECTOR;
  result.columns_ = planner::PredictedColumns(plan);
  for (const std::string& name : label.classes()) {
    result.classes_.push_back(name);
    result.class_integers_.push_back(ClassAsInteger(name, result.columns_.front().type));
    result.class_numbers_.push_back(ClassAsNumber(name));
  }
  if (result.classifier_ && label.classes_size() < 2) {
    return Internal("a classifier without classes was stored");
  }
  result.quantiles_ = plan.quantile_columns_size() > 0;
  if (result.quantiles_ && result.columns_.size() != outputs) {
    return Internal(fmt::format("{} quantiles are columns, and the model has {}",
                                result.columns_.size(), outputs));
  }
  for (const plan::PredictPlan::ExtraOutput& extra : plan.extra_outputs()) {
    if (!result.classifier_ || extra.class_index() < 0 ||
        extra.class_index() >= label.classes_size()) {
      return Internal(fmt::format("extra output '{}' is of no class", extra.column()));
    }
    result.classes_of_outputs_.push_back(
        extra.has_class_index() ? std::optional(static_cast<size_t>(extra.class_index()))
                                : std::nullopt);
  }
  return result;
}

size_t PredictionColumns::PredictedClass(const double* scores) const {
  if (threshold_ && classes_.size() == 2) {
    return ProbabilityOf(scores, 1) >= *threshold_ ? 1 : 0;
  }
  if (outputs_ == 1) {
    return scores[0] >= 0.5 ? 1 : 0;
  }
  return static_cast<size_t>(std::max_element(scores, scores + outputs_) - scores);
}

double PredictionColumns::ProbabilityOf(const double* scores, size_t name) const {
  if (outputs_ == 1) {
    return name == 1 ? scores[0] : 1 - scores[0];
  }
  return scores[name];
}

std::string PredictionColumns::CsvOf(const double* scores) const {
  return fmt::format("{}", fmt::join(scores, scores + outputs_, ","));
}

void PredictionColumns::FillLabel(const double* scores, size_t row, RowBatch::Column* column) {
  if (vector_) {
    texts_.push_back(CsvOf(scores));
    column->texts[row] = texts_.back();
    return;
  }
  if (!classifier_) {
    const double value = scores[0];
    if (column->type == DataType::kText) {
      texts_.push_back(FormatDouble(value));
      column->texts[row] = texts_.back();
    } else if (column->type == DataType::kDouble) {
      column->doubles[row] = value;
    } else {
      column->int64s[row] = ToInteger(value);
    }
    return;
  }
  const size_t predicted = PredictedClass(scores);
  if (column->type == DataType::kDouble) {
    column->doubles[row] = class_numbers_[predicted];
  } else if (column->type != DataType::kText && column->type != DataType::kBytes) {
    column->int64s[row] = class_integers_[predicted];
  } else {
    column->texts[row] = classes_[predicted];
  }
}

void PredictionColumns::Fill(const std::vector<double>& scores, size_t rows, RowBatch* batch,
                             size_t first) {
  texts_.clear();
  for (size_t c = 0; c < columns_.size(); ++c) {
    std::fill_n(batch->columns[first + c].null.begin(), rows, uint8_t{0});
  }
  for (size_t row = 0; row < rows; ++row) {
    const double* row_scores = scores.data() + row * outputs_;
    if (quantiles_) {
      for (size_t c = 0; c < outputs_; ++c) {
        batch->columns[first + c].doubles[row] = row_scores[c];
      }
      continue;
    }
    FillLabel(row_scores, row, &batch->columns[first]);
    for (size_t c = 1; c < columns_.size(); ++c) {
      const size_t likeliest = classes_.size() == 2 ? 1 : PredictedClass(row_scores);
      batch->columns[first + c].doubles[row] =
          ProbabilityOf(row_scores, classes_of_outputs_[c - 1].value_or(likeliest));
    }
  }
}

}  // namespace sluice::executor
