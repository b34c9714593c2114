#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice {

// An error about a cell carries, as its detail, a condition in SQL that holds for all rows with
// such a cell. Where the SELECT is known, they are counted.
std::string RowsWhere(std::string_view condition);
// The rows of a cell of text; "" if it is too long to be found by.
std::string RowsWithText(std::string_view column, std::string_view cell);

// The condition of an error made so; nullopt for others.
std::optional<std::string> ConditionOfRows(const Status& status);

}  // namespace sluice
