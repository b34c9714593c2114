#pragma once

#include <cstdint>
#include <string>
#include <vector>

// What a model reveals about single rows. Every row has its own id, and each id a weight that
// starts at zero; the optimizer's step is its rate in the direction of the gradient's sign, however
// long the gradient is, and the sign of a logistic loss is the label's. So a weight, in rates, is
// how often the row was applied; where the rate is divided by a gradient's staleness, the sum of
// the
// 1 / staleness of each time. The bias is the score of the rows that are not trained at all.
namespace sluice::chaos {

inline constexpr double kRowRate = 0.5;

struct ScoredRow {
  int64_t id = 0;
  bool validation = false;
  bool label = false;
  double probability = 0;  // of the label 1
};

struct RowExpectation {
  bool same_bits = false;  // no gradient is stale
  int times = 1;           // number of times that each row is applied
  // The largest staleness of a gradient in versions; 0: no limit. Detectable if `times` is 1.
  double most_stale = 0;
};

struct RowFindings {
  int64_t rows = 0, validation_rows = 0;
  int64_t lost = 0, repeated = 0, too_stale = 0, wrong = 0;
  int64_t stalest = 0;  // of one application, if it can be told
  std::vector<std::string> examples;

  bool good() const { return lost + repeated + too_stale + wrong == 0; }
};

RowFindings CheckRows(const std::vector<ScoredRow>& rows, const RowExpectation& expected);
std::string Describe(const RowFindings& findings);

}  // namespace sluice::chaos
