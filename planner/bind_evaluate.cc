#include <fmt/core.h>

#include "parser/printer.h"
#include "planner/attributes.h"
#include "planner/bind_result.h"
#include "planner/error_list.h"
#include "planner/metric_list.h"
#include "planner/plan_use_internal.h"
#include "planner/result_columns.h"
#include "planner/stored_model_internal.h"

namespace sluice::planner {
namespace {

// The statement's label, else the model's own; it must be selected and have a type that the model
// accepts.
Status FindLabel(const parser::EvaluateStatement& statement, const BoundSelect& select,
                 const models::LabelPlan& learnt, std::string* label) {
  const std::string name = statement.label ? statement.label->text : learnt.column();
  const Span span = statement.label ? statement.label->span : statement.span;
  std::optional<size_t> index = select.columns.Find(name);
  if (!index && statement.label && statement.label->parts.size() > 1) {
    index = select.columns.Find(statement.label->parts.back());
  }
  if (!index) {
    Status missing = select.columns.Missing(name, span);
    if (!statement.label) {
      return std::move(missing).Hint(
          fmt::format("the model learnt '{}': select it, or name another column with LABEL", name));
    }
    return missing;
  }
  const ColumnInfo& column = select.schema.columns[*index];
  // Texts are read as numbers, as in training.
  if (learnt.kind() == models::LabelPlan::NUMBER && !IsNumeric(column.type) &&
      column.type != DataType::kText && !column.database_type.empty()) {
    return InvalidArgument(fmt::format("label '{}' is {}, and the model predicts a number",
                                       column.name, column.database_type))
        .SqlState("42804")
        .At(span);
  }
  *label = column.name;
  return OkStatus();
}

// What else of each row the model's metrics are made of.
Status RequireRoles(const models::FeaturePlan& features, const BoundSelect& select) {
  Status errors;
  const std::string& weight = features.weight_column();
  if (!weight.empty() && !select.columns.Find(weight)) {
    errors.Add(select.columns.Missing(weight, select.span)
                   .Hint(fmt::format("the model was trained with it as the weight: select it, or "
                                     "1 AS {} to count each row alike",
                                     QuoteIdentifier(weight))));
  }
  const std::string& group = features.group_column();
  if (!group.empty() && !select.columns.Find(group)) {
    errors.Add(select.columns.Missing(group, select.span)
                   .Hint("the model orders the rows of each such group: select it"));
  }
  return errors;
}

constexpr char kReport[] = "validation.report";

plan::EvaluatePlan::Report ReportOf(const AttributeSet& attributes) {
  const std::string report = attributes.Text(kReport).value_or("metrics");
  return report == "thresholds"  ? plan::EvaluatePlan::THRESHOLDS
         : report == "confusion" ? plan::EvaluatePlan::CONFUSION
         : report == "drift"     ? plan::EvaluatePlan::DRIFT
                                 : plan::EvaluatePlan::METRICS;
}

// A confusion matrix needs classes; a table of thresholds needs two of them.
Status CheckReport(const AttributeSet& attributes, const models::LabelPlan& label,
                   plan::EvaluatePlan::Report kind) {
  if (kind == plan::EvaluatePlan::METRICS) {
    return OkStatus();
  }
  const std::string report = *attributes.Text(kReport);
  const bool thresholds = kind == plan::EvaluatePlan::THRESHOLDS;
  const Span span = attributes.SpanOf(kReport);
  if (kind != plan::EvaluatePlan::DRIFT && label.kind() != models::LabelPlan::CLASS) {
    return InvalidArgument(fmt::format("{}='{}' is of classes, and label '{}' is a number", kReport,
                                       report, label.column()))
        .At(span)
        .Hint("leave it out");
  }
  if (thresholds && label.classes_size() != 2) {
    return InvalidArgument(fmt::format("{}='thresholds' is of two classes, and label '{}' has {}",
                                       kReport, label.column(), label.classes_size()))
        .At(span)
        .Hint(fmt::format("{}='confusion' tells which classes are taken for which", kReport));
  }
  if (attributes.Given("validation.metrics")) {
    return InvalidArgument(
               fmt::format("validation.metrics are not answered with {}='{}'", kReport, report))
        .At(attributes.SpanOf("validation.metrics"))
        .Hint("leave one of them out");
  }
  return OkStatus();
}

}  // namespace

Result<plan::Plan> PlanEvaluate(const parser::EvaluateStatement& statement,
                                catalog::DataSource& source, catalog::ModelStore& models,
                                const Options& options) {
  ErrorList errors;
  AttributeSet attributes;
  errors.Add(AttributeSet::Bind(models::StatementAttributes("evaluate"), "evaluate", statement.span,
                                statement.attributes, &attributes));
  const Result<BoundSelect> select = BindSelect(statement.select, source);
  errors.Add(select.status());
  plan::Plan result;
  plan::EvaluatePlan* plan = result.mutable_evaluate();
  plan->set_report(ReportOf(attributes));
  const bool drift = plan->report() == plan::EvaluatePlan::DRIFT;
  // What the training's numbers were is not for everybody who may use the model.
  Result<StoredModel> model = FindStoredModel(
      statement.model, models, drift ? catalog::ModelRight::kInspect : catalog::ModelRight::kUsage);
  errors.Add(model.status());
  plan->set_statement(parser::Print(parser::Statement(statement)));
  if (select.ok() && model.ok()) {
    const models::FeaturePlan& features = model->plan.model().features();
    errors.Add(RequireInputs(features, *select, "evaluate"));
    if (!drift) {
      errors.Add(RequireRoles(features, *select));
      errors.Add(FindLabel(statement, *select, features.label(), plan->mutable_label()));
    }
  }
  if (model.ok()) {
    plan->set_model_schema(model->version.schema);
    plan->set_model_name(model->version.name);
    plan->set_model_version(model->version.version);
    errors.Add(CheckReport(attributes, model->plan.model().features().label(), plan->report()));
    if (const auto list = attributes.Text("validation.metrics")) {
      const auto metrics =
          ReadMetrics(*list, model->plan.model(), attributes.SpanOf("validation.metrics"));
      errors.Add(metrics.status());
      if (metrics.ok()) {
        plan->mutable_metrics()->Add(metrics->begin(), metrics->end());
      }
    }
  }
  if (!statement.into) {
    errors.Add(RefuseResultAttributes(attributes, "INTO table"));
  } else if (select.ok()) {
    Schema columns;
    if (model.ok()) {
      columns = EvaluateResult(*plan, model->plan.model());
    }
    errors.Add(BindResultTable(*statement.into, statement.into->parts.size(), attributes, *select,
                               model.ok() ? &columns : nullptr, source, plan->mutable_table()));
  }
  if (select.ok()) {
    plan->set_select(select->text);
    errors.Add(EstimateRows(select->text, source, plan));
  }
  if (!errors.empty()) {
    return errors.Take();
  }
  if (options.on_model) {
    options.on_model(std::move(model->version));
  }
  return result;
}

}  // namespace sluice::planner
