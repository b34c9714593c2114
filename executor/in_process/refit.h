#pragma once

#include "executor/in_process/train_here.h"

namespace sluice::executor {

// Trains a plan that refits: on the rows before the validation rows first, which decide the number
// of epochs or rounds, and then on all rows, for as many. Metrics and `held_out` are those of the
// first training; the weights are those of the second.
Result<Trained> TrainAndRefit(const elastic::TrainingJob& job);

}  // namespace sluice::executor
