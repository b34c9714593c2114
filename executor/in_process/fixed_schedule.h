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

// How long to train on all rows, according to trainings on folds.
namespace sluice::executor {

inline constexpr char kTreeRounds[] = "train.num_boost_round";

// null: the model has no such attribute.
models::Attribute* FindAttribute(std::string_view name, plan::TrainPlan* plan);

// The epoch, or round, whose weights the training kept.
uint32_t BestEpoch(const elastic::TrainOutcome& outcome);

// Limits the training to `share` of its length.
void Shorten(double share, plan::TrainPlan* plan);

// Fixes the number of epochs or rounds, regardless of validation rows; the learning rate is lowered
// at the same epochs as in `like`.
void FixLength(uint32_t epochs, const elastic::TrainOutcome& like, plan::TrainPlan* plan);

}  // namespace sluice::executor
