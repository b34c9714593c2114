#pragma once

#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "planner/text_shape.h"

namespace sluice::planner {

// Free text: many different values of several words each, of which a category would learn nothing.
// `rows`: of the SELECT.
bool IsFreeText(const TextShape& shape, const catalog::ColumnStatistics& statistics, double rows);

// Texts that hardly ever occur twice, but are made of pieces that do: paths, addresses, codes. What
// is in every one of them is no such piece: the A of 'A-10027'.
bool HasRepeatedPieces(const std::vector<std::string>& cells);

// '["red","blue"]', '{red,blue}' in every cell that is not blank.
bool AreListsOfTexts(const std::vector<std::string>& cells);

// The texts of one column of the sample, NULLs left out.
std::vector<std::string> TextsOf(const std::vector<std::vector<Value>>& sample, size_t column);

}  // namespace sluice::planner
