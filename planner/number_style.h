#pragma once

#include <string>
#include <vector>

namespace sluice::planner {

// The separator of thousands in a text column's numbers, judged by its cells: "." if that separates
// thousands and a comma precedes decimals ("1.234,5", "0,75"), "," for the reverse ("1,234.5",
// "1,234"), "" for plain numbers, lists of numbers ("1,5" may be one) and anything else.
std::string ThousandsOf(const std::vector<std::string>& cells);

}  // namespace sluice::planner
