#pragma once

#include <optional>
#include <string>

#include "elastic/job/training_job.h"
#include "executor/calibrate.h"

namespace sluice::executor {

// Trains a network on a table that is too small to set rows aside (plan.folds): once without each
// fold, which says after every epoch how good the network is, and then on all rows, for as many
// epochs as were best over all folds together. The metrics are the means of the folds'. In this
// process. `held_out`: where a threshold, a calibration, a correction or a confusion matrix needs
// it, every row as the network scores it that was trained without the row's fold.
Result<elastic::TrainOutcome> TrainByFolds(const elastic::TrainingJob& job,
                                           std::optional<ScoredRows>* held_out);

// The same for a linear model at its optimum, which has no epochs to choose among: the metrics are
// those of all rows together, each as the model scores it that was trained without the row's fold,
// and `held_out` is all of them.
Result<elastic::TrainOutcome> TrainOptimumByFolds(const elastic::TrainingJob& job,
                                                  std::optional<ScoredRows>* held_out);

// The same for boosted trees: as many rounds as the median of the folds found best. `weights`
// receives the model of all rows.
Result<elastic::TrainOutcome> TrainTreesByFolds(const elastic::TrainingJob& job,
                                                std::string* weights,
                                                std::optional<ScoredRows>* held_out);

}  // namespace sluice::executor
