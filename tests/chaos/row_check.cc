#include "tests/chaos/row_check.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace sluice::chaos {
namespace {

// Probabilities are floats; scores of up to three rates in either direction can be computed from
// them with a hundredth of this error.
constexpr double kTolerance = 1e-4;
// For sums of 1 / staleness, which are close to each other when gradients are stale.
constexpr double kFineTolerance = 2e-5;
constexpr size_t kExamples = 5;

double Score(const ScoredRow& row) {
  return std::log(row.probability / (1 - row.probability));
}

enum class RowVerdict { kGood, kLost, kRepeated, kTooStale, kWrong };

// `steps`: the weight divided by the rate, towards the row's label.
RowVerdict Judge(double steps, const RowExpectation& expected, RowFindings* findings) {
  if (!std::isfinite(steps) || steps < -kTolerance) {
    return RowVerdict::kWrong;
  }
  if (steps > expected.times + kTolerance) {
    return RowVerdict::kRepeated;
  }
  if (expected.same_bits) {
    const bool whole = std::abs(steps - std::round(steps)) < kTolerance;
    return std::abs(steps - expected.times) < kTolerance ? RowVerdict::kGood
           : whole                                       ? RowVerdict::kLost
                                                         : RowVerdict::kWrong;
  }
  if (steps < kFineTolerance) {
    return RowVerdict::kLost;
  }
  if (expected.times > 1) {
    return RowVerdict::kGood;  // every sum is possible, so it proves nothing
  }
  const double staleness = std::round(1 / steps);
  findings->stalest = std::max(findings->stalest, static_cast<int64_t>(staleness));
  if (std::abs(steps - 1 / staleness) > kFineTolerance) {
    return RowVerdict::kRepeated;  // with two stalenesses
  }
  const bool too_stale = expected.most_stale > 0 && staleness > expected.most_stale;
  return too_stale ? RowVerdict::kTooStale : RowVerdict::kGood;
}

}  // namespace

RowFindings CheckRows(const std::vector<ScoredRow>& rows, const RowExpectation& expected) {
  RowFindings findings;
  const auto tell = [&](const ScoredRow& row, std::string_view what, double steps) {
    if (findings.examples.size() < kExamples) {
      findings.examples.push_back(fmt::format("id {} {} ({:.5f})", row.id, what, steps));
    }
  };
  std::optional<double> bias;
  for (const ScoredRow& row : rows) {
    if (row.validation && !bias.has_value()) {
      bias = Score(row);
    }
  }
  for (const ScoredRow& row : rows) {
    const double steps = (Score(row) - bias.value_or(0)) / kRowRate * (row.label ? 1 : -1);
    if (row.validation) {
      ++findings.validation_rows;
      if (std::abs(steps) > kTolerance) {
        ++findings.wrong;
        tell(row, "is a validation row, and trained", steps);
      }
      continue;
    }
    ++findings.rows;
    switch (Judge(steps, expected, &findings)) {
      case RowVerdict::kGood:
        break;
      case RowVerdict::kLost:
        ++findings.lost;
        tell(row, "lost", steps);
        break;
      case RowVerdict::kRepeated:
        ++findings.repeated;
        tell(row, "repeated", steps);
        break;
      case RowVerdict::kTooStale:
        ++findings.too_stale;
        tell(row, "too stale", steps);
        break;
      case RowVerdict::kWrong:
        ++findings.wrong;
        tell(row, "wrong", steps);
        break;
    }
  }
  return findings;
}

std::string Describe(const RowFindings& findings) {
  return fmt::format("{} rows lost, {} repeated, {} too stale, {} with another weight: {}",
                     findings.lost, findings.repeated, findings.too_stale, findings.wrong,
                     fmt::join(findings.examples, ", "));
}

}  // namespace sluice::chaos
