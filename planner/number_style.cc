#include "planner/number_style.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "models/features/cell_format.h"

namespace sluice::planner {
namespace {

// Fewer cells with a comma may be lists whose second number only looks like decimals.
constexpr size_t kMinCells = 40;

// What the cells of a column have in common if all are numbers with these separators.
struct Evidence {
  bool all = true;
  size_t with_group = 0, with_point = 0, with_both = 0, with_neither = 0;
  bool leading_zero = false;   // of decimals, "1,05", or of a group of three, "1.050"
  bool trailing_zero = false;  // of decimals: "1,50"
  size_t fewest_decimals = SIZE_MAX, most_decimals = 0;
  std::set<char> last_digits;  // of decimals
};

Evidence Look(const std::vector<std::string>& cells, char group, char point) {
  Evidence evidence;
  for (const std::string& cell : cells) {
    const std::string_view text = models::TrimBlanks(cell);
    if (text.empty() || models::IsMissingWord(text)) {
      continue;
    }
    if (!models::ParseGroupedNumber(text, group, point)) {
      evidence.all = false;
      return evidence;
    }
    const size_t first_group = text.find(group);
    const size_t at = text.find(point);
    const bool grouped = first_group != std::string_view::npos;
    const bool pointed = at != std::string_view::npos;
    evidence.with_group += grouped ? 1 : 0;
    evidence.with_point += pointed ? 1 : 0;
    evidence.with_both += grouped && pointed ? 1 : 0;
    evidence.with_neither += grouped || pointed ? 0 : 1;
    evidence.leading_zero = evidence.leading_zero || (grouped && text[first_group + 1] == '0');
    if (pointed) {
      const std::string_view decimals = text.substr(at + 1);
      evidence.leading_zero =
          evidence.leading_zero || (decimals.size() > 1 && decimals.front() == '0');
      evidence.trailing_zero = evidence.trailing_zero || decimals.back() == '0';
      evidence.fewest_decimals = std::min(evidence.fewest_decimals, decimals.size());
      evidence.most_decimals = std::max(evidence.most_decimals, decimals.size());
      evidence.last_digits.insert(decimals.back());
    }
  }
  return evidence;
}

}  // namespace

std::string ThousandsOf(const std::vector<std::string>& cells) {
  const Evidence english = Look(cells, ',', '.');
  if (english.all && english.with_group > 0 &&
      (english.with_both > 0 || english.leading_zero ||
       (english.with_neither > 0 && english.with_group >= kMinCells))) {
    return ",";
  }
  const Evidence comma = Look(cells, '.', ',');
  if (!comma.all || comma.with_point == 0) {
    return "";
  }
  const bool many = comma.with_point >= kMinCells;
  // Decimals are written up to the last nonzero digit, or all to the same length; lists are
  // neither.
  const bool shortest = many && comma.with_neither > 0 && !comma.trailing_zero;
  constexpr size_t kEveryDigit = 10;
  const bool one_digit =
      many && comma.most_decimals == 1 && comma.last_digits.size() == kEveryDigit;
  return comma.with_both > 0 || comma.leading_zero || shortest || one_digit ? "." : "";
}

}  // namespace sluice::planner
