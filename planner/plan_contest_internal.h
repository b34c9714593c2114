#pragma once

#include <utility>
#include <vector>

#include "planner/contest_request.h"
#include "planner/plan_train_internal.h"

// Trainings that try several models. Only planner.cc and plan_*.cc include this.
namespace sluice::planner {

// Plans a TRAIN, including its contest or search if it has one.
Result<plan::Plan> PlanTraining(const parser::TrainStatement& statement,
                                catalog::DataSource& source, catalog::ModelStore& models,
                                const Options& options);

// The basis for planning further candidates.
struct ContestSetup {
  const ContestRequest& request;
  const BoundTrain& bound;  // the statement's own choice
  catalog::DataSource& source;
  catalog::ModelStore& models;
  const Options& options;
};
// A candidate of this type with these attributes added to the statement's; an error says why it is
// impossible. `contest` has the validation rows; `plan`: the statement's own.
Result<plan::Candidate> MakeCandidate(const ContestSetup& ground, const plan::TrainPlan& plan,
                                      const plan::Contest& contest, const models::ModelType& type,
                                      const std::vector<parser::Attribute>& settings);
// Chooses the rows by which candidates are judged; false: the statement does not allow any.
bool FillContestRows(const BoundTrain& bound, const plan::TrainPlan& plan, plan::Contest* contest);
// auto.metric or tune.metric.
Status FillContestMetric(const AttributeSet& attributes, const char* name,
                         const plan::TrainPlan& plan, plan::Contest* contest);

// A setting of a kind of model: what a practitioner would vary first.
struct Variant {
  const char* name;
  std::vector<std::pair<const char*, parser::AttributeValue>> settings;
};
// The type's default settings, but where others are known to suit the label.
Variant FirstOf(const models::ModelType& type, const BoundTrain& bound);
// Further ones. `own`: the plan with the first settings; null: there is none.
std::vector<Variant> VariantsOf(const models::ModelType& type, const BoundTrain& bound,
                                const plan::Candidate* own);

// auto.*: the kinds of models for the short form.
Status FillKinds(const ContestSetup& ground, plan::TrainPlan* plan);
// tune.*: settings of the named type.
Status FillSearch(const ContestSetup& ground, plan::TrainPlan* plan);

}  // namespace sluice::planner
