#pragma once

#include "base/row_batch.h"
#include "catalog/data_source.h"

// A PostgreSQL numeric has any number of digits, and is read as a double, which tells whole numbers
// apart up to 2^53 only.
namespace sluice::planner {

inline constexpr double kExactIntegers = 9'007'199'254'740'992.0;  // 2^53

// Whether the column's numbers may have more digits than they are read with.
bool MayBeRounded(const ColumnInfo& column);
// Whether, by its statistics, numbers of such a column that are different are read as the same:
// they are close to each other and far from 0, as identifiers are.
bool AreMerged(const ColumnInfo& column, const catalog::ColumnStatistics& statistics);
// "x::bigint AS x keeps every digit": what to select instead of it.
std::string AllDigitsOf(const std::string& column);

}  // namespace sluice::planner
