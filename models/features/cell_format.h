#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The formats of texts in a column. Pure functions: the planner applies them to a sample.
namespace sluice::models {

// A number as written in a cell: surrounding blanks, a sign, decimals, an exponent, "nan", "inf"
// are allowed. nullopt for anything else (including the empty text).
std::optional<double> ParseNumber(std::string_view text);
std::optional<int64_t> ParseInteger(std::string_view text);
// ISO 8601 "2014-04-01", "2014-04-01 12:30[:45[.123456]]" with ' ' or 'T' between, and an optional
// zone (Z, +02, -05:30); micros since 1970-01-01 UTC.
std::optional<int64_t> ParseTimestamp(std::string_view text);
std::string_view TrimBlanks(std::string_view text);
// The elements of "[1, 2]" (JSON) and "{1,2}" (an array of PostgreSQL's); other texts as they are.
std::string_view WithoutBrackets(std::string_view text);
// A cell in quotes, for a message; only the beginning of a long one.
std::string QuotedCell(std::string_view cell);
// What people and programs write for "no value" in a column of numbers or times: "N/A", "null",
// "unknown", "-", "?".
bool IsMissingWord(std::string_view text);
// The number that a text means as a category: "1", "1.50" and "1e3" are numbers; "007", "+1" and "
// 1" are distinct names, and so are "nan" and "inf".
std::optional<double> ParseCategoryNumber(std::string_view text);
// "t", "true", "f", "false", in upper or lower case.
std::optional<bool> ParseFlag(std::string_view text);

// "$1,234.50", "12 kg", "3.5%": a number with other text around it, and commas between thousands;
// below 0 as "-$5", "$-5" or "($5)".
// `unit`: that text, in lower case and without blanks, with # in the number's place: "$#", "#kg".
struct UnitNumber {
  double number = 0;
  std::string unit;
};
std::optional<UnitNumber> ParseUnitNumber(std::string_view text);
// The unit of bare numbers with commas between their thousands: "1,234.5".
inline constexpr std::string_view kThousandsUnit = "#";

// A number with `group` between its thousands, if separated, and `point` before its decimals:
// "1.234,5" with '.' and ','. nullopt for anything else, including exponents.
std::optional<double> ParseGroupedNumber(std::string_view text, char group, char point);

enum class CellKind {
  kBlank,   // empty, or blanks only
  kPlain,   // any other text
  kNumber,  // "100", "1e5"
  kTimestamp,
  kCsv,       // "1,2,3": at least two numbers, or any in brackets
  kKeyValue,  // "1:0.5 3:2" or "1:0.5,3:2": index:number pairs
};

struct CellFormat {
  CellKind kind = CellKind::kPlain;
  size_t elements = 0;     // kCsv: numbers; kKeyValue: pairs
  bool indices = false;    // kNumber, kCsv, kKeyValue: all (keys) are integers >= 0
  int64_t max_index = -1;  // the largest of them, if `indices`
  char delimiter = ',';    // kKeyValue: ' ' or ','
};

CellFormat InferFormat(std::string_view cell);

enum class ColumnFormatKind {
  kText,
  kNumber,
  kTimestamp,
  kDenseCsv,   // every cell has `width` numbers
  kSparseCsv,  // cells list indices; width = max index + 1
  kKeyValue,   // width = max index + 1
};

struct ColumnFormat {
  ColumnFormatKind kind = ColumnFormatKind::kText;
  std::string delimiter;            // "," or "" for blanks
  std::string key_value_delimiter;  // ":" for kKeyValue
  int64_t width = 0;
  bool integers = false;  // kDenseCsv: every number is an integer >= 0
  int64_t max_index = -1;
};

// Finds the format of a column from its cells. One cell that does not fit a tensor makes the column
// text, because a format that only most rows have would stop the training at the first other row.
// Blank cells do not vote, nor do the words for none in a column of numbers or times. A column
// without any cell of two pairs is text, not key:value (it may be times such as 12:30).
class FormatVote {
 public:
  void Add(std::string_view cell);
  ColumnFormat Decide() const;
  size_t cells() const { return cells_; }  // that voted

 private:
  size_t cells_ = 0, numbers_ = 0, timestamps_ = 0, csvs_ = 0, key_values_ = 0;
  size_t fewest_elements_ = SIZE_MAX, most_elements_ = 0;
  bool indices_ = true;
  int64_t max_index_ = -1;
  bool by_blanks_ = false, by_commas_ = false;
  bool any_missing_word_ = false;
};

}  // namespace sluice::models
