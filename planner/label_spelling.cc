#include <fmt/core.h>

#include <set>
#include <string_view>

#include "base/sql_name.h"
#include "models/features/cell_format.h"
#include "planner/derive_internal.h"
#include "planner/number_style.h"

namespace sluice::planner {
namespace {

// What surrounds the number in a cell, as written: " kWh" in "250.8 kWh".
struct Around {
  std::string_view before, behind;
};
Around AroundNumber(std::string_view cell) {
  constexpr std::string_view kOfNumber = "+-.0123456789";
  const size_t begin = cell.find_first_of(kOfNumber);
  const size_t last = cell.find_last_of("0123456789");
  return {cell.substr(0, begin), cell.substr(last + 1)};
}

// The unit that all cells share; "": none, or several.
std::string UnitOf(const std::vector<std::string>& cells) {
  std::string unit;
  for (const std::string& cell : cells) {
    const std::optional<models::UnitNumber> found = models::ParseUnitNumber(cell);
    if (!found || (!unit.empty() && found->unit != unit)) {
      return "";
    }
    unit = found->unit;
  }
  return unit;
}

}  // namespace

Status CheckLabelSpelling(const LabelInput& input) {
  const std::string name = SqlName(input.column.name);
  const auto refuse = [&](std::string_view how, const std::string& select) {
    return InvalidArgument(fmt::format("label '{}' is text whose numbers are written as {}",
                                       input.column.name, how))
        .At(input.span)
        .Hint(fmt::format("select CAST({} AS double precision)", select));
  };
  const std::string thousands = ThousandsOf(input.sample);
  if (!thousands.empty()) {
    return thousands == "."
               ? refuse("1.234,5", fmt::format("replace(replace({}, '.', ''), ',', '.')", name))
               : refuse("1,234.5", fmt::format("replace({}, ',', '')", name));
  }
  const std::string unit = UnitOf(input.sample);
  if (unit.empty() || unit == models::kThousandsUnit) {
    return OkStatus();
  }
  // Every spelling of the unit goes, and so do commas between thousands.
  const auto longer = [](std::string_view a, std::string_view b) {
    return a.size() != b.size() ? a.size() > b.size() : a < b;
  };
  std::set<std::string_view, decltype(longer)> spellings(longer);
  for (const std::string& cell : input.sample) {
    const Around around = AroundNumber(cell);
    spellings.insert({around.before, around.behind});
    if (cell.find(',') != std::string::npos) {
      spellings.insert(",");
    }
  }
  spellings.erase("");
  std::string number = name;
  for (const std::string_view spelling : spellings) {
    number = fmt::format("replace({}, {}, '')", number, SqlText(spelling));
  }
  return refuse(SqlText(input.sample.front()), number);
}

}  // namespace sluice::planner
