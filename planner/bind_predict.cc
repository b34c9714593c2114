#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "catalog/column_description.h"
#include "catalog/data_source.h"
#include "models/features/cell_format.h"
#include "parser/printer.h"
#include "planner/attributes.h"
#include "planner/bind_result.h"
#include "planner/choose.h"
#include "planner/error_list.h"
#include "planner/metric_list.h"
#include "planner/plan_use_internal.h"
#include "planner/result_columns.h"
#include "planner/stored_model_internal.h"

namespace sluice::planner {
namespace {

// What the prediction is called.
std::string ResultColumn(const parser::PredictStatement& statement, const models::LabelPlan& label,
                         const catalog::DataSource& source) {
  return statement.target
             ? ReadNamePart(*statement.target, statement.target->parts.size() - 1, source)
             : label.column();
}

bool SameName(std::string_view a, std::string_view b) {
  Schema one;
  one.columns.push_back({std::string(a), DataType::kText, ""});
  return one.Find(b).has_value();
}

Status FillExtraOutputs(const AttributeSet& attributes, const models::ModelSpec& model,
                        plan::PredictPlan* plan) {
  const std::optional<std::string> list = attributes.Text("predict.extra_outputs");
  if (!list) {
    return OkStatus();
  }
  const Span span = attributes.SpanOf("predict.extra_outputs");
  std::vector<std::string> known;
  if (model.features().label().kind() == models::LabelPlan::CLASS) {
    known = {"probability", "probabilities"};
  }
  ErrorList errors;
  for (const std::string& output : SplitList(*list)) {
    if (std::find(known.begin(), known.end(), output) == known.end()) {
      const auto nearest = NearestName(output, known);
      errors.Add(InvalidArgument(
                     fmt::format("predict.extra_outputs: this model has no output '{}'", output))
                     .At(span)
                     .Hint(nearest         ? fmt::format("did you mean '{}'?", *nearest)
                           : known.empty() ? std::string("only classifiers have any")
                                           : fmt::format("it has {}", fmt::join(known, ", "))));
      continue;
    }
    for (const catalog::ColumnDescription& column : plan->pass_through()) {
      if (SameName(column.name(), output)) {
        errors.Add(
            InvalidArgument(fmt::format("the result would have two columns named '{}'", output))
                .At(span)
                .Hint("give the selected one another name with AS"));
      }
    }
    plan->add_extra_outputs(output);
  }
  return errors.Take();
}

// Every selected column but the training label and the one that the prediction replaces. Where
// names that differ in case are two columns, the result would have both, and nobody could train
// from it or predict with it: such names are refused, as they are in a SELECT.
Status FillPassThrough(const BoundSelect& select, const models::LabelPlan& label, Span target,
                       const catalog::DataSource& source, plan::PredictPlan* plan) {
  for (const ColumnInfo& column : select.schema.columns) {
    if (SameName(column.name, label.column())) {
      continue;
    }
    if (!SameName(column.name, plan->column())) {
      catalog::PutColumn(column, plan->add_pass_through());
    } else if (column.name != plan->column() && source.dialect() != "sqlite") {
      return InvalidArgument(
                 fmt::format("the predicted column \"{}\" and the selected \"{}\" differ "
                             "in case only",
                             plan->column(), column.name))
          .SqlState("42701")
          .At(target)
          .Hint(fmt::format("write \"{}\" to put the prediction in its place, or another name",
                            column.name));
    }
  }
  return OkStatus();
}

// Whether a column of this type can take every class.
bool Holds(DataType type, const models::LabelPlan& label) {
  return std::all_of(
      label.classes().begin(), label.classes().end(), [type](const std::string& name) {
        const std::optional<double> number = models::ParseCategoryNumber(name);
        const bool flag = name == "t" || name == "f";
        switch (type) {
          case DataType::kBool:
            return flag || name == "0" || name == "1";
          case DataType::kInt64:
            return flag || (number.has_value() && models::ParseInteger(name).has_value());
          case DataType::kDouble:
            return number.has_value();
          case DataType::kText:
            return true;
          case DataType::kTimestamp:
          case DataType::kBytes:
            break;
        }
        return false;
      });
}

// Classes keep the label's type (the selected one's, if the label is selected and of a type that
// takes them); numbers are double.
DataType PredictionType(const BoundSelect& select, const models::LabelPlan& label) {
  if (label.kind() == models::LabelPlan::VECTOR) {
    return DataType::kText;
  }
  if (label.kind() != models::LabelPlan::CLASS) {
    return DataType::kDouble;
  }
  const auto selected = select.columns.Find(label.column());
  const auto learnt = static_cast<DataType>(label.type());
  const DataType found = selected ? select.schema.columns[*selected].type : learnt;
  return found == learnt || Holds(found, label) ? found : learnt;
}

}  // namespace

Result<plan::Plan> PlanPredict(const parser::PredictStatement& statement,
                               catalog::DataSource& source, catalog::ModelStore& models) {
  ErrorList errors;
  AttributeSet attributes;
  errors.Add(AttributeSet::Bind(models::StatementAttributes("predict"), "predict", statement.span,
                                statement.attributes, &attributes));
  Result<BoundSelect> select = BindSelect(statement.select, source);
  errors.Add(select.status());
  const Result<StoredModel> model = FindStoredModel(statement.model, models);
  errors.Add(model.status());
  if (select.ok() && model.ok()) {
    errors.Add(RequireInputs(model->plan.model().features(), *select, "predict"));
  }
  if (!model.ok() || !select.ok()) {
    return errors.Take();
  }
  const bool into_table = statement.target && statement.target->parts.size() > 1;
  if (into_table) {
    RETURN_IF_ERROR(source.DescribeCopies(select->text, &select->schema));
  }

  plan::Plan result;
  plan::PredictPlan* plan = result.mutable_predict();
  const models::LabelPlan& label = model->plan.model().features().label();
  plan->set_statement(parser::Print(parser::Statement(statement)));
  plan->set_select(select->text);
  plan->set_model_schema(model->version.schema);
  plan->set_model_name(model->version.name);
  plan->set_model_version(model->version.version);
  plan->set_column(ResultColumn(statement, label, source));
  errors.Add(FillPassThrough(
      *select, label, statement.target ? statement.target->span : statement.span, source, plan));
  plan->set_prediction_type(static_cast<int32_t>(PredictionType(*select, label)));
  errors.Add(FillExtraOutputs(attributes, model->plan.model(), plan));
  if (into_table) {
    const Schema columns = PredictResult(*plan);
    errors.Add(BindResultTable(*statement.target, statement.target->parts.size() - 1, attributes,
                               *select, &columns, source, plan->mutable_table()));
  } else {
    errors.Add(RefuseResultAttributes(attributes, "TO PREDICT table.column"));
  }
  for (const std::string& attribute : attributes.WithoutEffect()) {
    plan->add_without_effect(attribute);
  }
  errors.Add(EstimateRows(select->text, source, plan));
  if (!errors.empty()) {
    return errors.Take();
  }
  return result;
}

}  // namespace sluice::planner
