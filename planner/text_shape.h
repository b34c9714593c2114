#pragma once

#include <set>
#include <string>
#include <vector>

#include "catalog/data_source.h"
#include "models/features/cell_format.h"

namespace sluice::planner {

// What the cells of a text column are really made of, told from a sample of them.
struct TextShape {
  models::ColumnFormat format;
  // Of all numbers in the cells (kNumber, kDenseCsv).
  double mean = 0;
  double deviation = 0;
  double min = 0;
  double max = 0;
  double words = 0;  // of a cell, on average, where it is plain text
};

// What stands around the numbers of a text column of the sample, where every cell is such a number
// (UnitNumber::unit).
std::set<std::string> UnitsOf(size_t column, const TextShape& shape,
                              const catalog::SelectStatistics& statistics);

TextShape InspectText(const std::vector<std::string>& cells);
// Of the numbers of its cells, however they are written.
void SetMoments(const std::vector<double>& numbers, TextShape* shape);

// Of each number of the cells that hold `format.width` of them (kDenseCsv).
struct NumberMoments {
  double mean = 0;
  double deviation = 0;
};
std::vector<NumberMoments> MomentsOfVectors(const std::vector<std::string>& cells,
                                            const models::ColumnFormat& format);

// The finite numbers of one cell that lists them.
std::vector<double> NumbersOfCell(const std::string& cell, const std::string& delimiter);

}  // namespace sluice::planner
