#include "planner/rounded_number.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/sql_name.h"

namespace sluice::planner {

bool MayBeRounded(const ColumnInfo& column) {
  return column.type == DataType::kDouble && column.database_type.starts_with("numeric");
}

bool AreMerged(const ColumnInfo& column, const catalog::ColumnStatistics& statistics) {
  // Models that learn numbers tell fewer apart.
  constexpr double kNumbersToldApart = 1 << 24;
  const double farthest = std::max(std::abs(statistics.min), std::abs(statistics.max));
  return MayBeRounded(column) && statistics.has_range && farthest >= kExactIntegers &&
         statistics.max - statistics.min < farthest / kExactIntegers * kNumbersToldApart;
}

std::string AllDigitsOf(const std::string& column) {
  const std::string name = SqlName(column);
  return fmt::format("{0}::bigint AS {0}, or {0}::text AS {0}, keeps every digit", name);
}

}  // namespace sluice::planner
