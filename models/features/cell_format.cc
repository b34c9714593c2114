#include "models/features/cell_format.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/letter_case.h"
#include "base/utf8.h"

namespace sluice::models {
namespace {

// A sparse tensor with more columns than this is really a column of long numbers.
constexpr int64_t kLargestIndex = int64_t{1} << 31;

bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

size_t CountDigits(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) {
    ++count;
  }
  return count;
}

// Length of the number at the start of `text`; 0 if there is none.
size_t NumberLength(std::string_view text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const size_t whole = CountDigits(text.substr(at));
  at += whole;
  size_t decimals = 0;
  if (at < text.size() && text[at] == '.') {
    decimals = CountDigits(text.substr(at + 1));
    at += 1 + decimals;
  }
  if (whole + decimals == 0) {
    return 0;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const size_t sign =
        at + 1 < text.size() && (text[at + 1] == '-' || text[at + 1] == '+') ? 1 : 0;
    const size_t exponent = CountDigits(text.substr(at + 1 + sign));
    at += exponent > 0 ? 1 + sign + exponent : 0;
  }
  return at;
}

bool IsPlainNumber(std::string_view text) {
  return !text.empty() && NumberLength(text) == text.size();
}

// The next element before `delimiter` (or before blanks), without blanks around it.
std::string_view TakeElement(std::string_view* rest, char delimiter) {
  const size_t end = delimiter == ' ' ? rest->find_first_of(" \t\n\r\f\v") : rest->find(delimiter);
  const std::string_view element = rest->substr(0, end);
  *rest = end == std::string_view::npos ? std::string_view() : rest->substr(end + 1);
  if (delimiter == ' ') {
    *rest = TrimBlanks(*rest);
  }
  return TrimBlanks(element);
}

void NoteIndex(std::string_view text, CellFormat* format) {
  if (text.empty() || CountDigits(text) != text.size()) {
    format->indices = false;
    return;
  }
  const std::optional<int64_t> index = ParseInteger(text);
  if (!index.has_value() || *index > kLargestIndex) {
    format->indices = false;
    return;
  }
  format->max_index = std::max(format->max_index, *index);
}

bool ReadCsv(std::string_view text, CellFormat* format) {
  std::string_view cell = WithoutBrackets(text);
  const size_t fewest = cell.size() < text.size() ? 1 : 2;  // "{5}" lists one number, "5" is one
  format->kind = CellKind::kCsv;
  format->indices = true;
  while (!cell.empty()) {
    const std::string_view element = TakeElement(&cell, ',');
    if (!IsPlainNumber(element)) {
      return false;
    }
    NoteIndex(element, format);
    ++format->elements;
    cell = TrimBlanks(cell);  // so that "1,2, " ends at its last comma
  }
  return format->elements >= fewest;
}

bool ReadKeyValue(std::string_view cell, char delimiter, CellFormat* format) {
  format->kind = CellKind::kKeyValue;
  format->delimiter = delimiter;
  format->indices = true;
  while (!cell.empty()) {
    const std::string_view element = TakeElement(&cell, delimiter);
    const size_t colon = element.find(':');
    if (colon == std::string_view::npos || !IsPlainNumber(element.substr(colon + 1))) {
      return false;
    }
    NoteIndex(element.substr(0, colon), format);
    if (!format->indices) {
      return false;
    }
    ++format->elements;
  }
  return format->elements >= 1;
}

}  // namespace

bool IsMissingWord(std::string_view text) {
  constexpr std::string_view kWords[] = {"n/a", "#n/a", "na",      "nan",     "null", "none",
                                         "nil", "<na>", "missing", "unknown", "-",    "--",
                                         "---", "?",    ".",       "n.a."};
  constexpr size_t kLongest = 7;
  text = TrimBlanks(text);
  if (text.empty() || text.size() > kLongest) {
    return false;
  }
  const std::string word = LowerAscii(text);
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && IsBlank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

std::string_view WithoutBrackets(std::string_view text) {
  text = TrimBlanks(text);
  const bool bracketed = text.size() >= 2 && ((text.front() == '[' && text.back() == ']') ||
                                              (text.front() == '{' && text.back() == '}'));
  return bracketed ? TrimBlanks(text.substr(1, text.size() - 2)) : text;
}

std::string QuotedCell(std::string_view cell) {
  constexpr size_t kLongest = 60;
  const std::string_view shown = CutToBytes(cell, kLongest);
  return fmt::format("'{}{}'", shown, shown.size() < cell.size() ? "..." : "");
}

std::optional<double> ParseNumber(std::string_view text) {
  text = TrimBlanks(text);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  // Most numbers in text cells are short integers; from_chars for doubles costs four times as much.
  const bool negative = !text.empty() && text.front() == '-';
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (!digits.empty() && digits.size() <= 15 && CountDigits(digits) == digits.size()) {
    int64_t whole = 0;
    for (const char c : digits) {
      whole = whole * 10 + (c - '0');
    }
    return static_cast<double>(negative ? -whole : whole);
  }
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ptr != end || text.empty()) {
    return std::nullopt;
  }
  if (parsed.ec == std::errc::result_out_of_range) {
    // A tiny number has a negative exponent or starts with "0.000...".
    const bool tiny = text.find("e-") != std::string_view::npos ||
                      text.find("E-") != std::string_view::npos || digits.starts_with("0.") ||
                      digits.starts_with(".");
    const double magnitude = tiny ? 0.0 : std::numeric_limits<double>::infinity();
    return negative ? -magnitude : magnitude;
  }
  return parsed.ec == std::errc() ? std::optional<double>(value) : std::nullopt;
}

std::optional<int64_t> ParseInteger(std::string_view text) {
  text = TrimBlanks(text);
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') {
    text.remove_prefix(1);
  }
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParseCategoryNumber(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('-')) {
    digits.remove_prefix(1);
  }
  const bool begins = !digits.empty() && IsDigit(digits.front());
  const bool padded = begins && digits.size() > 1 && digits[0] == '0' && IsDigit(digits[1]);
  if (!begins || padded || !IsDigit(digits.back())) {
    return std::nullopt;
  }
  const std::optional<double> number = ParseNumber(text);
  return number.has_value() && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<bool> ParseFlag(std::string_view text) {
  if (SameIgnoringCase(text, "t") || SameIgnoringCase(text, "true")) {
    return true;
  }
  return SameIgnoringCase(text, "f") || SameIgnoringCase(text, "false") ? std::optional<bool>(false)
                                                                        : std::nullopt;
}

CellFormat InferFormat(std::string_view cell) {
  const std::string_view text = TrimBlanks(cell);
  CellFormat format;
  if (text.empty()) {
    format.kind = CellKind::kBlank;
    return format;
  }
  if (ParseNumber(text).has_value()) {
    format.kind = CellKind::kNumber;
    format.indices = true;
    NoteIndex(text, &format);
    return format;
  }
  if (ParseTimestamp(text).has_value()) {
    format.kind = CellKind::kTimestamp;
    return format;
  }
  if (text.find(':') != std::string_view::npos) {
    for (const char delimiter : {' ', ','}) {
      CellFormat key_value;
      if (ReadKeyValue(text, delimiter, &key_value)) {
        return key_value;
      }
    }
  }
  CellFormat csv;
  return ReadCsv(text, &csv) ? csv : format;
}

void FormatVote::Add(std::string_view cell) {
  const CellFormat format = InferFormat(cell);
  if (format.kind == CellKind::kBlank) {
    return;
  }
  if (IsMissingWord(cell)) {
    any_missing_word_ = true;
    return;
  }
  ++cells_;
  indices_ = indices_ && format.indices;
  max_index_ = std::max(max_index_, format.max_index);
  size_t elements = format.elements;
  switch (format.kind) {
    case CellKind::kNumber:
      ++numbers_;
      elements = 1;
      break;
    case CellKind::kTimestamp:
      ++timestamps_;
      break;
    case CellKind::kCsv:
      ++csvs_;
      break;
    case CellKind::kKeyValue:
      ++key_values_;
      // A single pair shows no delimiter.
      by_blanks_ = by_blanks_ || (elements > 1 && format.delimiter == ' ');
      by_commas_ = by_commas_ || (elements > 1 && format.delimiter == ',');
      break;
    case CellKind::kBlank:
    case CellKind::kPlain:
      break;
  }
  fewest_elements_ = std::min(fewest_elements_, elements);
  most_elements_ = std::max(most_elements_, elements);
}

ColumnFormat FormatVote::Decide() const {
  ColumnFormat format;
  if (cells_ == 0) {
    return format;
  }
  format.max_index = indices_ ? max_index_ : -1;
  if (numbers_ == cells_) {
    format.kind = ColumnFormatKind::kNumber;
    return format;
  }
  if (timestamps_ == cells_) {
    format.kind = ColumnFormatKind::kTimestamp;
    return format;
  }
  if (any_missing_word_) {
    return format;  // in other columns it is a value
  }
  if (key_values_ == cells_ && by_blanks_ != by_commas_) {
    format.kind = ColumnFormatKind::kKeyValue;
    format.delimiter = by_commas_ ? "," : "";
    format.key_value_delimiter = ":";
    format.width = max_index_ + 1;
    return format;
  }
  // A single number is a list of one if other cells have more.
  if (csvs_ > 0 && csvs_ + numbers_ == cells_) {
    if (fewest_elements_ == most_elements_) {
      format.kind = ColumnFormatKind::kDenseCsv;
      format.delimiter = ",";
      format.width = static_cast<int64_t>(most_elements_);
      format.integers = indices_;
    } else if (indices_) {
      format.kind = ColumnFormatKind::kSparseCsv;
      format.delimiter = ",";
      format.width = max_index_ + 1;
    }
  }
  return format;
}

}  // namespace sluice::models
