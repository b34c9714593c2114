#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/letter_case.h"
#include "catalog/column_description.h"
#include "catalog/data_source.h"
#include "models/features/cell_format.h"
#include "models/features/label_quantiles.h"
#include "parser/printer.h"
#include "planner/attributes.h"
#include "planner/bind_result.h"
#include "planner/choose.h"
#include "planner/decision.h"
#include "planner/error_list.h"
#include "planner/metric_list.h"
#include "planner/plan_use_internal.h"
#include "planner/result_columns.h"
#include "planner/stored_model_internal.h"

namespace sluice::planner {
namespace {

// The name of the prediction's column.
std::string ResultColumn(const parser::PredictStatement& statement, const models::LabelPlan& label,
                         const catalog::DataSource& source) {
  return statement.target
             ? ReadNamePart(*statement.target, statement.target->parts.size() - 1, source)
             : label.column();
}

// Each class adds a column, and a table has room for some 1,600.
constexpr int kMaxClassColumns = 200;
constexpr char kActual[] = "actual";
constexpr char kOfClass[] = "probability_";

Status FillExtraOutputs(const AttributeSet& attributes, const models::ModelSpec& model,
                        plan::PredictPlan* plan) {
  const std::optional<std::string> list = attributes.Text("predict.extra_outputs");
  if (!list) {
    return OkStatus();
  }
  const Span span = attributes.SpanOf("predict.extra_outputs");
  const models::LabelPlan& label = model.features().label();
  std::vector<std::string> known;
  if (label.kind() == models::LabelPlan::CLASS) {
    known = {"probability", "probabilities"};
    for (const std::string& name : label.classes()) {
      known.push_back(kOfClass + name);
    }
  }
  ErrorList errors;
  std::vector<std::string> outputs;
  for (const std::string& output : SplitList(*list)) {
    if (std::find(known.begin(), known.end(), output) == known.end()) {
      const auto nearest = NearestName(output, known);
      errors.Add(InvalidArgument(
                     fmt::format("predict.extra_outputs: this model has no output '{}'", output))
                     .At(span)
                     .Hint(nearest         ? fmt::format("did you mean '{}'?", *nearest)
                           : known.empty() ? std::string("only classifiers have any")
                                           : "it has probability, probabilities, and one for each "
                                             "class: " +
                                                 known[2]));
      continue;
    }
    if (output == "probabilities" && label.classes_size() > kMaxClassColumns) {
      errors.Add(InvalidArgument(fmt::format("predict.extra_outputs: probabilities of {} classes "
                                             "would be as many columns",
                                             label.classes_size()))
                     .At(span)
                     .Hint(fmt::format("name those that are wanted: {}", known[2])));
      continue;
    }
    const bool each = output == "probabilities";
    outputs.insert(outputs.end(),
                   each ? known.begin() + 2 : std::find(known.begin(), known.end(), output),
                   each ? known.end() : std::find(known.begin(), known.end(), output) + 1);
  }
  for (const std::string& output : outputs) {
    const bool taken =
        std::any_of(plan->pass_through().begin(), plan->pass_through().end(),
                    [&](const auto& column) { return SameIgnoringCase(column.name(), output); }) ||
        SameIgnoringCase(plan->column(), output) ||
        std::any_of(plan->extra_outputs().begin(), plan->extra_outputs().end(),
                    [&](const std::string& other) { return SameIgnoringCase(other, output); });
    if (taken) {
      errors.Add(
          InvalidArgument(fmt::format("the result would have two columns named '{}'", output))
              .At(span)
              .Hint("give the selected one another name with AS"));
    }
    plan->add_extra_outputs(output);
  }
  const bool probability =
      std::find(outputs.begin(), outputs.end(), "probability") != outputs.end();
  if (probability && label.classes_size() == 2) {
    plan->add_told(
        fmt::format("probability is that of {} = '{}'", label.column(), label.classes(1)));
  }
  return errors.Take();
}

Status FillThreshold(const AttributeSet& attributes, const models::LabelPlan& label,
                     plan::PredictPlan* plan) {
  ASSIGN_OR_RETURN(const std::string rule, ReadThreshold(attributes, label));
  if (rule.empty()) {
    return OkStatus();
  }
  const std::optional<double> number = models::ParseNumber(rule);
  if (!number) {
    return InvalidArgument(fmt::format("predict.threshold='{}' is chosen by a training", rule))
        .At(attributes.SpanOf("predict.threshold"))
        .Hint("here it is a number: predict.threshold=0.3");
  }
  plan->set_threshold(*number);
  return OkStatus();
}

// Reads predict.keep: which selected columns the result has; all of them if it is not given.
Status ReadKept(const AttributeSet& attributes, const BoundSelect& select,
                std::vector<bool>* kept) {
  const auto names = attributes.Texts("predict.keep");
  kept->assign(select.schema.columns.size(), !names.has_value());
  ErrorList errors;
  for (const std::string& name : names.value_or(std::vector<std::string>())) {
    const std::optional<size_t> index = select.columns.Find(name);
    if (index) {
      (*kept)[*index] = true;
    } else {
      errors.Add(select.columns.Missing(name, attributes.SpanOf("predict.keep")));
    }
  }
  return errors.Take();
}

// Every selected column that is kept, except the training label and the one that the prediction
// replaces: keys first, the label as `actual`. Names that differ only in case could be two columns
// of the result, but a SELECT could not train on it or predict with it, so they are refused here,
// too.
Status FillPassThrough(const BoundSelect& select, const std::vector<bool>& kept,
                       const models::LabelPlan& label, Span target, catalog::DataSource& source,
                       plan::PredictPlan* plan) {
  ASSIGN_OR_RETURN(const std::vector<catalog::ColumnKey> keys,
                   source.DescribeKeys(select.text, select.schema));
  const std::vector<ColumnInfo> predicted = PredictedColumns(*plan);
  std::vector<const ColumnInfo*> columns;
  const ColumnInfo* actual = nullptr;
  for (const bool key : {true, false}) {
    for (size_t i = 0; i < select.schema.columns.size(); ++i) {
      if (kept[i] && (keys[i] != catalog::ColumnKey::kNone) == key) {
        columns.push_back(&select.schema.columns[i]);
      }
    }
  }
  for (const ColumnInfo* column : columns) {
    if (SameIgnoringCase(column->name, label.column())) {
      actual = column;
      continue;
    }
    const auto replaced =
        std::find_if(predicted.begin(), predicted.end(), [&](const ColumnInfo& prediction) {
          return SameIgnoringCase(column->name, prediction.name);
        });
    if (replaced == predicted.end()) {
      catalog::PutColumn(*column, plan->add_pass_through());
    } else if (column->name != replaced->name && source.dialect() != "sqlite") {
      return InvalidArgument(
                 fmt::format("the predicted column \"{}\" and the selected \"{}\" differ "
                             "in case only",
                             replaced->name, column->name))
          .SqlState("42701")
          .At(target)
          .Hint(fmt::format("write \"{}\" to put the prediction in its place, or another name",
                            column->name));
    }
  }
  const bool taken =
      SameIgnoringCase(plan->column(), kActual) || select.columns.Find(kActual).has_value();
  if (actual != nullptr && !taken) {
    plan->set_actual(actual->name);
    ColumnInfo renamed = *actual;
    renamed.name = kActual;
    catalog::PutColumn(renamed, plan->add_pass_through());
    plan->add_told(fmt::format("the true {} is kept as actual", actual->name));
  }
  return OkStatus();
}

// Whether a column of this type can store every class.
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

// Classes keep the label's type (that of the selected label column, if there is one that can store
// them); numbers are double.
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
  plan->set_prediction_type(static_cast<int32_t>(PredictionType(*select, label)));
  const std::vector<double> quantiles = models::LabelQuantiles(model->plan.model());
  if (quantiles.size() > 1) {
    plan->mutable_quantiles()->Add(quantiles.begin(), quantiles.end());
  }
  std::vector<bool> kept;
  errors.Add(ReadKept(attributes, *select, &kept));
  errors.Add(FillPassThrough(*select, kept, label,
                             statement.target ? statement.target->span : statement.span, source,
                             plan));
  errors.Add(FillThreshold(attributes, label, plan));
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
