#include <fmt/core.h>

#include "catalog/data_source.h"
#include "parser/printer.h"
#include "planner/error_list.h"
#include "planner/stored_model_internal.h"

namespace sluice::planner {
namespace {

Status WithSpan(const Status& status, Span span) {
  Status placed;
  for (const Diagnostic& diagnostic : status.diagnostics()) {
    placed.Add(Status(diagnostic.code, diagnostic.message)
                   .SqlState(diagnostic.sqlstate)
                   .At(span)
                   .Detail(diagnostic.detail)
                   .Hint(diagnostic.hint));
  }
  return placed;
}

// Types between which a feature can read the one for the other.
bool Compatible(DataType learnt, const ColumnInfo& found) {
  if (learnt == found.type || (IsNumeric(learnt) && IsNumeric(found.type))) {
    return true;
  }
  // SQLite knows no type of an expression; its cells are read as what they should be.
  return found.database_type.empty();
}

}  // namespace

Result<StoredModel> FindStoredModel(const parser::ModelName& name, catalog::DataSource& source) {
  Result<catalog::ModelVersion> version =
      source.models().Find(name.schema, name.name, name.version);
  if (!version.ok()) {
    return WithSpan(version.status(), name.span);
  }
  StoredModel model;
  model.version = std::move(version).value();
  if (!model.plan.ParseFromString(model.version.plan)) {
    return Internal(fmt::format("the stored plan of model {} cannot be read", parser::Print(name)))
        .At(name.span)
        .Hint("train the model again");
  }
  return model;
}

Status RequireInputs(const models::FeaturePlan& features, const BoundSelect& select,
                     std::string_view statement) {
  ErrorList errors;
  for (const models::InputColumn& input : features.inputs()) {
    const std::optional<size_t> index = select.columns.Find(input.name());
    if (!index) {
      const std::optional<std::string> nearest = NearestName(input.name(), select.columns.names());
      errors.Add(ColumnNotFound(fmt::format("the {} statement doesn't contain column {}", statement,
                                            input.name()))
                     .At(select.span)
                     .Hint(nearest ? fmt::format("select it; is it '{}' there?", *nearest)
                                   : "the model was trained with it: select it"));
      if (errors.full()) {
        break;
      }
      continue;
    }
    const ColumnInfo& found = select.schema.columns[*index];
    const auto learnt = static_cast<DataType>(input.type());
    if (!Compatible(learnt, found)) {
      errors.Add(InvalidArgument(fmt::format("column '{}' is {} in the {} statement, and the model "
                                             "learnt it as {}",
                                             input.name(), found.database_type, statement,
                                             DataTypeName(learnt)))
                     .SqlState("42804")
                     .At(select.span)
                     .Hint(fmt::format("write CAST({} AS ...) in the SELECT", input.name())));
    }
  }
  return errors.Take();
}

models::Task TaskOf(const models::ModelSpec& model) {
  for (const models::Attribute& attribute : model.attributes()) {
    if (attribute.name() == "objective" && attribute.text().starts_with("rank:")) {
      return models::Task::kRanking;
    }
  }
  const models::LabelPlan& label = model.features().label();
  if (label.kind() != models::LabelPlan::CLASS) {
    return models::Task::kRegression;
  }
  return label.classes_size() <= 2 ? models::Task::kBinary : models::Task::kMulticlass;
}

}  // namespace sluice::planner
