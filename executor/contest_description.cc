#include "executor/contest_description.h"

#include <fmt/core.h>

#include "planner/plan.pb.h"

namespace sluice::executor {

std::string DescribeCandidate(const plan::Contest& contest, const plan::Candidate& candidate) {
  std::string said;
  if (candidate.has_value()) {
    said = fmt::format("{} {:.6g}, {:.1f} s", contest.metric(), candidate.value(),
                       candidate.seconds());
  }
  if (candidate.weight() > 0 && candidate.weight() < 1) {
    said += fmt::format(", {:.3g} of the blend", candidate.weight());
  } else if (!candidate.outcome().empty()) {
    said += (said.empty() ? "" : ", ") + candidate.outcome();
  }
  if (!candidate.settings().empty() && candidate.settings() != candidate.name()) {
    said += fmt::format(" ({})", candidate.settings());
  }
  return said;
}

std::vector<DescriptionLine> DescribeContest(const plan::TrainPlan& plan) {
  std::vector<DescriptionLine> lines;
  if (!plan.has_contest()) {
    return lines;
  }
  const plan::Contest& contest = plan.contest();
  lines.push_back({"contest", "result", plan.chosen_because()});
  for (const plan::Candidate& candidate : contest.candidates()) {
    lines.push_back({"candidate", candidate.name(), DescribeCandidate(contest, candidate)});
  }
  return lines;
}

}  // namespace sluice::executor
