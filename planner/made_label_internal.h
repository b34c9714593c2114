#pragma once

#include <cstddef>
#include <vector>

namespace sluice::planner {

// A label that is made of several columns.
struct MadeLabel {
  struct Term {
    size_t column = 0;
    char sign = '+';  // before it; of a second one also '*'
  };
  std::vector<Term> terms;  // empty: it is not
  double share = 0;         // of the rows in which they are the label
};

// `columns` have a number for each of the label's; NaN is no number.
// The sum, difference or product of two.
MadeLabel FindPair(const std::vector<double>& label,
                   const std::vector<std::vector<double>>& columns);
// The sum of three or more, each with its sign, up to rounding; NaN counts as 0. Takes, or gives
// back, one column at a time, for as long as what is left of the label becomes smaller.
MadeLabel FindSum(const std::vector<double>& label,
                  const std::vector<std::vector<double>>& columns);

}  // namespace sluice::planner
