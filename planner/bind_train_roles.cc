#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/bad_rows.h"
#include "base/sql_name.h"
#include "models/features/cell_format.h"
#include "planner/class_query.h"
#include "planner/train_binder_internal.h"

// What a training reads of each row besides its label and features: weight, exposure, group, split.
namespace sluice::planner {

using models::ModelFamily;
using models::ModelTask;

// Text that holds numbers counts as numbers; columns without a type (SQLite) are checked when they
// are read.
bool TrainBinder::HoldsNumbers(size_t column) const {
  const ColumnInfo& info = bound_.select.schema.columns[column];
  const auto& sample = bound_.statistics.sample;
  return info.type == DataType::kText && !sample.empty() &&
         std::all_of(sample.begin(), sample.end(), [column](const std::vector<Value>& row) {
           const auto* text = std::get_if<std::string>(&row[column]);
           return text == nullptr || models::ParseNumber(*text).has_value();
         });
}

Status TrainBinder::FindRole(const std::string& attribute, const std::string& role, bool numeric,
                             std::string* column) {
  const std::optional<std::string> name = bound_.attributes.Text(attribute);
  if (!name || !has_select_) {
    return OkStatus();
  }
  const Span span = bound_.attributes.SpanOf(attribute);
  const std::optional<size_t> index = bound_.select.columns.Find(*name);
  if (!index) {
    return bound_.select.columns.Missing(*name, span);
  }
  const ColumnInfo& info = bound_.select.schema.columns[*index];
  if (label_ == index) {
    return InvalidArgument(
               fmt::format("column '{}' is the label; it cannot be {} too", info.name, role))
        .At(span);
  }
  const bool weights = role == "the weight" || role == "the exposure";
  if (numeric && !IsNumeric(info.type) && !(weights && HoldsNumbers(*index))) {
    return InvalidArgument(fmt::format("column '{}' is {}; {} must be a number", info.name,
                                       info.database_type.empty()
                                           ? DataTypeName(info.type)
                                           : std::string_view(info.database_type),
                                       role))
        .At(span);
  }
  if (excluded_[*index].empty() && role != "the column of the split") {
    excluded_[*index] = role;
  }
  *column = info.name;
  return OkStatus();
}

void TrainBinder::BindRoles() {
  if (!has_select_ || bound_.type == nullptr) {
    return;
  }
  excluded_.assign(bound_.select.schema.columns.size(), "");
  if (label_) {
    excluded_[*label_] = "the label";
  }
  const std::string weight =
      bound_.type->family == ModelFamily::kTrees ? "weight_column" : "model.weight_column";
  errors_.Add(FindRole(weight, "the weight", true, bound_.features.mutable_weight_column()));
  if (bound_.attributes.Declared("model.exposure_column")) {
    errors_.Add(FindRole("model.exposure_column", "the exposure", true,
                         bound_.features.mutable_exposure_column()));
  }
  errors_.Add(FindRole("group_column", "the group", false, bound_.features.mutable_group_column()));
  // Marks validation rows: known only in training, so it is not a feature. A time or a key remains
  // one.
  std::string split;
  const bool marks = bound_.attributes.Text("split.kind") == "column";
  errors_.Add(FindRole("split.column",
                       marks ? "the mark of validation rows" : "the column of the split", marks,
                       &split));
  const std::string objective = bound_.attributes.Text("objective").value_or("");
  const bool ranks = bound_.type->task == ModelTask::kRanking || objective.starts_with("rank:");
  if (ranks && !bound_.attributes.Given("group_column")) {
    bound_.notes.push_back("without group_column all rows are one query");
  }
}

// Where every weight is 0, nothing would be learnt.
Status TrainBinder::CheckWeights() {
  constexpr size_t kSpellings = 16;  // of 0, in a column of texts
  const std::string& name = bound_.features.weight_column();
  const std::optional<size_t> index = bound_.select.columns.Find(name);
  if (name.empty() || !index) {
    return OkStatus();
  }
  const ColumnInfo& column = bound_.select.schema.columns[*index];
  const auto weighs = [&column](const std::string& weight) {
    return column.type == DataType::kBool ? weight != "f" : models::ParseNumber(weight) != 0.0;
  };
  for (const std::vector<Value>& row : bound_.statistics.sample) {
    if (!IsNull(row[*index]) && weighs(FormatValue(row[*index], column.type))) {
      return OkStatus();
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> weights,
                   QueryClasses(bound_.select.text, column, {}, kSpellings, source_));
  if (weights.empty() || std::any_of(weights.begin(), weights.end(), weighs)) {
    return OkStatus();
  }
  return InvalidArgument(
             fmt::format("the weight '{}' is 0 in every row: nothing can be learnt", name))
      .At(bound_.attributes.SpanOf(
          bound_.type->family == ModelFamily::kTrees ? "weight_column" : "model.weight_column"))
      .Hint("a row counts as often as its weight says: some must be above 0");
}

// Rates are per mean exposure, so that they are near the labels' mean at first.
void TrainBinder::BindExposure() {
  const std::string& name = bound_.features.exposure_column();
  const std::optional<size_t> index = bound_.select.columns.Find(name);
  if (name.empty() || !index) {
    return;
  }
  const catalog::ColumnStatistics& numbers = bound_.statistics.columns[*index];
  const bool none = numbers.null_fraction > 0;
  if (none || (numbers.has_range && !(numbers.min > 0))) {
    errors_.Add(
        InvalidArgument(fmt::format("exposure '{}' has {}, and an exposure is above 0", name,
                                    none ? std::string("NULL") : FormatDouble(numbers.min)))
            .At(bound_.attributes.SpanOf("model.exposure_column"))
            .Hint(KeepRowsWhere(fmt::format("{} > 0", SqlName(name)))));
    return;
  }
  if (numbers.has_range && numbers.mean > 0) {
    bound_.features.set_exposure_unit(numbers.mean);
  }
}

}  // namespace sluice::planner
