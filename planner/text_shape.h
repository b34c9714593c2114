#pragma once

#include <set>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "models/features/cell_format.h"
#include "planner/odd_cells.h"

namespace sluice::planner {

// What the cells of a text column really contain, judged by a sample.
struct TextShape {
  models::ColumnFormat format;
  // Of all numbers in the cells (kNumber, kDenseCsv).
  double mean = 0;
  double deviation = 0;
  double min = 0;
  double max = 0;
  double words = 0;  // average per cell of plain text
};

// The units of a text column's numbers in the sample, if every cell is a number with one
// (UnitNumber::unit). `fits`, if given: other texts do not count.
std::set<std::string> UnitsOf(size_t column, const TextShape& shape,
                              const catalog::SelectStatistics& statistics,
                              const Fits& fits = nullptr);

TextShape InspectText(const std::vector<std::string>& cells);
// Computes mean and deviation of the cells' numbers, however they are written.
void SetMoments(const std::vector<double>& numbers, TextShape* shape);

// For each position of the numbers in cells that list `format.width` of them (kDenseCsv).
struct NumberMoments {
  double mean = 0;
  double deviation = 0;
};
std::vector<NumberMoments> MomentsOfVectors(const std::vector<std::string>& cells,
                                            const models::ColumnFormat& format);

// The finite numbers of one cell that lists several.
std::vector<double> NumbersOfCell(const std::string& cell, const std::string& delimiter);

}  // namespace sluice::planner
