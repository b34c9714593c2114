#pragma once

#include <string>
#include <vector>

namespace sluice::planner {

// How the numbers of a text column are written, as the cells decide: "." where that stands between
// thousands and a comma before decimals ("1.234,5", "0,75"), "," for the other way round
// ("1,234.5", "1,234"), "" for plain numbers, lists of numbers ("1,5" may be one) and anything
// else.
std::string ThousandsOf(const std::vector<std::string>& cells);

}  // namespace sluice::planner
