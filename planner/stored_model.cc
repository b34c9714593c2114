#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/sql_name.h"
#include "catalog/data_source.h"
#include "models/features/cell_format.h"
#include "parser/printer.h"
#include "planner/error_list.h"
#include "planner/rounded_number.h"
#include "planner/stored_model_internal.h"
#include "planner/stored_plan.h"

namespace sluice::planner {
namespace {

bool KnowsNumbers(const models::Categorizer& categorizer) {
  const auto& known = categorizer.vocabulary();
  return categorizer.kind() != models::Categorizer::VOCABULARY ||
         std::any_of(known.begin(), known.end(), [](const std::string& text) {
           return models::ParseCategoryNumber(text) || models::ParseFlag(text);
         });
}

// Such a feature reads a number as it read the number's text in training.
bool ReadsNumberForText(const models::Feature& feature) {
  switch (feature.kind()) {
    case models::Feature::TENSOR:
      return feature.width() == 1;
    case models::Feature::CATEGORY:
      if (feature.format().kind() == models::TensorFormat::TEXT) {
        return false;  // words
      }
      return feature.categorizer().kind() != models::Categorizer::TIME_PART &&
             KnowsNumbers(feature.categorizer());
    default:
      return feature.time_part().empty();
  }
}

bool ReadsTimeForText(const models::Feature& feature) {
  return !feature.time_part().empty() ||
         feature.categorizer().kind() == models::Categorizer::TIME_PART;
}

bool AllOf(const models::FeaturePlan& features, uint32_t input,
           bool (*reads)(const models::Feature&)) {
  return std::all_of(
      features.features().begin(), features.features().end(), [&](const models::Feature& feature) {
        const auto& own = feature.inputs();
        return std::find(own.begin(), own.end(), input) == own.end() || reads(feature);
      });
}

// Whether the features can read cells of the found type as they read their texts, or numbers, in
// training. A text that is not a number is an error when it is read.
bool Compatible(const models::FeaturePlan& features, uint32_t input, const ColumnInfo& found) {
  const auto learnt = static_cast<DataType>(features.inputs(static_cast<int>(input)).type());
  if (learnt == found.type || (IsNumeric(learnt) && IsNumeric(found.type)) ||
      found.database_type.empty()) {
    // SQLite does not know an expression's type; its cells are read as the expected type.
    return true;
  }
  if (found.type == DataType::kText) {
    return IsNumeric(learnt) || learnt == DataType::kTimestamp;
  }
  if (learnt != DataType::kText) {
    return false;
  }
  const std::string& times = features.inputs(static_cast<int>(input)).time_format();
  if (IsNumeric(found.type) && (times == "seconds" || times == "millis" || times == "compact")) {
    return true;
  }
  return IsNumeric(found.type)
             ? AllOf(features, input, ReadsNumberForText)
             : found.type == DataType::kTimestamp && AllOf(features, input, ReadsTimeForText);
}

bool IsLong(const std::string& text) {
  const std::optional<int64_t> integer = models::ParseInteger(text);
  return integer && std::abs(static_cast<double>(*integer)) >= kExactIntegers;
}

// Whether the features tell integers apart that are the same double.
bool KnowsLongIntegers(const models::FeaturePlan& features, uint32_t input) {
  return std::any_of(
      features.features().begin(), features.features().end(), [&](const models::Feature& feature) {
        const auto& own = feature.inputs();
        const auto& known = feature.categorizer().vocabulary();
        return std::find(own.begin(), own.end(), input) != own.end() &&
               ((feature.centred() && std::abs(feature.offset()) >= kExactIntegers) ||
                std::any_of(known.begin(), known.end(), IsLong));
      });
}

}  // namespace

Result<StoredModel> FindStoredModel(const parser::ModelName& name, catalog::ModelStore& models,
                                    catalog::ModelRight right) {
  Result<catalog::ModelVersion> version =
      models.FindFor(right, name.schema, name.name, name.version);
  if (!version.ok()) {
    return version.status().MovedTo(name.span);
  }
  StoredModel model;
  model.version = std::move(version).value();
  Result<plan::TrainPlan> plan = ReadStoredPlan(model.version.plan);
  if (!plan.ok()) {
    return plan.status().MovedTo(name.span);
  }
  model.plan = std::move(plan).value();
  return model;
}

Status RequireInputs(const models::FeaturePlan& features, const BoundSelect& select,
                     std::string_view statement) {
  ErrorList errors;
  std::vector<std::string> missing;
  for (int i = 0; i < features.inputs_size(); ++i) {
    const models::InputColumn& input = features.inputs(i);
    const std::optional<size_t> index = select.columns.Find(input.name());
    if (!index) {
      missing.push_back(input.name());
      continue;
    }
    const ColumnInfo& found = select.schema.columns[*index];
    const auto learnt = static_cast<DataType>(input.type());
    if (learnt != DataType::kDouble && MayBeRounded(found) &&
        KnowsLongIntegers(features, static_cast<uint32_t>(i))) {
      errors.Add(InvalidArgument(fmt::format("column '{}' is {} in the {} statement, which is read "
                                             "with 53 bits, and the model knows longer integers",
                                             input.name(), found.database_type, statement))
                     .SqlState("42804")
                     .At(select.span)
                     .Hint(AllDigitsOf(input.name())));
      continue;
    }
    if (!Compatible(features, static_cast<uint32_t>(i), found)) {
      errors.Add(
          InvalidArgument(fmt::format("column '{}' is {} in the {} statement, and the model "
                                      "learnt it as {}",
                                      input.name(), found.database_type, statement,
                                      DataTypeName(learnt)))
              .SqlState("42804")
              .At(select.span)
              .Hint(fmt::format("write CAST({} AS ...) in the SELECT", SqlName(input.name()))));
    }
  }
  const std::string& exposure = features.exposure_column();
  if (!exposure.empty() && !select.columns.Find(exposure)) {
    errors.Add(ColumnNotFound(fmt::format("the {} statement doesn't contain {}, the exposure",
                                          statement, ListedColumns({exposure})))
                   .At(select.span)
                   .Hint(fmt::format("the model predicts what is counted over it: select it, or "
                                     "1 AS {} for a rate",
                                     exposure)));
  }
  if (missing.empty()) {
    return errors.Take();
  }
  const std::string_view them = missing.size() == 1 ? "it" : "them";
  const std::string nearest = select.columns.Nearest(missing);
  Status status =
      ColumnNotFound(
          fmt::format("the {} statement doesn't contain {}", statement, ListedColumns(missing)))
          .At(select.span)
          .Hint(nearest.empty()
                    ? fmt::format("the model was trained with {}: select {}", them, them)
                    : fmt::format("select {}; {}", them, nearest));
  status.Add(errors.Take());
  return status;
}

}  // namespace sluice::planner
