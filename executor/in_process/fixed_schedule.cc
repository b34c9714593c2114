#include "executor/in_process/fixed_schedule.h"

#include <algorithm>
#include <cmath>

#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr char kPatience[] = "train.early_stopping_rounds";

}  // namespace

models::Attribute* FindAttribute(std::string_view name, plan::TrainPlan* plan) {
  for (models::Attribute& attribute : *plan->mutable_model()->mutable_attributes()) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  return nullptr;
}

uint32_t BestEpoch(const elastic::TrainOutcome& outcome) {
  return std::max(1U, outcome.best_epoch > 0 ? outcome.best_epoch : outcome.epochs);
}

void Shorten(double share, plan::TrainPlan* plan) {
  const auto part = [share](int64_t whole) {
    return std::max<int64_t>(1, std::llround(std::ceil(static_cast<double>(whole) * share)));
  };
  if (models::Attribute* rounds = FindAttribute(kTreeRounds, plan)) {
    rounds->set_integer(part(rounds->integer()));
  } else {
    plan->set_epochs(static_cast<uint32_t>(part(plan->epochs())));
  }
}

void FixLength(uint32_t epochs, const elastic::TrainOutcome& like, plan::TrainPlan* plan) {
  plan->clear_early_stopping();
  if (models::Attribute* rounds = FindAttribute(kTreeRounds, plan)) {
    rounds->set_integer(epochs);
    if (models::Attribute* patience = FindAttribute(kPatience, plan)) {
      patience->set_integer(0);
    }
  } else if (!plan->optimum()) {
    plan->set_epochs(epochs);
    const std::vector<uint32_t>& cuts = like.rate_cuts;
    plan->mutable_rate_cuts()->Assign(
        cuts.begin(),
        cuts.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(cuts.size(), epochs)));
  }
}

}  // namespace sluice::executor
