#include "server/load/column_guess.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/letter_case.h"

namespace sluice::server {
namespace {

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

// Number of digits of the whole number at the front of `text`, without leading zeros; 0: none
// there.
size_t WholeDigits(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && IsDigit(text[count])) {
    ++count;
  }
  return count > 1 && text.front() == '0' ? 0 : count;
}

// The number in the `count` digits at `at`; -1: they are not all digits.
int Digits(std::string_view text, size_t at, size_t count) {
  int number = 0;
  if (at + count > text.size()) {
    return -1;
  }
  for (const char c : text.substr(at, count)) {
    if (!IsDigit(c)) {
      return -1;
    }
    number = number * 10 + (c - '0');
  }
  return number;
}

// YYYY-MM-DD, and the day exists.
bool IsDate(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') {
    return false;
  }
  const int year = Digits(text, 0, 4);
  const int month = Digits(text, 5, 2);
  const int day = Digits(text, 8, 2);
  constexpr int kDays[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return year >= 1 && month >= 1 && month <= 12 && day >= 1 && day <= kDays[month - 1] &&
         (leap || month != 2 || day < 29);
}

// Z, +HH, +HHMM, +HH:MM, "" (no zone).
bool IsZone(std::string_view text) {
  if (text.empty() || text == "Z") {
    return true;
  }
  if (text.front() != '+' && text.front() != '-') {
    return false;
  }
  const int hours = Digits(text, 1, 2);
  const size_t minutes_at = text.size() == 6 && text[3] == ':' ? 4 : 3;
  const bool short_form = text.size() == 3;
  const int minutes = short_form ? 0 : Digits(text, minutes_at, 2);
  return hours >= 0 && hours <= 15 && minutes >= 0 && minutes < 60 &&
         (short_form || text.size() == minutes_at + 2);
}

// The zone of YYYY-MM-DD[T ]HH:MM[:SS[.ssssss]][zone]; nullopt: the text is not a timestamp.
std::optional<std::string_view> ZoneOfTimestamp(std::string_view text) {
  if (text.size() < 16 || !IsDate(text.substr(0, 10)) || (text[10] != ' ' && text[10] != 'T') ||
      text[13] != ':') {
    return std::nullopt;
  }
  const int hour = Digits(text, 11, 2);
  const int minute = Digits(text, 14, 2);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59) {
    return std::nullopt;
  }
  size_t at = 16;
  if (at < text.size() && text[at] == ':') {
    const int second = Digits(text, at + 1, 2);
    if (second < 0 || second > 59) {
      return std::nullopt;
    }
    at += 3;
    if (at < text.size() && text[at] == '.') {
      const size_t begin = ++at;
      while (at < text.size() && IsDigit(text[at])) {
        ++at;
      }
      if (at == begin || at - begin > 9) {
        return std::nullopt;
      }
    }
  }
  const std::string_view zone = text.substr(at);
  return IsZone(zone) ? std::optional<std::string_view>(zone) : std::nullopt;
}

// -? (digits [. digits*] | . digits) [e [+-] digits]
bool IsNumberText(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  const size_t whole = WholeDigits(text.substr(at));
  if (whole == 0 && (at >= text.size() || text[at] != '.')) {
    return false;
  }
  at += whole;
  size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    ++at;
    while (at < text.size() && IsDigit(text[at])) {
      ++at;
      ++fraction;
    }
  }
  if (whole + fraction == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    at += at < text.size() && (text[at] == '+' || text[at] == '-') ? 1 : 0;
    const size_t begin = at;
    while (at < text.size() && IsDigit(text[at])) {
      ++at;
    }
    if (at == begin) {
      return false;
    }
  }
  return at == text.size();
}

}  // namespace

std::optional<int64_t> ReadInteger(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  const size_t count = WholeDigits(digits);
  int64_t number = 0;
  if (count == 0 || count != digits.size() ||
      std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
    return std::nullopt;
  }
  return number;
}

std::optional<double> ReadNumber(std::string_view text) {
  double number = 0;
  if (!IsNumberText(text) ||
      std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc() ||
      !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<bool> ReadFlag(std::string_view text) {
  if (SameIgnoringCase(text, "true")) {
    return true;
  }
  return SameIgnoringCase(text, "false") ? std::optional<bool>(false) : std::nullopt;
}

bool IsMissingMark(std::string_view text) {
  constexpr std::array<std::string_view, 8> kMarks = {"na",   "n/a", "#n/a", "null",
                                                      "none", "nan", "\\n",  "?"};
  return text.empty() || (text.size() <= 4 &&
                          std::any_of(kMarks.begin(), kMarks.end(), [text](std::string_view mark) {
                            return SameIgnoringCase(text, mark);
                          }));
}

void ColumnGuess::See(std::string_view text) {
  if (!integer_ && !number_ && !flag_ && !date_ && !timestamp_) {
    return;  // text, whatever follows
  }
  if (IsMissingMark(text)) {
    ++marks_;
    return;
  }
  any_ = true;
  integer_ = integer_ && ReadInteger(text).has_value();
  // Whole numbers beyond 64 bits stay text.
  number_ = number_ && (integer_ || (ReadNumber(text).has_value() &&
                                     (text.size() < 19 || text.find_first_of(".eE") != text.npos)));
  flag_ = flag_ && ReadFlag(text).has_value();
  date_ = date_ && IsDate(text);
  if (timestamp_) {
    const auto zone = IsDate(text) ? std::string_view() : ZoneOfTimestamp(text);
    (zone.value_or("").empty() ? without_zone_ : with_zone_) = true;
    // A database would interpret the same text in two ways.
    timestamp_ = zone.has_value() && !(with_zone_ && without_zone_);
  }
}

GuessedType ColumnGuess::type() const {
  if (!any_) {
    return GuessedType::kText;
  }
  if (integer_) {
    return GuessedType::kInteger;
  }
  if (number_) {
    return GuessedType::kNumber;
  }
  if (flag_) {
    return GuessedType::kFlag;
  }
  if (date_) {
    return GuessedType::kDate;
  }
  if (timestamp_) {
    return with_zone_ ? GuessedType::kTimestampWithZone : GuessedType::kTimestamp;
  }
  return GuessedType::kText;
}

ColumnInfo DeclareColumn(const std::string& name, GuessedType type) {
  switch (type) {
    case GuessedType::kInteger:
      return {name, DataType::kInt64, "bigint"};
    case GuessedType::kNumber:
      return {name, DataType::kDouble, "double precision"};
    case GuessedType::kFlag:
      return {name, DataType::kBool, "boolean"};
    case GuessedType::kDate:
      return {name, DataType::kTimestamp, "date"};
    case GuessedType::kTimestamp:
      return {name, DataType::kTimestamp, "timestamp"};
    case GuessedType::kTimestampWithZone:
      return {name, DataType::kTimestamp, "timestamptz"};
    case GuessedType::kText:
      break;
  }
  return {name, DataType::kText, "text"};
}

}  // namespace sluice::server
