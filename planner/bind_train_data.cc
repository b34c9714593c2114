#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "models/features/cell_format.h"
#include "models/features/label_scale.h"
#include "parser/printer.h"
#include "planner/choose.h"
#include "planner/class_query.h"
#include "planner/decision.h"
#include "planner/feature_lists.h"
#include "planner/label_curve_internal.h"
#include "planner/leaks.h"
#include "planner/train_binder_internal.h"

// The roles of the SELECT's columns in a training: label, special roles, features.
namespace sluice::planner {

using models::ModelFamily;
using models::ModelTask;

void TrainBinder::BindFeatureLists() {
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

void TrainBinder::BindValidation() {
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
  std::vector<std::string> missing;
  for (size_t i = 0; i < bound_.select.schema.columns.size(); ++i) {
    const std::string& name = bound_.select.schema.columns[i].name;
    if (!validation->columns.Find(name) && excluded_[i] != "the mark of validation rows") {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    errors_.Add(
        ColumnNotFound(fmt::format("validation.select doesn't contain {}", ListedColumns(missing)))
            .At(span));
  }
}

LabelUse TrainBinder::UseOfNumber() const {
  if (bound_.type->family != ModelFamily::kTrees) {
    return LabelUse::kScaledNumber;
  }
  const std::optional<std::string> objective = bound_.attributes.Text("objective");
  const std::optional<std::string> metrics = bound_.attributes.Text("eval_metric");
  if ((!objective || models::LearnsSquares(*objective)) &&
      (!metrics || models::ScaleWithLabel(*metrics))) {
    return LabelUse::kTreeNumber;
  }
  const bool distances = (!objective || models::LearnsDistances(*objective)) &&
                         (!metrics || models::MeasureDistances(*metrics));
  return distances ? LabelUse::kTreeDistance : LabelUse::kNumber;
}

LabelUse TrainBinder::UseOf(ModelTask task) const {
  switch (task) {
    case ModelTask::kClassification:
      return LabelUse::kClasses;
    case ModelTask::kRegression:
      return UseOfNumber();
    case ModelTask::kRanking:
      return LabelUse::kNumber;
    case ModelTask::kByObjective:
      break;
  }
  const std::optional<std::string> objective = bound_.attributes.Text("objective");
  if (objective) {
    const bool classes = objective->starts_with("binary:") || objective->starts_with("multi:");
    return classes ? LabelUse::kClasses : UseOfNumber();
  }
  return LooksLikeClasses(bound_.select.schema.columns[*label_], bound_.statistics.columns[*label_],
                          bound_.statistics.rows)
             ? LabelUse::kClasses
             : UseOfNumber();
}

// Whether the training, as far as the statement tells, meets each row's label in this process.
bool TrainBinder::ReadsAllRowsHere() const {
  return !RequestsFleet(bound_.attributes) && !bound_.attributes.Given("train.max_steps") &&
         !bound_.attributes.Given("engine.checkpoint_dir") && bound_.chosen_because.empty();
}

Status TrainBinder::FindClasses(LabelInput* input, models::LabelPlan* label) {
  const ColumnInfo& column = input->column;
  std::set<std::string> seen;
  for (const std::vector<Value>& row : bound_.statistics.sample) {
    if (!IsNull(row[*label_])) {
      seen.insert(FormatValue(row[*label_], column.type));
    }
  }
  input->classes_known = true;
  if (classes_of_sample_ && ReadsAllRowsHere() && known_ == nullptr) {
    // Not the common values that the database remembers: those may be gone.
    if (seen.size() >= 2 && seen.size() <= kMaxClassesOfSample) {
      input->classes.assign(seen.begin(), seen.end());
      label->set_classes_of_sample(true);
      return OkStatus();
    }
  }
  ASSIGN_OR_RETURN(input->classes,
                   QueryClasses(bound_.select.text, column, seen, kMaxClasses, source_));
  return OkStatus();
}

Status TrainBinder::BindLabelPlan() {
  const ColumnInfo& column = bound_.select.schema.columns[*label_];
  const catalog::ColumnStatistics& statistics = bound_.statistics.columns[*label_];
  LabelInput input{column, statistics, {}, 0, false, LabelUse::kClasses, "", {}, {}, false, false};
  input.rows = bound_.statistics.rows;
  input.exact_rows = bound_.statistics.exact_rows;
  input.use = UseOf(bound_.type->task);
  input.model_type = bound_.type->name;
  input.span = statement_.label->span;
  for (const std::vector<Value>& row : bound_.statistics.sample) {
    if (const auto* text = std::get_if<std::string>(&row[*label_])) {
      input.sample.push_back(*text);
    }
  }
  models::LabelPlan* label = bound_.features.mutable_label();
  const auto vocabulary = bound_.attributes.Texts("model.label_vocabulary");
  input.one_is_enough = vocabulary && vocabulary->size() == 2 &&
                        bound_.attributes.Declared("model.loss") &&
                        bound_.attributes.Text("model.loss") == "in_batch_softmax";
  const models::LabelPlan* known = known_ == nullptr ? nullptr : &known_->features.label();
  if (known != nullptr && known->kind() == models::LabelPlan::CLASS) {
    input.classes.assign(known->classes().begin(), known->classes().end());
    input.classes_known = true;
  } else if (input.use == LabelUse::kClasses && NeedsClassQuery(statistics)) {
    RETURN_IF_ERROR(FindClasses(&input, label));
  }
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

void TrainBinder::DeriveFromBase() {
  const models::FeaturePlan& learnt = bound_.base->plan.model().features();
  std::vector<std::string> missing;
  for (const models::InputColumn& input : learnt.inputs()) {
    if (!bound_.select.columns.Find(input.name())) {
      missing.push_back(input.name());
    }
  }
  if (!missing.empty()) {
    errors_.Add(
        ColumnNotFound(fmt::format("model '{}' was trained with {}, which the SELECT does "
                                   "not have",
                                   parser::Print(*statement_.base_model), ListedColumns(missing)))
            .At(statement_.base_model->span)
            .Hint(fmt::format("select {} as well, or leave USING out",
                              missing.size() == 1 ? missing.front() : "them")));
  } else {
    errors_.Add(RequireInputs(learnt, bound_.select, "train"));
  }
  if (bound_.attributes.Declared("train.label_scale") &&
      bound_.attributes.Given("train.label_scale")) {
    errors_.Add(InvalidArgument("train.label_scale cannot change what the model to continue from "
                                "has learnt")
                    .At(bound_.attributes.SpanOf("train.label_scale"))
                    .Hint("leave it out: the label's scale is that of the base model"));
  }
  const std::string weight = bound_.features.weight_column();
  const std::string group = bound_.features.group_column();
  bound_.features = learnt;
  bound_.features.set_weight_column(weight);
  bound_.features.set_group_column(group);
  if (label_) {
    bound_.features.mutable_label()->set_column(bound_.select.schema.columns[*label_].name);
    const std::vector<double> sample = LabelSample(bound_.statistics.sample, *label_);
    errors_.Add(CheckLearntScale(bound_.features.label(), sample, statement_.label->span));
    const std::string other_level = OtherLevel(bound_.features.label(), sample);
    if (!other_level.empty()) {
      bound_.warnings.push_back(other_level);
    }
  }
}

// How the model decides, how its mistakes are weighed, and what it is compared with.
void TrainBinder::BindDecision() {
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

void TrainBinder::WarnOfLeaks() {
  if (!label_) {
    return;
  }
  if (known_ != nullptr) {
    bound_.warnings = known_->warnings;
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

void TrainBinder::Derive() {
  if (!has_statistics_ || bound_.type == nullptr) {
    return;
  }
  errors_.Add(CheckWeights());
  if (bound_.base) {
    DeriveFromBase();
    BindDecision();
    return;
  }
  Result<std::vector<catalog::ColumnKey>> keys =
      known_ != nullptr ? known_->keys
                        : source_.DescribeKeys(bound_.select.text, bound_.select.schema);
  if (!keys.ok()) {
    errors_.Add(keys.status());
    return;
  }
  if (label_) {
    const Status learnable = CheckLearnable(*label_, bound_.select.schema, bound_.statistics,
                                            (*keys)[*label_], statement_.label->span);
    errors_.Add(learnable.ok() ? BindLabelPlan() : learnable);
    const std::vector<double> sample = LabelSample(bound_.statistics.sample, *label_);
    models::LabelPlan* label = bound_.features.mutable_label();
    errors_.Add(BindLabelCurve(bound_.attributes, sample, label));
    if (!bound_.attributes.Given("train.label_scale")) {
      bound_.other_scales = OtherScales(sample, *label);
    }
  }
  bound_.keys = *keys;
  DeriveInput input{bound_.select.schema,
                    bound_.select.columns,
                    bound_.statistics,
                    bound_.type->family,
                    std::move(requested_),
                    only_requested_,
                    excluded_,
                    left_out_,
                    std::move(keys).value(),
                    bound_.user_type.has_value()};
  DeriveReport report;
  errors_.Add(DeriveFeatures(input, &bound_.features, &report));
  bound_.notes.insert(bound_.notes.end(), report.notes.begin(), report.notes.end());
  bound_.left_out = std::move(report.left_out);
  bound_.assumptions = std::move(report.assumptions);
  bound_.times = std::move(report.times);
  bound_.series = std::move(report.series);
  SimplifyForUserType();
  BindExposure();
  BindDecision();
  WarnOfLeaks();
}

}  // namespace sluice::planner
