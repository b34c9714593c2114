#include <algorithm>
#include <string>

#include "base/letter_case.h"
#include "models/features/cell_format.h"

namespace sluice::models {
namespace {

constexpr size_t kLongestUnit = 12;  // bytes: "kilometres"
constexpr size_t kCurrencyCode = 3;

bool IsAsciiLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool IsNumberDigit(char c) {
  return c >= '0' && c <= '9';
}

// "$", "EUR ": before a number, letters are only accepted as a currency's code. "A12" is a name.
bool IsPrefix(std::string_view text) {
  bool letters = false;
  for (const char c : text) {
    letters = letters || IsAsciiLetter(c);
  }
  if (!letters) {
    return text.find_first_of("#'\"/\\-_.,:;()[]{}@") == std::string_view::npos;
  }
  const std::string_view code = TrimBlanks(text);
  return code.size() == kCurrencyCode && text.size() > code.size() &&
         code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos;
}

bool IsSuffix(std::string_view text) {
  return text.find_first_of("#'\"\\-_.,:;()[]{}@") == std::string_view::npos &&
         TrimBlanks(text).find(' ') == std::string_view::npos;
}

}  // namespace

std::optional<UnitNumber> ParseUnitNumber(std::string_view text) {
  text = TrimBlanks(text);
  // "-$5.00", and "($5.00)" in accounts: the sign of what follows, which then has none of its own.
  const bool enclosed = text.size() > 2 && text.front() == '(' && text.back() == ')';
  const bool negative = enclosed || (text.size() > 1 && text.front() == '-' &&
                                     !IsNumberDigit(text[1]) && text[1] != '.');
  if (negative) {
    text = TrimBlanks(text.substr(1, text.size() - (enclosed ? 2 : 1)));
    if (text.find_first_of("+-") != std::string_view::npos) {
      return std::nullopt;
    }
  }
  size_t begin = 0;
  while (begin < text.size() && !IsNumberDigit(text[begin]) && text[begin] != '.' &&
         text[begin] != '-' && text[begin] != '+') {
    ++begin;
  }
  size_t end = begin;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) {
    ++end;
  }
  std::string digits(text.substr(begin, end - begin));
  size_t group = 0;  // digits since the last comma
  bool commas = false;
  bool point = false;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (IsNumberDigit(c)) {
      ++group;
    } else if (c == ',' && !point && group >= 1 && group <= 3 && (!commas || group == 3)) {
      commas = true;
      group = 0;
      continue;
    } else if (c == '.' && !point && (!commas || group == 3)) {
      point = true;
    } else {
      break;
    }
    digits += c;
  }
  if (commas && !point && group != 3) {
    return std::nullopt;
  }
  const std::string_view prefix = text.substr(0, begin);
  const std::string_view suffix = text.substr(end);
  const std::optional<double> number = ParseNumber(digits);
  if (!number || (prefix.empty() && suffix.empty()) || prefix.size() > kLongestUnit ||
      suffix.size() > kLongestUnit || !IsPrefix(prefix) || !IsSuffix(suffix)) {
    return std::nullopt;
  }
  UnitNumber found;
  found.number = negative ? -*number : *number;
  for (const char c : std::string(TrimBlanks(prefix)) + "#" + std::string(TrimBlanks(suffix))) {
    found.unit += LowerAscii(c);
  }
  return found;
}

std::optional<double> ParseGroupedNumber(std::string_view text, char group, char point) {
  constexpr size_t kGroup = 3;
  text = TrimBlanks(text);
  std::string digits;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    digits += text.front() == '-' ? "-" : "";
    text.remove_prefix(1);
  }
  const size_t end = std::min(text.find(point), text.size());
  size_t run = 0;
  bool grouped = false;
  for (const char c : text.substr(0, end)) {
    if (IsNumberDigit(c)) {
      ++run;
      digits += c;
    } else if (c == group && run > 0 && (grouped ? run == kGroup : run <= kGroup)) {
      grouped = true;
      run = 0;
    } else {
      return std::nullopt;
    }
  }
  if (run == 0 || (grouped && run != kGroup)) {
    return std::nullopt;
  }
  if (end < text.size()) {
    const std::string_view decimals = text.substr(end + 1);
    if (decimals.empty() || !std::all_of(decimals.begin(), decimals.end(), IsNumberDigit)) {
      return std::nullopt;
    }
    digits += "." + std::string(decimals);
  }
  return ParseNumber(digits);
}

}  // namespace sluice::models
