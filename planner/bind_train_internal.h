#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/model_store.h"
#include "models/model.pb.h"
#include "planner/attributes.h"
#include "planner/bind_select.h"
#include "planner/derive.h"
#include "planner/planner.h"
#include "planner/stored_model_internal.h"

// A bound TO TRAIN; only .cc files of this folder include this.
namespace sluice::planner {

// A model type that is not built in.
struct UserTypeSource {
  catalog::ModelVersion version;  // of the type: its name, its language
  std::string text;
};

// Everything that the statement names, resolved, and everything derived from the data. What the
// user left open is chosen later (plan_train.cc).
struct BoundTrain {
  BoundSelect select;
  catalog::SelectStatistics statistics;
  const models::ModelType* type = nullptr;
  Span type_span;                                     // of the name; invalid if there is none
  std::optional<UserTypeSource> user_type;            // of `type`
  std::shared_ptr<const models::ModelType> own_type;  // which is this then
  std::string chosen_because;                         // short form only
  std::string shape;                                  // as in ModelChoice
  std::vector<const models::ModelType*> open_types;   // as in ModelChoice
  AttributeSet attributes;
  models::FeaturePlan features;  // with the label
  std::vector<std::string> notes;
  std::vector<std::string> assumptions;  // as in DeriveReport
  std::vector<LeftOutColumn> left_out;
  std::map<std::string, std::string> times;  // as in DeriveReport
  Series series;
  std::vector<catalog::ColumnKey> keys;  // of the select's columns; empty when continuing
  std::vector<std::string> warnings;
  std::string threshold;                        // predict.threshold, checked
  std::vector<models::LabelPlan> other_scales;  // of the label, to be tried
  std::string baseline;
  bool must_be_new = false;
  std::optional<StoredModel> base;
};

// Reports all errors of the statement at once. `known`: a statement with the same select and label,
// whose findings in the database are reused; null: none.
// Of the options: model_types, classes_of_sample.
Result<BoundTrain> BindTrain(const parser::TrainStatement& statement, catalog::DataSource& source,
                             catalog::ModelStore& models, const Options& options,
                             const BoundTrain* known = nullptr);

Result<plan::Plan> PlanTrain(const parser::TrainStatement& statement, const BoundTrain& bound,
                             catalog::DataSource& source, const Options& options);
// The same for a further model on the rows of `first`, including its plan.
Result<plan::TrainPlan> PlanCandidate(const parser::TrainStatement& statement,
                                      const BoundTrain& bound, const Options& options,
                                      const plan::TrainPlan& first);
// An error if a threshold is to be chosen, or probabilities calibrated, without any held-out rows.
// The plan is complete, including its contest.
Status CheckHeldOutRows(const BoundTrain& bound, const plan::TrainPlan& plan);

}  // namespace sluice::planner
