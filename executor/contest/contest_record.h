#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "executor/contest/candidate_trial.h"

namespace sluice::executor {

struct ContestChoice;

// Those of `among` that were trained and judged, the best first.
std::vector<size_t> BestFirst(const plan::Contest& contest, const std::vector<Trial>& trials,
                              const std::vector<size_t>& among);

// A line for a person about one candidate's trial, at `share` of a full training.
std::string DescribeTrial(const plan::Contest& contest, size_t candidate, const Trial& trial,
                          double share);

// The error of a contest whose candidates all failed, with the reason of each.
Status NoCandidateWon(const plan::Contest& contest, const std::vector<Trial>& trials);

// Records in `table` what became of each candidate; removes the candidates' plans.
void RecordTrials(const std::vector<Trial>& trials, const ContestChoice& choice,
                  plan::Contest* table);

// Makes the winner's plan the answer to the contest's statement.
void AnswerTo(const plan::TrainPlan& statement, plan::TrainPlan* winner);

}  // namespace sluice::executor
