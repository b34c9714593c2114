#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/value.h"
#include "catalog/data_source.h"
#include "models/features/time_cell.h"

// Series: rows that are ordered by their times, whose next values are to be predicted.
namespace sluice::planner {

// What tells the time of a series' rows.
struct Series {
  // One column of times or of row numbers, or columns of whole numbers, the coarsest first: year,
  // month, day. Empty: the rows are no series.
  std::vector<std::string> columns;
  std::string order;  // what the rows are ordered by, in words
  bool empty() const { return columns.empty(); }
};

// Whether the rows are ordered by a column of times, all of which differ.
bool IsSeries(size_t index, DataType type, models::TimeFormat format,
              const catalog::SelectStatistics& statistics);

// A series by the columns called year, month, day, ... If rows have the same time by them, a row
// number tells them apart where there is one. One with gaps says that the rows are a sample of a
// series, whose other rows lie between them: then it is none. `usable`: per column.
Series FindCalendar(const Schema& schema, const std::vector<bool>& usable,
                    const catalog::SelectStatistics& statistics);

}  // namespace sluice::planner
