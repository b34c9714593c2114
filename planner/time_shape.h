#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/value.h"
#include "catalog/data_source.h"
#include "models/features/time_cell.h"
#include "planner/text_shape.h"

namespace sluice::planner {

// A column that holds times, whatever its type.
struct TimeShape {
  models::TimeFormat format = models::TimeFormat::kIso;
  // The data fits 12/31 and 31/12; the format is the likelier one.
  bool ambiguous = false;
};

// `shape`: of a text column. By the sample and the most frequent values: every one has to fit.
std::optional<TimeShape> FindTimes(const ColumnInfo& column, size_t index, const TextShape& shape,
                                   const catalog::SelectStatistics& statistics);

// Micros since 1970; nullopt: NULL, blank, or no time.
std::optional<int64_t> TimeOf(const Value& cell, DataType type, models::TimeFormat format);

// Whether the rows stand in the order of their times, no two of which are the same: a series, of
// which the next times are asked.
bool IsSeries(size_t index, DataType type, models::TimeFormat format,
              const catalog::SelectStatistics& statistics);

}  // namespace sluice::planner
