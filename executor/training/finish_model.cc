#include "executor/training/finish_model.h"

#include <optional>

#include "executor/in_process/label_correction.h"
#include "executor/training/feature_effects.h"
#include "models/metrics/confusion.h"
#include "models/metrics/decision_table.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Limits for the confusion matrix: classes that a reader can look through, and rows that are scored
// again within a moment.
constexpr int kMinConfusedClasses = 3;
constexpr int kMaxConfusedClasses = 50;
constexpr int64_t kMaxConfusionRows = 200'000;

bool WantsConfusion(const TrainedModel& model) {
  const models::LabelPlan& label = model.plan.model().features().label();
  const bool held_out =
      model.held_out != nullptr || (model.plan.split().kind() != plan::Split::NONE &&
                                    model.plan.estimated_rows() <= kMaxConfusionRows);
  return held_out && label.kind() == models::LabelPlan::CLASS &&
         label.classes_size() >= kMinConfusedClasses && label.classes_size() <= kMaxConfusedClasses;
}

void FindConfusion(const ScoredRows& rows, plan::TrainPlan* plan) {
  models::ConfusionMatrix matrix(rows.outputs, std::nullopt);
  matrix.Add(rows.scores, rows.labels, rows.weights);
  for (const auto& [classes, weight] : matrix.cells()) {
    plan::Confusion* cell = plan->add_confusion();
    cell->set_actual(classes.first);
    cell->set_predicted(classes.second);
    cell->set_rows(weight);
  }
}

}  // namespace

Status FinishModel(const TrainedModel& model, std::stop_token stop, plan::TrainPlan* plan,
                   std::vector<std::pair<std::string, double>>* metrics) {
  if (WantsCalibration(*plan)) {
    std::optional<ScoredRows> scored;
    if (model.held_out == nullptr) {
      ASSIGN_OR_RETURN(scored, ScoreValidation(*plan, model.source, model.dataset, model.validation,
                                               model.weights, stop));
    }
    CalibrateModel(scored ? *scored : *model.held_out, plan, metrics);
  }
  if (WantsCorrection(*plan) &&
      (model.held_out != nullptr || plan->split().kind() != plan::Split::NONE)) {
    std::optional<ScoredRows> scored;
    if (model.held_out == nullptr) {
      ASSIGN_OR_RETURN(scored, ScoreValidation(*plan, model.source, model.dataset, model.validation,
                                               model.weights, stop));
    }
    CorrectPredictions(scored ? *std::move(scored) : *model.held_out, plan, metrics);
  }
  if (WantsConfusion(model)) {
    std::optional<ScoredRows> scored;
    if (model.held_out == nullptr) {
      ASSIGN_OR_RETURN(scored, ScoreValidation(*plan, model.source, model.dataset, model.validation,
                                               model.weights, stop));
    }
    FindConfusion(scored ? *scored : *model.held_out, plan);
  }
  models::DecideBy(plan->threshold(), metrics);
  if (plan->model().members_size() > 0) {
    return OkStatus();  // a blend's features are those of its members
  }
  Result<plan::FeatureEffects> effects =
      FindFeatureEffects(*plan, model.source, model.dataset, model.validation, model.weights,
                         model.rows_trained, stop);
  if (effects.ok()) {
    *plan->mutable_effects() = *std::move(effects);
  }
  return OkStatus();
}

}  // namespace sluice::executor
