#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/letter_case.h"
#include "models/features/cell_format.h"

namespace sluice::models {

// Scans the text of one time, part by part from its front. nullopt: the part is not there; how much
// was read then is not defined. Surrounding blanks are no part of it.
class TimeText {
 public:
  explicit TimeText(std::string_view text) : rest_(TrimBlanks(text)) {}

  bool AtEnd() const { return rest_.empty(); }
  bool Take(char c) {
    if (rest_.empty() || rest_.front() != c) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  void SkipBlanks() { rest_ = TrimBlanks(rest_); }

  // `least` to `most` digits.
  std::optional<int> Number(size_t least, size_t most, size_t* digits = nullptr) {
    size_t count = 0;
    int value = 0;
    while (count < rest_.size() && rest_[count] >= '0' && rest_[count] <= '9' && count <= most) {
      value = count < 9 ? value * 10 + (rest_[count] - '0') : value;
      ++count;
    }
    if (count < least || count > most) {
      return std::nullopt;
    }
    rest_.remove_prefix(count);
    if (digits != nullptr) {
      *digits = count;
    }
    return value;
  }

  // Letters, in lower case.
  std::string Word() {
    std::string word;
    while (!rest_.empty()) {
      const char c = LowerAscii(rest_.front());
      if (c < 'a' || c > 'z') {
        break;
      }
      word += c;
      rest_.remove_prefix(1);
    }
    return word;
  }

  // Four digits, or two for 1969 to 2068.
  std::optional<int> Year() {
    size_t digits = 0;
    const std::optional<int> year = Number(2, 4, &digits);
    if (!year || digits == 3) {
      return std::nullopt;
    }
    return digits == 4 ? *year : *year + (*year >= 69 ? 1900 : 2000);
  }

  // Exactly `count` digits, whatever follows.
  std::optional<int> Digits(size_t count) {
    int value = 0;
    for (size_t i = 0; i < count; ++i) {
      if (i == rest_.size() || rest_[i] < '0' || rest_[i] > '9') {
        return std::nullopt;
      }
      value = value * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }

  // "12:30", "12:30:45.123456" as microseconds; second 60 is a leap second.
  std::optional<int64_t> Clock(size_t fewest_hour_digits) {
    const std::optional<int> hour = Number(fewest_hour_digits, 2);
    std::optional<int> minute;
    std::optional<int> second = 0;
    int64_t fraction = 0;
    if (!hour || !Take(':') || !(minute = Digits(2))) {
      return std::nullopt;
    }
    if (Take(':')) {
      second = Digits(2);
      if (!second) {
        return std::nullopt;
      }
      if (Take('.')) {
        size_t digits = 0;
        for (; !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; ++digits) {
          fraction = digits < 6 ? fraction * 10 + (rest_.front() - '0') : fraction;
          rest_.remove_prefix(1);
        }
        if (digits == 0) {
          return std::nullopt;
        }
        for (; digits < 6; ++digits) {
          fraction *= 10;
        }
      }
    }
    if (*hour >= 24 || *minute >= 60 || *second > 60 || (*second == 60 && fraction != 0)) {
      return std::nullopt;
    }
    return ((*hour * 60 + *minute) * 60 + *second) * kSecond + fraction;
  }

  // "", "Z", "+02", "+0230", "-05:30" as microseconds east of UTC.
  std::optional<int64_t> Zone() {
    constexpr int kMaxHours = 15;  // PostgreSQL's limit
    if (rest_.empty() || Take('Z')) {
      return 0;
    }
    const bool west = rest_.front() == '-';
    if (!Take('-') && !Take('+')) {
      return std::nullopt;
    }
    const std::optional<int> hours = Digits(2);
    Take(':');
    const std::optional<int> minutes = rest_.empty() ? 0 : Digits(2);
    if (!hours || !minutes || *hours > kMaxHours || *minutes >= 60) {
      return std::nullopt;
    }
    return (*hours * 60 + *minutes) * 60 * kSecond * (west ? -1 : 1);
  }

 private:
  static constexpr int64_t kSecond = 1'000'000;

  std::string_view rest_;
};

}  // namespace sluice::models
