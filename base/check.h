#pragma once

#include <string>

namespace sluice {

// Prints file, line, condition and message to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace sluice

// For invariants of our own code only; a user's mistake is a Status.
#define SLUICE_CHECK(condition, message)                                \
  do {                                                                  \
    if (!(condition)) [[unlikely]] {                                    \
      ::sluice::CheckFailed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                   \
  } while (false)
