#pragma once

#include "base/status.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

// Where an error of the statement points to.
inline Span SpanOf(const plan::Place& place) {
  return {place.begin(), place.end()};
}

}  // namespace sluice::executor
