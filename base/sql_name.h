#pragma once

#include <string>
#include <string_view>

namespace sluice {

// A column's name as a hint writes it in SQL: in quotes unless both databases read it without them.
std::string SqlName(std::string_view name);
// A text as a hint writes it in SQL: 'it''s'.
std::string SqlText(std::string_view text);

}  // namespace sluice
