#pragma once

#include <optional>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "planner/text_shape.h"

namespace sluice::planner {

// Whether the column is free text: many distinct values of several words each, which a category
// could not learn from. `rows`: of the SELECT.
bool IsFreeText(const TextShape& shape, const catalog::ColumnStatistics& statistics, double rows);

// Whether the texts rarely repeat but consist of pieces that do: paths, addresses, codes. A piece
// that is in every text does not count, like the A of 'A-10027'.
bool HasRepeatedPieces(const std::vector<std::string>& cells);

// Whether every non-blank cell is a list: '["red","blue"]', '{red,blue}'.
bool AreListsOfTexts(const std::vector<std::string>& cells);

// Lists of a few names in many combinations, as forms and tags are stored: "price;quality". The
// delimiter and the names, most frequent first.
struct NameLists {
  char delimiter = 0;
  std::vector<std::string> names;
};
std::optional<NameLists> FindNameLists(const std::vector<std::string>& cells);

// The texts of one column of the sample, without NULLs.
std::vector<std::string> TextsOf(const std::vector<std::vector<Value>>& sample, size_t column);

}  // namespace sluice::planner
