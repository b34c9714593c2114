#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bad_rows.h"
#include "base/sql_name.h"
#include "models/features/feature_transform.h"
#include "models/features/label_reader_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

// Class ids are stored as floats, which represent integers exactly up to here.
constexpr int kMaxLabelClasses = 1 << 24;
constexpr int kClassesShown = 5;

// nullopt: the text is not a number. The cell must not be NULL.
std::optional<double> NumberOf(const RowBatch::Column& column, size_t row) {
  return IsText(column) ? ParseNumber(column.texts[row])
                        : std::optional<double>(column.NumberAt(row));
}

// Of the errors that IsUnseenClass recognises; no user meets them.
constexpr char kUnseenClass[] = "SL001";

std::string CellText(const RowBatch::Column& column, size_t row) {
  return FormatValue(column.ValueAt(row), column.type);
}

// Holds for neither infinity nor NaN, whose differences are NaN or NULL.
std::string FiniteNumber(const std::string& column) {
  return fmt::format("{0} - {0} = 0", SqlName(column));
}

// A weight or an exposure; `comparison`: what such numbers have to hold.
Status BadAmount(const std::string& name, const RowBatch::Column& column, size_t row,
                 std::string_view problem, std::string_view comparison) {
  const bool null = column.null[row] != 0;
  const std::string cell = null ? "NULL" : CellText(column, row);
  const std::string sql = SqlName(name);
  Status status = BadCell(name, cell, problem);
  if (IsText(column)) {  // a database may refuse to compare it with a number
    return null ? std::move(status)
                      .Detail(RowsWhere(sql + " IS NULL"))
                      .Hint(KeepRowsWhere(sql + " IS NOT NULL"))
                : std::move(status).Hint(KeepRowsWithoutText(name, cell));
  }
  const bool finite = null || std::isfinite(column.NumberAt(row));
  return std::move(status)
      .Detail(RowsWhere(fmt::format("({0} IS NULL OR NOT {0} {1})", sql, comparison)))
      .Hint(KeepRowsWhere(
          fmt::format("{} {}{}", sql, comparison, finite ? "" : " AND " + FiniteNumber(name))));
}

}  // namespace

bool IsUnseenClass(const Status& status) {
  return status.sqlstate() == kUnseenClass;
}

Result<LabelReader> LabelReader::Make(const LabelPlan& plan) {
  LabelReader made;
  made.column_ = plan.column();
  switch (plan.kind()) {
    case LabelPlan::NONE:
      return made;
    case LabelPlan::NUMBER: {
      made.width_ = 1;
      ASSIGN_OR_RETURN(made.scales_, LabelScales(plan));
      return made;
    }
    case LabelPlan::CLASS: {
      made.width_ = 1;
      made.classes_ = true;
      made.classes_of_sample_ = plan.classes_of_sample();
      if (plan.classes_size() == 0 || plan.classes_size() > kMaxLabelClasses) {
        return InvalidArgument(fmt::format("label '{}': {} classes, expected 1 to {}",
                                           plan.column(), plan.classes_size(), kMaxLabelClasses));
      }
      Status status = made.vocabulary_.Build({plan.classes().begin(), plan.classes().end()},
                                             static_cast<DataType>(plan.type()));
      if (!status.ok()) {
        return std::move(status).Because(fmt::format("label '{}'", plan.column()));
      }
      return made;
    }
    case LabelPlan::VECTOR: {
      made.vector_ = true;
      made.width_ = plan.width();
      ASSIGN_OR_RETURN(made.scales_, LabelScales(plan));
      return made;
    }
    default:
      return InvalidArgument(
          fmt::format("label '{}': unknown kind {}", plan.column(), static_cast<int>(plan.kind())));
  }
}

Status LabelReader::NullLabel(bool text) const {
  const std::string name = SqlName(column_);
  return InvalidArgument(fmt::format("label column '{}' is NULL in a row", column_))
      .Detail(RowsWhere(text ? fmt::format("({0} IS NULL OR trim({0}) = '')", name)
                             : fmt::format("{} IS NULL", name)))
      .Hint(KeepRowsWhere(text ? fmt::format("trim({}) <> ''", name) : name + " IS NOT NULL"));
}

Status LabelReader::UnknownClass(const RowBatch::Column& column, size_t row) const {
  const std::string value = CellText(column, row);
  if (classes_of_sample_) {
    return InvalidArgument(
               fmt::format("{} has a class '{}', which the sample did not show", column_, value))
        .SqlState(kUnseenClass);
  }
  const std::vector<std::string>& classes = vocabulary_.texts();
  std::string known;
  for (size_t i = 0; i < classes.size() && i < kClassesShown; ++i) {
    known += (i == 0 ? "'" : ", '") + classes[i] + "'";
  }
  if (classes.size() > kClassesShown) {
    known += fmt::format(" and {} more", classes.size() - kClassesShown);
  }
  Status status =
      BadCell(column_, value, fmt::format("the label is none of the classes {}", known));
  const bool number = IsNumeric(column.type) && column.type != DataType::kBool;
  if (number) {
    status = std::move(status).Detail(RowsWhere(fmt::format("{} = {}", SqlName(column_), value)));
  }
  // Either the class is misspelt, or the row has one that training did not see.
  const std::optional<std::string> nearest = NearestName(value, classes);
  return nearest.has_value() ? std::move(status).Hint(fmt::format("did you mean '{}'?", *nearest))
         : number            ? std::move(status).Hint(
                                   KeepRowsWhere(fmt::format("{} <> {}", SqlName(column_), value)))
                  : std::move(status).Hint(KeepRowsWithoutText(column_, value));
}

Status LabelReader::ApplyClasses(const RowBatch::Column& column, size_t rows, float* labels) const {
  for (size_t row = 0; row < rows; ++row) {
    if (column.null[row] != 0) {
      return NullLabel(false);
    }
    const uint32_t id = vocabulary_.FindCell(column, row);
    if (id == kNoId) {
      if (column.type == DataType::kDouble && std::isnan(column.doubles[row])) {
        return BadCell(column_, "NaN", "the label is not a number")
            .Hint(KeepRowsWhere(fmt::format("{} <> 'NaN'", SqlName(column_))));
      }
      return UnknownClass(column, row);
    }
    labels[row] = static_cast<float>(id);
  }
  return OkStatus();
}

Status LabelReader::ApplyNumbers(const RowBatch::Column& column, size_t rows,
                                 FeatureBatch* out) const {
  out->label_numbers.resize(rows);
  const LabelScale& own = scales_.front();
  for (size_t row = 0; row < rows; ++row) {
    if (column.null[row] != 0 || (IsText(column) && TrimBlanks(column.texts[row]).empty())) {
      return NullLabel(IsText(column));
    }
    const std::optional<double> value = NumberOf(column, row);
    if (!value.has_value()) {
      return BadCell(column_, column.texts[row], "expected a number as label, found text")
          .Hint("a classifier takes texts as labels");
    }
    if (!std::isfinite(*value)) {
      return BadCell(column_, CellText(column, row), "the label must be a finite number")
          .Hint(KeepRowsWhere(FiniteNumber(column_)));
    }
    out->labels[row] = static_cast<float>(own.Transformed(*value));
    out->label_numbers[row] = *value;
  }
  return OkStatus();
}

Status LabelReader::ApplyVectors(const RowBatch::Column& column, size_t rows,
                                 FeatureBatch* out) const {
  out->label_numbers.resize(rows * width_);
  float* labels = out->labels.data();
  double* numbers = out->label_numbers.data();
  for (size_t row = 0; row < rows; ++row, labels += width_, numbers += width_) {
    if (column.null[row] != 0) {
      return NullLabel(false);
    }
    const std::string number = IsText(column) ? std::string() : CellText(column, row);
    const std::string_view cell = IsText(column) ? column.texts[row] : std::string_view(number);
    CellCursor cursor(cell, layout_);
    std::string_view element;
    size_t count = 0;
    while (cursor.Next(&element)) {
      const std::optional<double> value = ParseNumber(element);
      if (!value.has_value() || !std::isfinite(*value)) {
        return BadCell(column_, cell,
                       fmt::format("expected numbers as label, found '{}'", element));
      }
      if (count < width_) {
        const LabelScale& own = scales_[count];
        labels[count] = static_cast<float>(own.Transformed(*value));
        numbers[count] = *value;
      }
      ++count;
    }
    if (count != width_) {
      return BadCell(column_, cell,
                     fmt::format("expected {} numbers as label, found {}", width_, count));
    }
  }
  return OkStatus();
}

Status LabelReader::Apply(const RowBatch::Column& column, size_t rows, FeatureBatch* out) const {
  out->labels.resize(rows * width_);
  out->label_numbers.clear();
  if (classes_) {
    return ApplyClasses(column, rows, out->labels.data());
  }
  return vector_ ? ApplyVectors(column, rows, out) : ApplyNumbers(column, rows, out);
}

Status ReadWeights(const std::string& name, const RowBatch::Column& column, size_t rows,
                   std::vector<float>* weights) {
  weights->resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    const std::optional<double> weight =
        column.null[row] != 0 ? std::nullopt : NumberOf(column, row);
    if (!weight.has_value() || !std::isfinite(*weight) || *weight < 0) {
      Status status = BadAmount(name, column, row, "a weight must be a finite number >= 0", ">= 0");
      return column.null[row] == 0
                 ? status
                 : std::move(status).Hint(fmt::format("COALESCE({}, {}) gives every row a weight",
                                                      SqlName(name), IsText(column) ? "'1'" : "1"));
    }
    if (*weight > std::numeric_limits<float>::max()) {
      return BadAmount(name, column, row, "a weight is at most 3.4e38", "<= 3.4e38");
    }
    if (*weight > 0 && *weight < std::numeric_limits<float>::min()) {
      return BadAmount(name, column, row, "a weight is 0 or at least 1.2e-38", ">= 1.2e-38");
    }
    (*weights)[row] = static_cast<float>(*weight);
  }
  return OkStatus();
}

Status ReadExposures(const std::string& name, double unit, const RowBatch::Column& column,
                     size_t rows, std::vector<float>* offsets) {
  offsets->resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    const std::optional<double> exposure =
        column.null[row] != 0 ? std::nullopt : NumberOf(column, row);
    if (!exposure.has_value() || !std::isfinite(*exposure) || *exposure <= 0) {
      return BadAmount(name, column, row, "an exposure must be a finite number above 0", "> 0");
    }
    (*offsets)[row] = static_cast<float>(std::log(*exposure / unit));
  }
  return OkStatus();
}

Status ReadGroups(const std::string& name, const RowBatch::Column& column, size_t rows,
                  std::vector<int64_t>* groups) {
  groups->resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    if (column.null[row] != 0) {
      return InvalidArgument(fmt::format("group column '{}' is NULL in a row", name))
          .Detail(RowsWhere(fmt::format("{} IS NULL", SqlName(name))))
          .Hint(KeepRowsWhere(fmt::format("{} IS NOT NULL", SqlName(name))));
    }
    switch (column.type) {
      case DataType::kText:
      case DataType::kBytes:
        (*groups)[row] = static_cast<int64_t>(HashTextInline(column.texts[row]));
        break;
      case DataType::kDouble:
        (*groups)[row] = std::bit_cast<int64_t>(column.doubles[row] + 0.0);
        break;
      case DataType::kBool:
      case DataType::kInt64:
      case DataType::kTimestamp:
        (*groups)[row] = column.int64s[row];
        break;
    }
  }
  return OkStatus();
}

}  // namespace sluice::models
