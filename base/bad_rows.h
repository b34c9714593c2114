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

// A hint: only the rows for which the condition holds. The condition may name columns that the
// SELECT computes, so it stands around the SELECT, which is filled in where it is known.
std::string KeepRowsWhere(std::string_view condition);
// The same for rows without that text; without a condition if the text is too long for one.
std::string KeepRowsWithoutText(std::string_view column, std::string_view cell);
// The hint with the SELECT in its place, unless that is long.
std::string WithSelect(std::string hint, std::string_view select);

// The condition of an error made so; nullopt for others.
std::optional<std::string> ConditionOfRows(const Status& status);

}  // namespace sluice
