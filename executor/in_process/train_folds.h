#pragma once

#include <optional>
#include <string>

#include "elastic/job/training_job.h"
#include "executor/in_process/calibrate.h"

namespace sluice::executor {

// What folds chose beside the number of epochs.
struct FoldChoice {
  double weight_decay = 0;  // of plan.weight_decays; 0: none
  std::string why;          // "": there was nothing to choose
};

// Trains a network on a table that is too small to set rows aside (plan.folds): once without each
// fold, which evaluates the network after every epoch, and then on all rows, for the number of
// epochs that was best over all folds together. Runs in this process. `held_out`: of
// classes, and if a correction needs it, each row's score from the network trained without the
// row's fold, at that network's best epoch. With classes, the metrics are those of all these rows
// together (a fold may lack a class); otherwise they are the means over the folds. All that is done
// with each of plan.weight_decays, too, and one that is better by more than chance is used.
Result<elastic::TrainOutcome> TrainByFolds(const elastic::TrainingJob& job,
                                           std::optional<ScoredRows>* held_out, FoldChoice* choice);

// The same for a linear model at its optimum, which has no epochs to choose from: the metrics are
// those of all rows together, each scored by the model trained without the row's fold, and
// `held_out` has all of them.
Result<elastic::TrainOutcome> TrainOptimumByFolds(const elastic::TrainingJob& job,
                                                  std::optional<ScoredRows>* held_out);

// The same for boosted trees: the number of rounds is the median of the best of each fold.
// `weights` receives the model of all rows.
Result<elastic::TrainOutcome> TrainTreesByFolds(const elastic::TrainingJob& job,
                                                std::string* weights,
                                                std::optional<ScoredRows>* held_out);

}  // namespace sluice::executor
