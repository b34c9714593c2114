#include <fmt/core.h>

#include <algorithm>

#include "base/letter_case.h"
#include "models/registry/registry.h"
#include "parser/printer.h"
#include "planner/attributes.h"
#include "planner/bind_result.h"
#include "planner/error_list.h"
#include "planner/plan_use_internal.h"
#include "planner/result_columns.h"
#include "planner/stored_model_internal.h"

namespace sluice::planner {
namespace {

constexpr std::string_view kShapExplainer = "TreeExplainer";
constexpr std::string_view kImportanceExplainer = "XGBoostExplainer";

// Of a blend, only members that are trees can be explained.
bool HasTrees(const models::ModelSpec& model) {
  const models::ModelType* type = models::FindModelType(model.type());
  return (type != nullptr && type->family == models::ModelFamily::kTrees) ||
         std::any_of(model.members().begin(), model.members().end(),
                     [](const models::BlendMember& member) { return HasTrees(member.model()); });
}

Result<std::string> ExplainerOf(const parser::ModelReportStatement& statement,
                                const models::ModelSpec& model) {
  if (!HasTrees(model)) {
    return Unimplemented(fmt::format("TO EXPLAIN of a {} is not built yet", model.type()))
        .At(statement.model.span)
        .Hint(
            "boosted trees are explained: TO TRAIN xgboost.gbtree; DESCRIBE MODEL tells what the "
            "features of any model are worth");
  }
  if (!statement.explainer) {
    return std::string(kImportanceExplainer);
  }
  const std::string name = LowerAscii(statement.explainer->text);
  if (name == LowerAscii(kImportanceExplainer)) {
    return std::string(kImportanceExplainer);
  }
  const std::string hint = fmt::format("{} tells how often and with what gain each feature splits",
                                       kImportanceExplainer);
  if (name == LowerAscii(kShapExplainer)) {
    return Unimplemented(fmt::format("{}, the explanation of each row by its SHAP values, is not "
                                     "built yet",
                                     kShapExplainer))
        .At(statement.explainer->span)
        .Hint(hint);
  }
  const auto nearest = NearestName(statement.explainer->text, {std::string(kImportanceExplainer)});
  return NotFound(fmt::format("unknown explainer '{}'", statement.explainer->text))
      .At(statement.explainer->span)
      .Hint(nearest ? fmt::format("did you mean {}?", *nearest) : hint);
}

}  // namespace

Result<plan::Plan> PlanReport(const parser::ModelReportStatement& statement,
                              catalog::DataSource& source, catalog::ModelStore& models) {
  ErrorList errors;
  AttributeSet attributes;
  errors.Add(AttributeSet::Bind(models::StatementAttributes("explain"), "explain", statement.span,
                                statement.attributes, &attributes));
  const Result<BoundSelect> select = BindSelect(statement.select, source);
  errors.Add(select.status());
  const Result<StoredModel> model =
      FindStoredModel(statement.model, models, catalog::ModelRight::kInspect);
  errors.Add(model.status());

  plan::Plan result;
  plan::ModelReportPlan* plan = result.mutable_report();
  plan->set_statement(parser::Print(parser::Statement(statement)));
  for (const std::string& attribute : attributes.WithoutEffect()) {
    plan->add_without_effect(attribute);
  }
  if (!statement.into) {
    errors.Add(RefuseResultAttributes(attributes, "INTO table"));
  }
  if (select.ok()) {
    plan->set_select(select->text);
    if (statement.into) {
      const Schema columns = ReportResult();
      errors.Add(BindResultTable(*statement.into, statement.into->parts.size(), attributes, *select,
                                 &columns, source, plan->mutable_table()));
    }
    if (const auto label = attributes.Text("label_col"); label && !select->columns.Find(*label)) {
      errors.Add(select->columns.Missing(*label, attributes.SpanOf("label_col")));
    }
  }
  if (model.ok()) {
    plan->set_model_schema(model->version.schema);
    plan->set_model_name(model->version.name);
    plan->set_model_version(model->version.version);
    plan->set_label(
        attributes.Text("label_col").value_or(model->plan.model().features().label().column()));
    const Result<std::string> explainer = ExplainerOf(statement, model->plan.model());
    errors.Add(explainer.status());
    if (explainer.ok()) {
      plan->set_explainer(*explainer);
    }
    if (select.ok()) {
      errors.Add(RequireInputs(model->plan.model().features(), *select, "explain"));
    }
  }
  if (!errors.empty()) {
    return errors.Take();
  }
  return result;
}

}  // namespace sluice::planner
