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
struct BroughtSource {
  catalog::ModelVersion version;  // of the type: its name, its language
  std::string text;
};

// Everything that the statement names, found; everything that the data says, derived. What the user
// left open is chosen later (plan_train.cc).
struct BoundTrain {
  BoundSelect select;
  catalog::SelectStatistics statistics;
  const models::ModelType* type = nullptr;
  Span type_span;                                    // of its name; invalid where none is written
  std::optional<BroughtSource> brought;              // of `type`
  std::shared_ptr<const models::ModelType> own_type;  // which is this then
  std::string chosen_because;                        // short form only
  std::string shape;                                 // as in ModelChoice
  std::vector<const models::ModelType*> open_types;  // as in ModelChoice
  AttributeSet attributes;
  models::FeaturePlan features;  // with the label
  std::vector<std::string> notes;
  std::vector<std::string> told;  // as in DeriveReport
  std::vector<LeftOutColumn> left_out;
  std::map<std::string, std::string> times;  // as in DeriveReport
  std::string series;
  std::vector<catalog::ColumnKey> keys;  // of the select's columns; empty with a base
  std::vector<std::string> warnings;
  std::string threshold;                        // predict.threshold, checked
  std::vector<models::LabelPlan> other_scales;  // of the label, worth a trial
  std::string baseline;
  bool must_be_new = false;
  std::optional<StoredModel> base;
};

// Reports every error of the statement at once. `known`: a statement of the same select and label,
// whose database need not be asked again; null: there is none.
// `types`: as Options::model_types.
Result<BoundTrain> BindTrain(const parser::TrainStatement& statement, catalog::DataSource& source,
                             catalog::ModelStore& models, catalog::ModelStore* types,
                             const BoundTrain* known = nullptr);

Result<plan::Plan> PlanTrain(const parser::TrainStatement& statement, const BoundTrain& bound,
                             catalog::DataSource& source, const Options& options);
// The same of a further model for the rows of `first`, a plan for them.
Result<plan::TrainPlan> PlanCandidate(const parser::TrainStatement& statement,
                                      const BoundTrain& bound, const Options& options,
                                      const plan::TrainPlan& first);
// An error where a threshold is to be chosen, or probabilities to be calibrated, and no rows will
// be held out for it. The plan is complete, its contest included.
Status CheckHeldOutRows(const BoundTrain& bound, const plan::TrainPlan& plan);

}  // namespace sluice::planner
