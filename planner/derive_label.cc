#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/bad_rows.h"
#include "base/letter_case.h"
#include "base/sql_name.h"
#include "catalog/data_source.h"
#include "models/model.pb.h"
#include "planner/derive_internal.h"
#include "planner/free_text.h"
#include "planner/rounded_number.h"
#include "planner/text_shape.h"
#include "planner/time_shape.h"

namespace sluice::planner {
namespace {

using catalog::ColumnStatistics;

// Whole numbers with at most this many distinct values are classes in the short form.
constexpr double kFewClasses = 20;
// A label with a larger share of distinct values is a number or an identifier.
constexpr double kMaxDistinctShare = 0.5;
constexpr double kMaxDistinctAlways = 20;

std::optional<double> AllNumbers(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const std::optional<double> number = models::ParseNumber(text);
    if (!number || !std::isfinite(*number)) {
      return std::nullopt;
    }
  }
  return 0;
}

std::vector<std::string> InClassOrder(std::vector<std::string> classes) {
  if (AllNumbers(classes)) {
    std::sort(classes.begin(), classes.end(), [](const std::string& a, const std::string& b) {
      const double x = *models::ParseNumber(a);
      const double y = *models::ParseNumber(b);
      return x != y ? x < y : a < b;
    });
  } else {
    std::sort(classes.begin(), classes.end());
  }
  return classes;
}

// The second of two classes is the one of interest: the one that means yes, else the rarer one if
// it is clearly rarer.
void PutPositiveClassLast(const ColumnStatistics& statistics, std::vector<std::string>* classes) {
  constexpr double kClearlyRarer = 0.4;
  if (classes->size() != 2 || AllNumbers(*classes)) {
    return;
  }
  const auto says_yes = [](const std::string& name) {
    const std::string word = LowerAscii(name);
    return word == "yes" || word == "y" || word == "true" || word == "t" || word == "positive" ||
           word == "pos";
  };
  const bool first = says_yes((*classes)[0]);
  if (first || says_yes((*classes)[1])) {
    if (first) {
      std::swap((*classes)[0], (*classes)[1]);
    }
    return;
  }
  for (const auto& [value, share] : statistics.common_values) {
    if (value == (*classes)[0] && share < kClearlyRarer) {
      std::swap((*classes)[0], (*classes)[1]);
      return;
    }
  }
}

std::vector<std::string> CommonValues(const ColumnStatistics& statistics) {
  std::vector<std::string> values;
  for (const auto& [value, fraction] : statistics.common_values) {
    values.push_back(value);
  }
  return values;
}

Status Constant(const LabelInput& input, const std::string& value) {
  return InvalidArgument(fmt::format("label '{}' is {} in every row: there is nothing to learn",
                                     input.column.name, value))
      .At(input.span)
      .Hint(input.use == LabelUse::kClasses && !IsNumeric(input.column.type)
                ? "the SELECT must hold rows of at least two classes"
                : "the SELECT must hold rows with different numbers");
}

Status CheckNotContinuous(const LabelInput& input, size_t classes) {
  const std::string name = input.column.name;
  if (classes > kMaxClasses) {
    constexpr double kNearlyEvery = 0.9;
    RETURN_IF_ERROR(CheckLabelSpelling(input));
    if (input.column.type == DataType::kText && !AllNumbers(input.sample) &&
        input.statistics.distinct >= kNearlyEvery * static_cast<double>(input.rows)) {
      return InvalidArgument(fmt::format("label '{}' is a different value in nearly every row, an "
                                         "identifier: there is nothing to learn of it",
                                         name))
          .At(input.span)
          .Hint("LABEL names the column that the others should predict");
    }
    return InvalidArgument(fmt::format("label '{}' has more than {} different values, too many "
                                       "classes for {}",
                                       name, kMaxClasses, input.model_type))
        .At(input.span)
        .Hint(IsNumeric(input.column.type) ? "numbers are learnt by DNNRegressor or XGBRegressor"
                                           : "group the values in the SELECT");
  }
  const auto count = static_cast<double>(classes);
  const bool fractions = input.column.type == DataType::kDouble && input.statistics.has_range &&
                         std::any_of(input.statistics.common_values.begin(),
                                     input.statistics.common_values.end(), [](const auto& value) {
                                       const std::optional<double> number =
                                           models::ParseNumber(value.first);
                                       return number && *number != std::floor(*number);
                                     });
  const bool nearly_all =
      count > kMaxDistinctShare * static_cast<double>(input.rows) && input.rows > 0;
  if (count > kMaxDistinctAlways && (fractions || nearly_all)) {
    RETURN_IF_ERROR(CheckLabelSpelling(input));
    if (input.column.type == DataType::kText && !AllNumbers(input.sample)) {
      return InvalidArgument(fmt::format("label '{}' has {} different values in {} rows: hardly "
                                         "any of them can be learnt",
                                         name, classes, input.rows))
          .At(input.span)
          .Hint("classes are few, and each in many rows: group them in the SELECT");
    }
    return InvalidArgument(
               fmt::format("label '{}' has {} different values in {} rows: a number, not a class",
                           name, classes, input.rows))
        .At(input.span)
        .Hint("numbers are learnt by DNNRegressor, LinearRegressor or XGBRegressor");
  }
  return OkStatus();
}

Status CheckNotRounded(const LabelInput& input, const std::vector<std::string>& classes) {
  const auto rounded = std::find_if(classes.begin(), classes.end(), [](const std::string& name) {
    return std::abs(models::ParseNumber(name).value_or(0)) >= kExactIntegers;
  });
  if (!MayBeRounded(input.column) || rounded == classes.end()) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("label '{}' is {}, of which 53 bits are read: {} and its "
                                     "neighbours would be one class",
                                     input.column.name, input.column.database_type, *rounded))
      .At(input.span)
      .Hint(AllDigitsOf(input.column.name));
}

Status DeriveClasses(const LabelInput& input, models::LabelPlan* plan) {
  std::vector<std::string> classes =
      input.classes_known ? input.classes : CommonValues(input.statistics);
  RETURN_IF_ERROR(CheckNotContinuous(input, classes.size()));
  RETURN_IF_ERROR(CheckNotRounded(input, classes));
  if (classes.size() == 1 && input.one_is_enough) {
    plan->set_kind(models::LabelPlan::CLASS);
    plan->add_classes(classes.front());
    return OkStatus();
  }
  if (classes.size() < 2) {
    return Constant(input, classes.empty() ? "NULL" : fmt::format("'{}'", classes[0]));
  }
  plan->set_kind(models::LabelPlan::CLASS);
  classes = InClassOrder(std::move(classes));
  PutPositiveClassLast(input.statistics, &classes);
  for (std::string& name : classes) {
    *plan->add_classes() = std::move(name);
  }
  return OkStatus();
}

void SetScale(double mean, double deviation, LabelUse use, models::LabelPlan* plan) {
  const bool scaled = use != LabelUse::kNumber && std::isfinite(mean) && std::isfinite(deviation);
  plan->set_mean(scaled ? mean : 0);
  // A sample's deviation may be 0.
  plan->set_scale(scaled && use != LabelUse::kTreeDistance && deviation > 0 ? deviation : 1);
}

Status DeriveTextNumber(const LabelInput& input, models::LabelPlan* plan) {
  RETURN_IF_ERROR(CheckLabelSpelling(input));
  const TextShape shape = InspectText(input.sample);
  if (shape.format.kind == models::ColumnFormatKind::kNumber) {
    plan->set_kind(models::LabelPlan::NUMBER);
    NumberMoments moments{shape.mean, shape.deviation};
    MendMoments(shape.min, shape.max, &moments.mean, &moments.deviation);
    SetScale(moments.mean, moments.deviation, input.use, plan);
    return OkStatus();
  }
  if (shape.format.kind == models::ColumnFormatKind::kDenseCsv) {
    plan->set_kind(models::LabelPlan::VECTOR);
    plan->set_width(static_cast<uint32_t>(shape.format.width));
    if (input.use == LabelUse::kScaledNumber) {
      for (const NumberMoments& own : MomentsOfVectors(input.sample, shape.format)) {
        const bool known = std::isfinite(own.mean) && std::isfinite(own.deviation);
        plan->add_means(known ? own.mean : 0);
        plan->add_scales(known && own.deviation > 0 ? own.deviation : 1);
      }
    }
    return OkStatus();
  }
  const std::string example = input.sample.empty() ? "" : fmt::format(" ('{}')", input.sample[0]);
  return InvalidArgument(fmt::format("label '{}' is text{}, and {} learns a number",
                                     input.column.name, example, input.model_type))
      .At(input.span)
      .Hint("text is learnt by a classifier: DNNClassifier, LinearClassifier, XGBClassifier");
}

}  // namespace

bool NeedsClassQuery(const ColumnStatistics& statistics) {
  const bool several = statistics.common_values.size() >= 2;
  return !(statistics.all_values && (statistics.exact || several));
}

Status CheckLearnable(size_t label, const Schema& schema,
                      const catalog::SelectStatistics& statistics, catalog::ColumnKey key,
                      Span span) {
  constexpr double kMinRows = 20;   // fewer say nothing about a column
  constexpr double kMinTimes = 20;  // fewer may be classes: quarters, deadlines
  constexpr double kMinNumberedRows = 50;
  const ColumnInfo& column = schema.columns[label];
  const double distinct = statistics.columns[label].distinct;
  const auto rows = static_cast<double>(statistics.rows);
  if (rows < kMinRows) {
    return OkStatus();
  }
  const auto wrong = [&](std::string_view what, std::string hint) {
    return InvalidArgument(
               fmt::format("label '{}' is {}: there is nothing to learn of it", column.name, what))
        .At(span)
        .Hint(std::move(hint));
  };
  if (key != catalog::ColumnKey::kNone && distinct >= rows) {
    return wrong(key == catalog::ColumnKey::kPrimary ? "the primary key" : "a unique key",
                 "LABEL names the column that the others should predict");
  }
  const catalog::ColumnStatistics& numbers = statistics.columns[label];
  if (column.type == DataType::kInt64 && numbers.exact && distinct >= rows && numbers.has_range &&
      rows >= kMinNumberedRows && NamesAnIdentifier(column.name)) {
    return wrong(numbers.max - numbers.min + 1 == rows
                     ? "a row number"
                     : "an identifier that every row has another of",
                 "LABEL names the column that the others should predict");
  }
  if (column.type != DataType::kText) {
    return OkStatus();
  }
  const TextShape shape = InspectText(TextsOf(statistics.sample, label));
  if (distinct >= kMinTimes && FindTimes(column, label, shape, statistics)) {
    return wrong("a time", "select a number made of it, such as the days until then");
  }
  if (distinct > rows / 2 && IsFreeText(shape, statistics.columns[label], rows)) {
    return wrong("free text", "classes are few, and each in many rows");
  }
  return OkStatus();
}

bool LooksLikeClasses(const ColumnInfo& column, const ColumnStatistics& statistics, int64_t rows) {
  if (column.type == DataType::kBool) {
    return true;
  }
  if (column.type == DataType::kText) {
    std::vector<std::string> values = CommonValues(statistics);
    const bool numbers = AllNumbers(values).has_value();
    return !numbers || statistics.distinct <= kFewClasses;
  }
  if (statistics.distinct <= 2) {
    return true;
  }
  return column.type == DataType::kInt64 && statistics.distinct <= kFewClasses &&
         statistics.distinct <= kMaxDistinctShare * static_cast<double>(rows);
}

Status DeriveLabel(const LabelInput& input, models::LabelPlan* plan) {
  const ColumnStatistics& statistics = input.statistics;
  plan->set_column(input.column.name);
  plan->set_type(static_cast<int32_t>(input.column.type));
  plan->set_scale(1);
  const bool exact = statistics.exact;
  if (input.rows > 0 && exact && statistics.null_fraction >= 1) {
    return InvalidArgument(fmt::format("label '{}' is NULL in every row", input.column.name))
        .At(input.span);
  }
  if (exact && statistics.null_fraction > 0) {
    return InvalidArgument(fmt::format("label '{}' is NULL in {:.0f} of {} rows", input.column.name,
                                       statistics.null_fraction * static_cast<double>(input.rows),
                                       input.rows))
        .At(input.span)
        .Hint(KeepRowsWhere(fmt::format("{} IS NOT NULL", SqlName(input.column.name))));
  }
  if (input.column.type == DataType::kBytes) {
    return InvalidArgument(fmt::format("label '{}' is {}, which is neither a class nor a number",
                                       input.column.name, input.column.database_type))
        .At(input.span);
  }
  if (input.use == LabelUse::kClasses) {
    return DeriveClasses(input, plan);
  }
  if (input.column.type == DataType::kText) {
    return DeriveTextNumber(input, plan);
  }
  if (input.column.type == DataType::kTimestamp) {
    return InvalidArgument(fmt::format("label '{}' is a timestamp, and {} learns a number",
                                       input.column.name, input.model_type))
        .At(input.span)
        .Hint("select a number made of it, such as extract(epoch FROM ...)");
  }
  if (exact && statistics.distinct <= 1) {
    return Constant(input, statistics.common_values.empty() ? FormatDouble(statistics.mean)
                                                            : statistics.common_values[0].first);
  }
  plan->set_kind(models::LabelPlan::NUMBER);
  NumberMoments moments{statistics.mean, statistics.standard_deviation};
  if (statistics.has_range) {
    MendMoments(statistics.min, statistics.max, &moments.mean, &moments.deviation);
  }
  SetScale(moments.mean, moments.deviation, input.use, plan);
  return OkStatus();
}

}  // namespace sluice::planner
