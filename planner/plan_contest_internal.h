#pragma once

#include "planner/contest_request.h"
#include "planner/plan_train_internal.h"

// Trainings that try several models. Only planner.cc and plan_*.cc include this.
namespace sluice::planner {

// A TRAIN, with its contest or search where it has one.
Result<plan::Plan> PlanTraining(const parser::TrainStatement& statement,
                                catalog::DataSource& source, catalog::ModelStore& models,
                                const Options& options);

// What further candidates are planned with.
struct ContestGround {
  const ContestRequest& request;
  const BoundTrain& bound;  // the statement's own choice
  catalog::DataSource& source;
  catalog::ModelStore& models;
  const Options& options;
};
// A candidate of this type with these attributes beside the statement's; an error says why there
// is none. `contest` has the validation rows; `plan`: the statement's own.
Result<plan::Candidate> MakeCandidate(const ContestGround& ground, const plan::TrainPlan& plan,
                                      const plan::Contest& contest, const models::ModelType& type,
                                      const std::vector<parser::Attribute>& settings);
// The rows by which candidates are judged; false: there are none, as the statement says.
bool FillContestRows(const BoundTrain& bound, const plan::TrainPlan& plan, plan::Contest* contest);
// auto.metric or tune.metric.
Status FillContestMetric(const AttributeSet& attributes, const char* name,
                         const plan::TrainPlan& plan, plan::Contest* contest);

// auto.*: the short form's kinds.
Status FillKinds(const ContestGround& ground, plan::TrainPlan* plan);
// tune.*: settings of the type that is named.
Status FillSearch(const ContestGround& ground, plan::TrainPlan* plan);

}  // namespace sluice::planner
