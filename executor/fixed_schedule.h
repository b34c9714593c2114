#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "elastic/job/training_job.h"

namespace sluice::models {
class Attribute;
}
namespace sluice::plan {
class TrainPlan;
}

// What trainings on folds say of how long to train on all rows.
namespace sluice::executor {

inline constexpr char kTreeRounds[] = "train.num_boost_round";

// null: the model has no such attribute.
models::Attribute* FindAttribute(std::string_view name, plan::TrainPlan* plan);

// The epoch, or round, that the training kept.
uint32_t BestEpoch(const elastic::TrainOutcome& outcome);

// The upper one of two in the middle. At least one number.
uint32_t MedianOf(std::vector<uint32_t> numbers);

// Limits the training to `share` of its length.
void Shorten(double share, plan::TrainPlan* plan);

// So many epochs or rounds, whatever validation rows say; the learning rate is lowered where that
// of `like` was.
void TrainSoLong(uint32_t epochs, const elastic::TrainOutcome& like, plan::TrainPlan* plan);

}  // namespace sluice::executor
