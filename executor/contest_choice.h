#pragma once

#include <string>
#include <vector>

#include "executor/candidate_trial.h"

namespace sluice::models {
class ModelSpec;
}  // namespace sluice::models

namespace sluice::executor {

// Which candidates of a contest make up its model.
struct ContestChoice {
  size_t best = 0;           // the best one alone
  double value_of_best = 0;  // of the contest's metric
  std::vector<double>
      weights;          // of each candidate in the model: 1 of the best, or those of a blend
  Judgement judgement;  // of the model
  double value = 0;

  // The candidates with a weight, the heaviest first.
  std::vector<size_t> Members() const;
};

// `best`, or a blend of the trials that came to something, where the contest blends and that is
// better by more than chance.
ContestChoice Choose(const models::ModelSpec& model, const plan::Contest& contest,
                     const std::vector<Trial>& trials, size_t best);

// "a blend was chosen, 0.65 x LinearRegressor + 0.35 x xgboost.gbtree: rmse 528 on ..."
std::string WhyChosen(const models::ModelSpec& model, const plan::Contest& contest,
                      const ContestChoice& choice);

}  // namespace sluice::executor
