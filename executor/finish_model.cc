#include "executor/finish_model.h"

#include <optional>

#include "executor/feature_effects.h"
#include "executor/label_correction.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

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
