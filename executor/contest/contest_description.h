#pragma once

#include <string>
#include <vector>

namespace sluice::plan {
class Candidate;
class Contest;
}  // namespace sluice::plan

namespace sluice::executor {

// A candidate's result in one line: "rmse 4.61, 19.4 s, kept (eta=0.05)".
std::string DescribeCandidate(const plan::Contest& contest, const plan::Candidate& candidate);

// One line for each candidate, the best first, those without a result last.
std::vector<std::string> RankCandidates(const plan::Contest& contest);

}  // namespace sluice::executor
