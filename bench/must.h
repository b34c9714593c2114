#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/status.h"

namespace sluice {

// Returns the value, or ends the program with the error: a benchmark must not print a figure after
// a failure.
template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(result);
}
inline void Must(const Status& status) {
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    std::exit(1);
  }
}

}  // namespace sluice
