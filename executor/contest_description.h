#pragma once

#include <string>
#include <vector>

#include "executor/model_description.h"

namespace sluice::plan {
class Candidate;
class Contest;
}  // namespace sluice::plan

namespace sluice::executor {

// What one candidate was worth, in a line: "rmse 4.61, 19.4 s, kept
// (eta=0.05)".
std::string DescribeCandidate(const plan::Contest& contest, const plan::Candidate& candidate);

// All of them, a line each, the best first; those that came to nothing last.
std::vector<std::string> RankCandidates(const plan::Contest& contest);

// Which models a contest has tried, and what each was worth; nothing of other
// trainings.
std::vector<DescriptionLine> DescribeContest(const plan::TrainPlan& plan);

}  // namespace sluice::executor
