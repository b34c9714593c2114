#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <string_view>

#include "base/letter_case.h"
#include "planner/derive_internal.h"
#include "planner/free_text.h"

// Finds columns that say nothing about future rows.
namespace sluice::planner {
namespace {

// With fewer rows, row numbers cannot be told from measurements.
constexpr int64_t kMinNumberedRows = 50;
constexpr int64_t kMinIdentifierRows = 100;
// Estimated numbers of distinct values are a little too low.
constexpr double kUniqueValues = 0.95;
// A random sample of distinct integers never covers this share of its range; row numbers do, even
// if most of the rows were deleted.
constexpr double kMinOfRange = 0.2;
constexpr double kMostlyDifferent = 0.5;
constexpr double kMinRowsPerId = 2;
constexpr double kMaxCategories = 50;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isxdigit(c) != 0; });
}

bool IsUuid(std::string_view text) {
  text = models::TrimBlanks(text);
  if (text.size() == 38 && text.front() == '{' && text.back() == '}') {
    text = text.substr(1, 36);
  }
  if (text.size() == 32) {
    return IsHex(text);
  }
  return text.size() == 36 && text[8] == '-' && text[13] == '-' && text[18] == '-' &&
         text[23] == '-' && IsHex(text.substr(0, 8)) && IsHex(text.substr(9, 4)) &&
         IsHex(text.substr(14, 4)) && IsHex(text.substr(19, 4)) && IsHex(text.substr(24));
}

bool IsEmail(std::string_view text) {
  text = models::TrimBlanks(text);
  const size_t at = text.find('@');
  const size_t dot = text.rfind('.');
  return at != std::string_view::npos && at > 0 && at == text.rfind('@') &&
         dot != std::string_view::npos && dot > at + 1 && dot + 1 < text.size() &&
         text.find_first_of(" \t\n,;") == std::string_view::npos;
}

bool IsObject(std::string_view text) {
  text = models::TrimBlanks(text);
  return text.size() >= 2 && text.front() == '{' && text.back() == '}' &&
         (text.find("\":") != std::string_view::npos ||
          text.find("\" :") != std::string_view::npos ||
          models::TrimBlanks(text.substr(1, text.size() - 2)).empty());
}

// "[1, 2]", and "{1,2}" as PostgreSQL writes an array.
bool IsListOfNumbers(std::string_view text) {
  text = models::TrimBlanks(text);
  if (text.size() < 2 || !((text.front() == '[' && text.back() == ']') ||
                           (text.front() == '{' && text.back() == '}'))) {
    return false;
  }
  return text.find_first_not_of("0123456789+-.,eE \t\n", 1) == text.size() - 1;
}

// A single word with digits in it: A-10027, 4711/2.
bool IsCode(std::string_view text) {
  text = models::TrimBlanks(text);
  return text.find_first_of(" \t\n") == std::string_view::npos &&
         text.find_first_of("0123456789") != std::string_view::npos;
}

template <typename Is>
bool AllAre(const std::vector<std::string>& cells, Is is) {
  bool any = false;
  for (const std::string& cell : cells) {
    if (!models::TrimBlanks(cell).empty()) {
      any = true;
      if (!is(cell)) {
        return false;
      }
    }
  }
  return any;
}

double RowsWithValue(const ColumnFacts& column, const DeriveInput& input) {
  return static_cast<double>(input.statistics.rows) *
         std::max(0.0, 1 - column.statistics.null_fraction);
}

bool IsUnique(const ColumnFacts& column, const DeriveInput& input) {
  const double rows = RowsWithValue(column, input);
  return rows > 0 &&
         column.statistics.distinct >= (column.statistics.exact ? 1 : kUniqueValues) * rows;
}

WhyLeftOut OfText(const ColumnFacts& column, const DeriveInput& input) {
  const std::vector<std::string> cells = TextsOf(input.statistics.sample, column.index);
  const double rows = RowsWithValue(column, input);
  const double distinct = column.statistics.distinct;
  const bool many = rows >= static_cast<double>(kMinNumberedRows);
  if (AllAre(cells, IsObject)) {
    return {"JSON: select its parts, each a column of its own", false};
  }
  const bool plain = column.shape.format.kind == models::ColumnFormatKind::kText;
  if (plain && AllAre(cells, IsListOfNumbers) && !AllAre(cells, IsUuid)) {
    return {"lists of numbers, not all of one length: select their parts, each a column of its own",
            false};
  }
  if (many && distinct >= kMostlyDifferent * rows) {
    if (AllAre(cells, IsUuid)) {
      return {"UUIDs", true};
    }
    if (AllAre(cells, IsEmail)) {
      return {"e-mail addresses", true};
    }
  }
  if (column.several_units && distinct > kMaxCategories) {
    return {"numbers in several units: convert them to one in the SELECT", false};
  }
  if (!column.unit.empty()) {
    return {};
  }
  if (plain && rows >= static_cast<double>(kMinIdentifierRows) &&
      distinct >= kUniqueValues * rows &&
      (AllAre(cells, IsCode) ||
       !IsFreeText(column.shape, column.statistics, static_cast<double>(input.statistics.rows))) &&
      !HasRepeatedPieces(cells)) {
    return {"a different value in nearly every row", true};
  }
  return {};
}

WhyLeftOut OfInteger(const ColumnFacts& column, const DeriveInput& input) {
  const catalog::ColumnStatistics& statistics = column.statistics;
  const double rows = RowsWithValue(column, input);
  if (input.statistics.rows < kMinNumberedRows || !statistics.has_range) {
    return {};
  }
  const bool named = NamesAnIdentifier(column.name());
  if (IsUnique(column, input)) {
    const double range = statistics.max - statistics.min + 1;
    if (statistics.null_fraction == 0 && rows >= kMinOfRange * range) {
      return {"a row number", true};
    }
    if (named) {
      return {"an identifier: every row has another", true};
    }
  } else if (named && rows < kMinRowsPerId * statistics.distinct) {
    return {"an identifier: hardly any occurs twice", true};
  }
  return {};
}

}  // namespace

bool NamesAnIdentifier(std::string_view name) {
  const std::string lower = LowerAscii(name);
  for (const std::string_view word : {"id", "uuid", "guid", "rowid", "oid"}) {
    if (lower == word) {
      return true;
    }
  }
  return lower.ends_with("_id") || lower.ends_with(" id") || lower.ends_with("-id") ||
         (name.size() > 2 && name.ends_with("Id") &&
          std::islower(static_cast<unsigned char>(name[name.size() - 3])) != 0) ||
         (name.size() > 2 && name.ends_with("ID") &&
          std::islower(static_cast<unsigned char>(name[name.size() - 3])) != 0);
}

bool NamesACategory(std::string_view name) {
  static constexpr std::string_view kNouns[] = {
      "code",    "cd",       "zip",      "zipcode",    "postcode",  "user",
      "item",    "customer", "client",   "product",    "store",     "shop",
      "movie",   "seller",   "merchant", "vendor",     "supplier",  "driver",
      "station", "sku",      "dept",     "department", "warehouse", "device"};
  if (NamesAnIdentifier(name)) {
    return true;
  }
  const std::string lower = LowerAscii(name);
  const size_t last = lower.find_last_of("_ -.");
  const std::string noun = last == std::string::npos ? lower : lower.substr(last + 1);
  return std::find(std::begin(kNouns), std::end(kNouns), noun) != std::end(kNouns);
}

WhyLeftOut ReasonToLeaveOut(const ColumnFacts& column, const DeriveInput& input) {
  const catalog::ColumnStatistics& statistics = column.statistics;
  if (column.info.type == DataType::kBytes) {
    const std::string& type = column.info.database_type;  // "": an expression of SQLite
    return {fmt::format("{}{}bytes are no feature", type, type.empty() ? "" : ": "), false};
  }
  if (input.statistics.rows == 0) {
    return {};
  }
  if (statistics.exact && statistics.null_fraction >= 1) {
    return {"NULL in every row", false};
  }
  if (statistics.exact && statistics.distinct == 1 && statistics.null_fraction == 0 &&
      input.statistics.rows > 1) {
    return {statistics.common_values.empty() || statistics.common_values[0].first.size() > 40
                ? "the same in every row"
                : fmt::format("'{}' in every row", statistics.common_values[0].first),
            true};
  }
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (statistics.has_range && std::max(-statistics.min, statistics.max) > kLargest) {
    return {fmt::format("numbers beyond {:.2g}, which models cannot use: divide them in the SELECT",
                        kLargest),
            false};
  }
  const bool time = column.time.has_value();
  const bool whole_number = column.info.type == DataType::kInt64;
  const bool words = column.is_text() && IsFreeText(column.shape, statistics,
                                                    static_cast<double>(input.statistics.rows));
  if (input.keys[column.index] != catalog::ColumnKey::kNone && IsUnique(column, input) && !time &&
      !words && column.info.type != DataType::kDouble) {
    return {input.keys[column.index] == catalog::ColumnKey::kPrimary ? "the primary key"
                                                                     : "unique: a key",
            true};
  }
  if (time) {
    return {};
  }
  if (column.is_text()) {
    return OfText(column, input);
  }
  return whole_number ? OfInteger(column, input) : WhyLeftOut();
}

}  // namespace sluice::planner
