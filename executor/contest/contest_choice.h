#pragma once

#include <string>
#include <vector>

#include "executor/contest/candidate_trial.h"

namespace sluice::models {
class ModelSpec;
}  // namespace sluice::models

namespace sluice::executor {

// The candidates that make up a contest's model.
struct ContestChoice {
  size_t best = 0;              // the best one alone
  double value_of_best = 0;     // in the contest's metric
  std::vector<double> weights;  // of each candidate: 1 for the best, or a blend's
  Judgement judgement;          // of the model
  double value = 0;

  // The candidates with a nonzero weight, the heaviest first.
  std::vector<size_t> Members() const;
};

// `best`, or a blend of the successful trials if the contest allows blending and the blend is
// better by more than chance.
ContestChoice Choose(const models::ModelSpec& model, const plan::Contest& contest,
                     const std::vector<Trial>& trials, size_t best);

// "a blend was chosen, 0.65 x LinearRegressor + 0.35 x xgboost.gbtree: rmse 528 on ..."
std::string WhyChosen(const models::ModelSpec& model, const plan::Contest& contest,
                      const ContestChoice& choice);

}  // namespace sluice::executor
