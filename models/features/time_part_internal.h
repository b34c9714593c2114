#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"

namespace sluice::models {

// A part of a time of day or of a date, which repeats: a category with few values.
enum class TimePart { kMinute, kHour, kWeekday, kDay, kMonth, kQuarter };

Result<TimePart> FindTimePart(std::string_view name);
// How many values it has.
uint32_t TimePartValues(TimePart part);
// From 0; Monday is 0. None for PostgreSQL's infinities and times close to them.
std::optional<uint32_t> PartOfTime(TimePart part, int64_t micros);

}  // namespace sluice::models
