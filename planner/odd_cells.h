#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sluice::planner {

// A column of texts holds numbers, times or lists if nearly all of its cells do: a few odd ones,
// such as a typing error, are missing values.

// Whether a text that is neither blank nor a word for none is one of the column's kind.
using Fits = std::function<bool(const std::string& text)>;

struct OddCells {
  size_t present = 0;                                 // cells that are not blank
  std::vector<std::pair<std::string, size_t>> texts;  // odd ones, most frequent first
};

// The kinds that the column may be of, likeliest first.
std::vector<Fits> KindsOf(const std::vector<std::string>& cells);
// The cells of a sample that do not fit; nullopt if they are too many for accidents, or names.
// `common`: the most frequent values of all rows, and their shares.
std::optional<OddCells> FindOdd(const std::vector<std::string>& cells, const Fits& fits,
                                const std::vector<std::pair<std::string, double>>& common = {});
// Odd texts in so many cells that they mean something, such as 'free' among prices.
std::vector<std::string> FrequentOnes(const OddCells& odd);
// Three of them, quoted, and how many cells: "'abc', '<5' (2 of 400 looked at)".
std::string ShownOdd(const OddCells& odd);

}  // namespace sluice::planner
