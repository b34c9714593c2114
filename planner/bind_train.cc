#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "models/blend/blend.h"
#include "parser/printer.h"
#include "planner/choose_type.h"
#include "planner/column_target.h"
#include "planner/same_columns.h"
#include "planner/train_binder_internal.h"

namespace sluice::planner {
using models::ModelFamily;
using models::ModelTask;

void TrainBinder::BindInto() {
  const parser::ModelName& into = statement_.into;
  if (into.version) {
    errors_.Add(
        InvalidArgument(fmt::format("INTO names a model, not the version {}", *into.version))
            .At(into.span)
            .Hint("each training makes the next version by itself"));
  }
  bound_.must_be_new = statement_.create_form && !statement_.or_replace;
  if (known_ != nullptr) {
    return;
  }
  const Status mine = models_.CheckMayPut(into.schema, into.name);
  if (!mine.ok()) {
    errors_.Add(mine.MovedTo(into.span));
    return;
  }
  if (!bound_.must_be_new) {
    return;
  }
  const auto existing =
      models_.FindFor(catalog::ModelRight::kUsage, into.schema, into.name, std::nullopt);
  if (existing.ok()) {
    errors_.Add(AlreadyExists(fmt::format("model '{}' exists already", parser::Print(into)))
                    .At(into.span)
                    .Hint("CREATE OR REPLACE MODEL makes a new version of it"));
  } else if (existing.status().code() != Code::kNotFound) {
    errors_.Add(existing.status());
  }
}

void TrainBinder::BindBase() {
  if (!statement_.base_model) {
    return;
  }
  Result<StoredModel> base =
      FindStoredModel(*statement_.base_model, models_, catalog::ModelRight::kInspect);
  if (!base.ok()) {
    errors_.Add(base.status());
    return;
  }
  bound_.base = std::move(base).value();
}

void TrainBinder::BindType() {
  if (statement_.model_type) {
    bound_.type_span = statement_.model_type->span;
    bound_.type = models::FindModelType(statement_.model_type->text);
    if (bound_.type == nullptr && !FindUserType()) {
      UnknownType();
    }
  }
  if (!bound_.base) {
    return;
  }
  const std::string& learnt = bound_.base->plan.model().type();
  if (learnt == models::kBlendType) {
    errors_.Add(Unimplemented(fmt::format("model '{}' is a blend of several, which no training "
                                          "continues",
                                          parser::Print(*statement_.base_model)))
                    .At(statement_.base_model->span)
                    .Hint("leave USING out; or continue from a model of one type"));
    bound_.base.reset();
    return;
  }
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

void TrainBinder::BindLabel() {
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

void TrainBinder::BindStatistics() {
  if (!has_select_) {
    return;
  }
  Result<catalog::SelectStatistics> statistics =
      known_ != nullptr ? known_->statistics
                        : source_.Statistics(bound_.select.text, bound_.select.schema,
                                             catalog::StatisticsOptions());
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

void TrainBinder::ChooseType() {
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
    bound_.shape = std::move(choice->shape);
    bound_.open_types = std::move(choice->open);
  }
}

void TrainBinder::BindAttributes() {
  if (bound_.type == nullptr) {
    return;
  }
  const Span place = statement_.model_type ? statement_.model_type->span : statement_.span;
  // The short form chooses the sizes, too.
  const bool brings_required = bound_.base.has_value() || !bound_.chosen_because.empty();
  errors_.Add(AttributeSet::Bind(*bound_.type, place, statement_.attributes, brings_required,
                                 &bound_.attributes));
}

void TrainBinder::BindColumns() {
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
  only_requested_ = targets.size() > 1 || (bound_.type != nullptr && !bound_.type->towers.empty());
  if (bound_.type != nullptr && !bound_.type->towers.empty() && statement_.columns.empty()) {
    errors_.Add(
        InvalidArgument(fmt::format("{} has a tower of features for each of {}, and the "
                                    "statement gives them none",
                                    bound_.type->name, fmt::join(bound_.type->towers, " and ")))
            .At(bound_.type_span)
            .Hint(fmt::format("COLUMN ... FOR {}",
                              fmt::join(bound_.type->towers, " COLUMN ... FOR "))));
  }
  if (only_requested_ && bound_.type != nullptr && bound_.type->family == ModelFamily::kTrees) {
    errors_.Add(InvalidArgument(fmt::format("{} takes one set of COLUMNs, not {}",
                                            bound_.type->name, targets.size()))
                    .At(statement_.columns[1].span));
  }
  if (bound_.base && !statement_.columns.empty()) {
    errors_.Add(CheckSameColumns(statement_.columns, bound_.base->plan));
  }
}

Result<BoundTrain> TrainBinder::Bind() {
  Result<BoundSelect> select =
      known_ != nullptr ? known_->select : BindSelect(statement_.select, source_);
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
  MakeUserType();
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

Result<BoundTrain> BindTrain(const parser::TrainStatement& statement, catalog::DataSource& source,
                             catalog::ModelStore& models, const Options& options,
                             const BoundTrain* known) {
  return TrainBinder(statement, source, models, options, known).Bind();
}

}  // namespace sluice::planner
