#include "executor/contest/contest_description.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/metrics/metric.h"
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

std::vector<std::string> RankCandidates(const plan::Contest& contest) {
  std::vector<const plan::Candidate*> order;
  for (const plan::Candidate& candidate : contest.candidates()) {
    order.push_back(&candidate);
  }
  const bool higher = models::Metrics::HigherIsBetter(contest.metric());
  std::stable_sort(order.begin(), order.end(),
                   [higher](const plan::Candidate* a, const plan::Candidate* b) {
                     if (!a->has_value() || !b->has_value()) {
                       return a->has_value() && !b->has_value();
                     }
                     return higher ? a->value() > b->value() : a->value() < b->value();
                   });
  std::vector<std::string> lines;
  for (size_t i = 0; i < order.size(); ++i) {
    lines.push_back(
        fmt::format("{}. {}: {}", i + 1, order[i]->name(), DescribeCandidate(contest, *order[i])));
  }
  return lines;
}

}  // namespace sluice::executor
