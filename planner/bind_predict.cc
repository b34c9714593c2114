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
#include "planner/result_names.h"
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

// A single name is that of the prediction, which need not be repeated; a table's name would be
// meant by another one.
Status CheckStreamed(const parser::PredictStatement& statement, const std::string& column,
                     const models::LabelPlan& label) {
  if (!statement.target || statement.target->parts.size() > 1 || label.column().empty() ||
      SameIgnoringCase(column, label.column())) {
    return OkStatus();
  }
  return SyntaxError(fmt::format("TO PREDICT {} names neither a table's column nor '{}', which "
                                 "the model predicts",
                                 statement.target->text, label.column()))
      .At(statement.target->span)
      .Hint(fmt::format("TO PREDICT {0}.{1} writes the table {0}; TO PREDICT {1} answers with the "
                        "rows",
                        statement.target->text, label.column()));
}

// Classes that differ in letter case only, or whose names are longer than a column's can be, have
// columns of names that the user may not expect.
void TellNames(const models::LabelPlan& label, plan::PredictPlan* plan) {
  constexpr size_t kMostTold = 5;
  std::vector<std::string> told;
  size_t more = 0;
  for (const plan::PredictPlan::ExtraOutput& output : plan->extra_outputs()) {
    const std::string name = output.has_class_index() ? label.classes(output.class_index()) : "";
    if (!output.has_class_index() || output.column() == kOfClass + name) {
      continue;
    }
    if (told.size() < kMostTold) {
      told.push_back(fmt::format("{} is that of {} = '{}'", output.column(), label.column(), name));
    } else {
      ++more;
    }
  }
  if (!told.empty()) {
    plan->add_told(fmt::format("columns of probabilities have names of their own: {}{}",
                               fmt::join(told, ", "),
                               more > 0 ? fmt::format(", and {} more", more) : ""));
  }
}

Status FillExtraOutputs(const AttributeSet& attributes, const models::ModelSpec& model,
                        ResultNames* names, plan::PredictPlan* plan) {
  const std::optional<std::string> list = attributes.Text("predict.extra_outputs");
  if (!list) {
    return OkStatus();
  }
  const Span span = attributes.SpanOf("predict.extra_outputs");
  const models::LabelPlan& label = model.features().label();
  constexpr size_t kProbability = 0;
  constexpr size_t kProbabilities = 1;
  constexpr size_t kFirstClass = 2;
  std::vector<std::string> known;
  if (label.kind() == models::LabelPlan::CLASS) {
    known = {"probability", "probabilities"};
    for (const std::string& name : label.classes()) {
      known.push_back(kOfClass + name);
    }
  }
  ErrorList errors;
  std::vector<size_t> outputs;  // indices of `known`
  for (const std::string& output : SplitList(*list)) {
    const auto found = std::find(known.begin(), known.end(), output);
    if (found == known.end()) {
      const auto nearest = NearestName(output, known);
      errors.Add(InvalidArgument(
                     fmt::format("predict.extra_outputs: this model has no output '{}'", output))
                     .At(span)
                     .Hint(nearest         ? fmt::format("did you mean '{}'?", *nearest)
                           : known.empty() ? std::string("only classifiers have any")
                                           : "it has probability, probabilities, and one for each "
                                             "class: " +
                                                 known[kFirstClass]));
    } else if (found != known.begin() + kProbabilities) {
      outputs.push_back(static_cast<size_t>(found - known.begin()));
    } else if (label.classes_size() > kMaxClassColumns) {
      errors.Add(InvalidArgument(fmt::format("predict.extra_outputs: probabilities of {} classes "
                                             "would be as many columns",
                                             label.classes_size()))
                     .At(span)
                     .Hint(fmt::format("name those that are wanted: {}", known[kFirstClass])));
    } else {
      for (size_t i = kFirstClass; i < known.size(); ++i) {
        outputs.push_back(i);
      }
    }
  }
  const ResultNames others = *names;
  std::vector<bool> listed(known.size());
  for (const size_t output : outputs) {
    const std::string& name = known[output];
    if (listed[output]) {
      errors.Add(InvalidArgument(fmt::format("predict.extra_outputs: '{}' is listed twice", name))
                     .At(span)
                     .Hint("list each output once; probabilities are those of all classes"));
      continue;
    }
    if (others.Has(name)) {
      errors.Add(
          InvalidArgument(fmt::format("the result would have two columns named '{}'", name))
              .At(span)
              .Hint("give the selected one another name with AS, or the prediction behind TO "
                    "PREDICT"));
    }
    listed[output] = true;
    plan::PredictPlan::ExtraOutput* column = plan->add_extra_outputs();
    column->set_column(names->AddLike(name));
    if (output >= kFirstClass) {
      column->set_class_index(static_cast<int32_t>(output - kFirstClass));
    }
  }
  if (!listed.empty() && listed[kProbability] && label.classes_size() == 2) {
    plan->add_told(
        fmt::format("probability is that of {} = '{}'", label.column(), label.classes(1)));
  }
  TellNames(label, plan);
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

// A model of several quantiles predicts a column for each.
void FillQuantiles(const models::ModelSpec& model, ResultNames* names, plan::PredictPlan* plan) {
  const std::vector<double> quantiles = models::LabelQuantiles(model);
  for (size_t i = 0; i < quantiles.size() && quantiles.size() > 1; ++i) {
    plan->add_quantile_columns(
        names->AddLike(plan->column() + "_" + models::QuantileName(quantiles[i])));
  }
}

// Every selected column that is kept: keys first, the training label at the end, as `actual`. None
// may be called like the prediction, in any letter case: names that differ only in case could be
// two columns of the result, but a SELECT could not train on it or predict with it.
Status FillPassThrough(const BoundSelect& select, const std::vector<bool>& kept,
                       const models::LabelPlan& label, const AttributeSet& attributes, Span target,
                       catalog::DataSource& source, ResultNames* names, plan::PredictPlan* plan) {
  ASSIGN_OR_RETURN(const std::vector<catalog::ColumnKey> keys,
                   source.DescribeKeys(select.text, select.schema));
  const std::optional<size_t> truth = select.columns.Find(label.column());
  const ResultNames predicted = *names;
  Status errors;
  for (const bool key : {true, false}) {
    for (size_t i = 0; i < select.schema.columns.size(); ++i) {
      const ColumnInfo& column = select.schema.columns[i];
      if (!kept[i] || (keys[i] != catalog::ColumnKey::kNone) != key || i == truth) {
        continue;
      }
      if (predicted.Has(column.name)) {
        const Span listed = attributes.SpanOf("predict.keep");
        errors.Add(InvalidArgument(fmt::format("the selected column '{}' is called like the "
                                               "prediction, and the result would have both",
                                               column.name))
                       .SqlState("42701")
                       .At(listed.valid() ? listed : target)
                       .Hint("give it another name with AS in the select, or the prediction: TO "
                             "PREDICT table.another_name"));
        continue;
      }
      names->Add(column.name);
      catalog::PutColumn(column, plan->add_pass_through());
    }
  }
  RETURN_IF_ERROR(errors);
  if (truth && kept[*truth]) {
    ColumnInfo column = select.schema.columns[*truth];
    plan->set_actual(column.name);
    column.name = names->AddLike(kActual);
    plan->add_told(fmt::format("the true {} is kept as {}", plan->actual(), column.name));
    catalog::PutColumn(column, plan->add_pass_through());
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
                               catalog::DataSource& source, catalog::ModelStore& models,
                               const Options& options) {
  ErrorList errors;
  AttributeSet attributes;
  errors.Add(AttributeSet::Bind(models::StatementAttributes("predict"), "predict", statement.span,
                                statement.attributes, &attributes));
  Result<BoundSelect> select = BindSelect(statement.select, source);
  errors.Add(select.status());
  Result<StoredModel> model = FindStoredModel(statement.model, models, catalog::ModelRight::kUsage);
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
  errors.Add(CheckStreamed(statement, plan->column(), label));
  ResultNames names(source.most_name_bytes());
  FillQuantiles(model->plan.model(), &names, plan);
  if (plan->quantile_columns().empty()) {
    names.Add(plan->column());
  }
  std::vector<bool> kept;
  errors.Add(ReadKept(attributes, *select, &kept));
  errors.Add(FillPassThrough(*select, kept, label, attributes,
                             statement.target ? statement.target->span : statement.span, source,
                             &names, plan));
  errors.Add(FillThreshold(attributes, label, plan));
  errors.Add(FillExtraOutputs(attributes, model->plan.model(), &names, plan));
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
  if (options.on_model) {
    options.on_model(std::move(model->version));
  }
  return result;
}

}  // namespace sluice::planner
