#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "models/features/cell_format.h"
#include "parser/printer.h"
#include "planner/bind_train_internal.h"
#include "planner/choose_type.h"
#include "planner/class_query.h"
#include "planner/column_target.h"
#include "planner/decision.h"
#include "planner/error_list.h"
#include "planner/feature_lists.h"
#include "planner/leaks.h"
#include "planner/same_columns.h"

namespace sluice::planner {
namespace {

using models::ModelFamily;
using models::ModelTask;

// Binds one statement step by step; a step whose ground is missing is left out, so that each
// mistake is told once.
class Binder {
 public:
  Binder(const parser::TrainStatement& statement, catalog::DataSource& source,
         catalog::ModelStore& models)
      : statement_(statement), source_(source), models_(models) {}

  Result<BoundTrain> Bind();

 private:
  void BindInto();
  void BindBase();
  void BindType();
  void BindLabel();
  void BindStatistics();
  void ChooseType();
  void BindAttributes();
  void BindColumns();
  void BindRoles();
  void BindFeatureLists();
  void BindValidation();
  void Derive();
  void DeriveFromBase();
  void BindDecision();
  void WarnOfLeaks();

  bool HoldsNumbers(size_t column) const;
  Status FindRole(const std::string& attribute, const std::string& role, bool numeric,
                  std::string* column);
  LabelUse UseOf(ModelTask task) const;
  Status BindLabelPlan();

  const parser::TrainStatement& statement_;
  catalog::DataSource& source_;
  catalog::ModelStore& models_;
  ErrorList errors_;
  BoundTrain bound_;
  bool has_select_ = false;
  bool has_statistics_ = false;
  std::optional<size_t> label_;
  std::vector<RequestedColumn> requested_;
  bool only_requested_ = false;
  std::vector<std::string> excluded_;
  std::vector<std::string> left_out_;  // per column, as features.* say
};

void Binder::BindInto() {
  const parser::ModelName& into = statement_.into;
  if (into.version) {
    errors_.Add(
        InvalidArgument(fmt::format("INTO names a model, not the version {}", *into.version))
            .At(into.span)
            .Hint("each training makes the next version by itself"));
  }
  bound_.must_be_new = statement_.create_form && !statement_.or_replace;
  const Status mine = models_.CheckMayPut(into.schema, into.name);
  if (!mine.ok()) {
    errors_.Add(mine.MovedTo(into.span));
    return;
  }
  if (!bound_.must_be_new) {
    return;
  }
  const auto existing = models_.Find(into.schema, into.name, std::nullopt);
  if (existing.ok()) {
    errors_.Add(AlreadyExists(fmt::format("model '{}' exists already", parser::Print(into)))
                    .At(into.span)
                    .Hint("CREATE OR REPLACE MODEL makes a new version of it"));
  } else if (existing.status().code() != Code::kNotFound) {
    errors_.Add(existing.status());
  }
}

void Binder::BindBase() {
  if (!statement_.base_model) {
    return;
  }
  Result<StoredModel> base = FindStoredModel(*statement_.base_model, models_);
  if (!base.ok()) {
    errors_.Add(base.status());
    return;
  }
  bound_.base = std::move(base).value();
}

void Binder::BindType() {
  if (statement_.model_type) {
    bound_.type = models::FindModelType(statement_.model_type->text);
    if (bound_.type == nullptr) {
      std::vector<std::string> names;
      for (const models::ModelType& type : models::ModelTypes()) {
        names.push_back(type.name);
      }
      const auto nearest = NearestName(statement_.model_type->text, names);
      errors_.Add(NotFound(fmt::format("unknown model type '{}'", statement_.model_type->text))
                      .At(statement_.model_type->span)
                      .Hint(nearest ? fmt::format("did you mean '{}'?", *nearest)
                                    : "SHOW MODEL TYPES lists what there is"));
      // The rest is held against the type that was probably meant.
      bound_.type = nearest ? models::FindModelType(*nearest) : nullptr;
    }
  }
  if (!bound_.base) {
    return;
  }
  const std::string& learnt = bound_.base->plan.model().type();
  if (bound_.type == nullptr && !statement_.model_type) {
    bound_.type = models::FindModelType(learnt);
  } else if (bound_.type != nullptr && bound_.type->name != learnt) {
    errors_.Add(InvalidArgument(fmt::format("the model to continue from is a {}, not a {}", learnt,
                                            bound_.type->name))
                    .At(statement_.model_type->span)
                    .Hint(fmt::format("TO TRAIN {}, or leave USING out", learnt)));
    bound_.base.reset();
  }
}

void Binder::BindLabel() {
  if (!statement_.label) {
    errors_.Add(InvalidArgument("the statement has no LABEL clause")
                    .At(statement_.span)
                    .Hint(statement_.create_form
                              ? "OPTIONS (label='column') says what the model has to predict"
                              : "add LABEL column: what the model has to predict"));
    return;
  }
  if (!has_select_) {
    return;
  }
  const parser::Name& name = *statement_.label;
  label_ = bound_.select.columns.Find(name.text);
  if (!label_ && name.parts.size() > 1) {
    label_ = bound_.select.columns.Find(name.parts.back());  // t.income
  }
  if (!label_) {
    errors_.Add(bound_.select.columns.Missing(name.text, name.span));
  }
}

void Binder::BindStatistics() {
  if (!has_select_) {
    return;
  }
  Result<catalog::SelectStatistics> statistics =
      source_.Statistics(bound_.select.text, bound_.select.schema, catalog::StatisticsOptions());
  if (!statistics.ok()) {
    errors_.Add(statistics.status());
    return;
  }
  bound_.statistics = std::move(statistics).value();
  if (bound_.statistics.rows == 0 &&
      (bound_.statistics.exact_rows || bound_.statistics.sample.empty())) {
    errors_.Add(InvalidArgument("the SELECT returns no rows").At(statement_.select.span));
    return;
  }
  has_statistics_ = true;
}

void Binder::ChooseType() {
  if (statement_.model_type || bound_.type != nullptr || !has_statistics_ || !label_) {
    return;
  }
  const ColumnInfo& label = bound_.select.schema.columns[*label_];
  const catalog::ColumnStatistics& statistics = bound_.statistics.columns[*label_];
  Result<ModelChoice> choice = ChooseModelType(
      statement_, label.name, LooksLikeClasses(label, statistics, bound_.statistics.rows),
      statistics.distinct, bound_.select.schema, bound_.statistics);
  errors_.Add(choice.status());
  if (choice.ok()) {
    bound_.type = choice->type;
    bound_.chosen_because = std::move(choice->because);
  }
}

void Binder::BindAttributes() {
  if (bound_.type == nullptr) {
    return;
  }
  const Span place = statement_.model_type ? statement_.model_type->span : statement_.span;
  // The short form chooses the sizes too.
  const bool brings_required = bound_.base.has_value() || !bound_.chosen_because.empty();
  errors_.Add(AttributeSet::Bind(*bound_.type, place, statement_.attributes, brings_required,
                                 &bound_.attributes));
}

void Binder::BindColumns() {
  std::vector<std::string> targets;
  for (const parser::ColumnClause& clause : statement_.columns) {
    const Result<FeaturePart> part = PartOfTarget(clause, bound_.type);
    errors_.Add(part.status());
    targets.push_back(TargetOf(clause));
    for (const parser::Expression& expression : clause.columns) {
      Result<ColumnSpec> spec = ReadColumn(expression);
      if (!spec.ok()) {
        errors_.Add(spec.status());
      } else if (part.ok()) {
        requested_.push_back({std::move(spec).value(), *part});
      }
    }
  }
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  only_requested_ = targets.size() > 1;
  if (only_requested_ && bound_.type != nullptr && bound_.type->family == ModelFamily::kTrees) {
    errors_.Add(InvalidArgument(fmt::format("{} takes one set of COLUMNs, not {}",
                                            bound_.type->name, targets.size()))
                    .At(statement_.columns[1].span));
  }
  if (bound_.base && !statement_.columns.empty()) {
    errors_.Add(CheckSameColumns(statement_.columns, bound_.base->plan));
  }
}

// Text that holds numbers says what the numbers would; what has no type (SQLite) is found out where
// it is read.
bool Binder::HoldsNumbers(size_t column) const {
  const ColumnInfo& info = bound_.select.schema.columns[column];
  const auto& sample = bound_.statistics.sample;
  return info.type == DataType::kText && !sample.empty() &&
         std::all_of(sample.begin(), sample.end(), [column](const std::vector<Value>& row) {
           const auto* text = std::get_if<std::string>(&row[column]);
           return text == nullptr || models::ParseNumber(*text).has_value();
         });
}

Status Binder::FindRole(const std::string& attribute, const std::string& role, bool numeric,
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
  const bool weights = role == "the weight";
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

void Binder::BindRoles() {
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
  errors_.Add(FindRole("group_column", "the group", false, bound_.features.mutable_group_column()));
  // Marks validation rows: known in training only, so no feature. A time or a key stays one.
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

void Binder::BindFeatureLists() {
  if (!has_select_ || bound_.type == nullptr) {
    return;
  }
  left_out_.assign(bound_.select.schema.columns.size(), "");
  if (!bound_.base) {
    errors_.Add(ReadFeatureLists(bound_.attributes, bound_.select.columns, excluded_, &left_out_));
    return;
  }
  for (const char* name : {"features.exclude", "features.only"}) {
    if (bound_.attributes.Given(name)) {
      errors_.Add(
          InvalidArgument(
              fmt::format("{} cannot change what the model to continue from has learnt", name))
              .At(bound_.attributes.SpanOf(name))
              .Hint("leave it out: the features are those of the base model"));
    }
  }
}

void Binder::BindValidation() {
  const std::optional<std::string> text = bound_.attributes.Text("validation.select");
  if (!text || !has_select_) {
    return;
  }
  const Span span = bound_.attributes.SpanOf("validation.select");
  const Result<BoundSelect> validation = BindSelectText(*text, span, source_);
  if (!validation.ok()) {
    errors_.Add(validation.status());
    return;
  }
  for (size_t i = 0; i < bound_.select.schema.columns.size(); ++i) {
    const std::string& name = bound_.select.schema.columns[i].name;
    if (!validation->columns.Find(name) && excluded_[i] != "the mark of validation rows") {
      errors_.Add(ColumnNotFound(fmt::format("validation.select doesn't contain column {}", name))
                      .At(span));
    }
  }
}

LabelUse Binder::UseOf(ModelTask task) const {
  const bool trees = bound_.type->family == ModelFamily::kTrees;
  switch (task) {
    case ModelTask::kClassification:
      return LabelUse::kClasses;
    case ModelTask::kRegression:
      return trees ? LabelUse::kNumber : LabelUse::kScaledNumber;
    case ModelTask::kRanking:
      return LabelUse::kNumber;
    case ModelTask::kByObjective:
      break;
  }
  const std::optional<std::string> objective = bound_.attributes.Text("objective");
  if (objective) {
    const bool classes = objective->starts_with("binary:") || objective->starts_with("multi:");
    return classes ? LabelUse::kClasses : LabelUse::kNumber;
  }
  return LooksLikeClasses(bound_.select.schema.columns[*label_], bound_.statistics.columns[*label_],
                          bound_.statistics.rows)
             ? LabelUse::kClasses
             : LabelUse::kNumber;
}

Status Binder::BindLabelPlan() {
  const ColumnInfo& column = bound_.select.schema.columns[*label_];
  const catalog::ColumnStatistics& statistics = bound_.statistics.columns[*label_];
  LabelInput input{column, statistics, {}, 0, false, LabelUse::kClasses, "", {}, {}, false};
  input.rows = bound_.statistics.rows;
  input.exact_rows = bound_.statistics.exact_rows;
  input.use = UseOf(bound_.type->task);
  input.model_type = bound_.type->name;
  input.span = statement_.label->span;
  std::set<std::string> seen;
  for (const std::vector<Value>& row : bound_.statistics.sample) {
    const Value& value = row[*label_];
    if (const auto* text = std::get_if<std::string>(&value)) {
      input.sample.push_back(*text);
    }
    if (!IsNull(value)) {
      seen.insert(FormatValue(value, column.type));
    }
  }
  const auto vocabulary = bound_.attributes.Texts("model.label_vocabulary");
  if (input.use == LabelUse::kClasses && NeedsClassQuery(statistics)) {
    ASSIGN_OR_RETURN(input.classes,
                     QueryClasses(bound_.select.text, column, seen, kMostClasses, source_));
    input.classes_known = true;
  }
  models::LabelPlan* label = bound_.features.mutable_label();
  RETURN_IF_ERROR(DeriveLabel(input, label));
  if (vocabulary && label->kind() == models::LabelPlan::CLASS) {
    for (const std::string& name : label->classes()) {
      if (std::find(vocabulary->begin(), vocabulary->end(), name) == vocabulary->end()) {
        return InvalidArgument(
                   fmt::format("label '{}' holds '{}', which model.label_vocabulary lacks",
                               column.name, name))
            .At(bound_.attributes.SpanOf("model.label_vocabulary"));
      }
    }
    label->clear_classes();
    label->mutable_classes()->Add(vocabulary->begin(), vocabulary->end());
  }
  return OkStatus();
}

void Binder::DeriveFromBase() {
  const models::FeaturePlan& learnt = bound_.base->plan.model().features();
  bool missing = false;
  for (const models::InputColumn& input : learnt.inputs()) {
    if (!bound_.select.columns.Find(input.name())) {
      missing = true;
      errors_.Add(ColumnNotFound(fmt::format("model '{}' was trained with column {}, which the "
                                             "SELECT does not have",
                                             parser::Print(*statement_.base_model), input.name()))
                      .At(statement_.base_model->span)
                      .Hint(fmt::format("select {} as well, or leave USING out", input.name())));
    }
  }
  if (!missing) {
    errors_.Add(RequireInputs(learnt, bound_.select, "train"));
  }
  const std::string weight = bound_.features.weight_column();
  const std::string group = bound_.features.group_column();
  bound_.features = learnt;
  bound_.features.set_weight_column(weight);
  bound_.features.set_group_column(group);
  if (label_) {
    bound_.features.mutable_label()->set_column(bound_.select.schema.columns[*label_].name);
  }
}

// How the model decides, what its mistakes weigh, and what it is worth beside a guess.
void Binder::BindDecision() {
  if (!label_ || bound_.features.label().kind() == models::LabelPlan::NONE) {
    return;
  }
  const catalog::ColumnStatistics& statistics = bound_.statistics.columns[*label_];
  errors_.Add(FillClassWeights(bound_.attributes, statistics, bound_.statistics.rows,
                               bound_.features.mutable_label()));
  Result<std::string> threshold = ReadThreshold(bound_.attributes, bound_.features.label());
  errors_.Add(threshold.status());
  if (threshold.ok()) {
    bound_.threshold = std::move(threshold).value();
  }
  bound_.baseline = DescribeBaseline(bound_.features.label(), statistics);
}

void Binder::WarnOfLeaks() {
  if (!label_) {
    return;
  }
  LeakInput leaks{bound_.select.schema,
                  bound_.statistics,
                  *label_,
                  bound_.features.label().kind() == models::LabelPlan::CLASS,
                  {}};
  for (const models::InputColumn& column : bound_.features.inputs()) {
    if (const auto index = bound_.select.columns.Find(column.name())) {
      leaks.features.push_back(*index);
    }
  }
  bound_.warnings = FindLeaks(leaks);
}

void Binder::Derive() {
  if (!has_statistics_ || bound_.type == nullptr) {
    return;
  }
  if (bound_.base) {
    DeriveFromBase();
    BindDecision();
    return;
  }
  Result<std::vector<catalog::ColumnKey>> keys =
      source_.DescribeKeys(bound_.select.text, bound_.select.schema);
  if (!keys.ok()) {
    errors_.Add(keys.status());
    return;
  }
  if (label_) {
    const Status learnable = CheckLearnable(*label_, bound_.select.schema, bound_.statistics,
                                            (*keys)[*label_], statement_.label->span);
    errors_.Add(learnable.ok() ? BindLabelPlan() : learnable);
  }
  DeriveInput input{
      bound_.select.schema,   bound_.select.columns, bound_.statistics, bound_.type->family,
      std::move(requested_),  only_requested_,       excluded_,         left_out_,
      std::move(keys).value()};
  DeriveReport report;
  errors_.Add(DeriveFeatures(input, &bound_.features, &report));
  bound_.notes.insert(bound_.notes.end(), report.notes.begin(), report.notes.end());
  bound_.left_out = std::move(report.left_out);
  bound_.told = std::move(report.told);
  bound_.times = std::move(report.times);
  bound_.series = std::move(report.series);
  BindDecision();
  WarnOfLeaks();
}

Result<BoundTrain> Binder::Bind() {
  Result<BoundSelect> select = BindSelect(statement_.select, source_);
  has_select_ = select.ok();
  if (has_select_) {
    bound_.select = std::move(select).value();
  } else {
    errors_.Add(select.status());
  }
  BindBase();
  BindType();
  BindLabel();
  BindStatistics();
  ChooseType();
  BindAttributes();
  BindColumns();
  BindRoles();
  BindFeatureLists();
  BindValidation();
  Derive();
  BindInto();
  if (!errors_.empty()) {
    return errors_.Take();
  }
  return std::move(bound_);
}

}  // namespace

Result<BoundTrain> BindTrain(const parser::TrainStatement& statement, catalog::DataSource& source,
                             catalog::ModelStore& models) {
  return Binder(statement, source, models).Bind();
}

}  // namespace sluice::planner
