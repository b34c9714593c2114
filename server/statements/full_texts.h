#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "base/clock.h"

namespace sluice::server {

// How much of the audit the texts of each role's statements may fill, so that nobody fills its disk
// with long ones: after 4 MiB within a minute, texts are cut until the minute is over. Not
// thread-safe.
class FullTexts {
 public:
  static constexpr size_t kBytesAMinute = size_t{4} << 20;

  // Whether a text of so many bytes may be on record in full; then they are counted.
  bool Take(const std::string& role, size_t bytes, TimePoint now) {
    if (now - begun_ >= std::chrono::minutes(1)) {
      begun_ = now;
      taken_.clear();
    }
    size_t& taken = taken_[role];
    if (bytes > kBytesAMinute - taken) {
      return false;
    }
    taken += bytes;
    return true;
  }

 private:
  TimePoint begun_{};
  std::map<std::string, size_t> taken_;  // in the minute that has begun
};

}  // namespace sluice::server
