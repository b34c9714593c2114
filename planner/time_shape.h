#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "catalog/data_source.h"
#include "models/features/time_cell.h"
#include "planner/odd_cells.h"
#include "planner/text_shape.h"

namespace sluice::planner {

// A column that holds times, of any type.
struct TimeShape {
  models::TimeFormat format = models::TimeFormat::kIso;
  // Both 12/31 and 31/12 fit the data; the format is the likelier one.
  bool ambiguous = false;
};

// `shape`: of a text column. Judged by the sample and the most frequent values, which all have to
// fit. `fits`, if given: other texts do not count.
std::optional<TimeShape> FindTimes(const ColumnInfo& column, size_t index, const TextShape& shape,
                                   const catalog::SelectStatistics& statistics,
                                   const Fits& fits = nullptr);

// Microseconds since 1970; nullopt: NULL, blank, or not a time.
std::optional<int64_t> TimeOf(const Value& cell, DataType type, models::TimeFormat format);

}  // namespace sluice::planner
