#pragma once

#include <string>

#include "fake_source.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "tests/support/extended_of.h"

namespace sluice::planner {

// The plan of one extended statement. Errors of the parser, too.
inline Result<plan::Plan> PlanOf(const std::string& text, FakeSource& source,
                                 const Options& options = {}) {
  const auto parsed = parser::Parse(text);
  if (!parsed.ok()) {
    return parsed.status();
  }
  const auto extended = ExtendedOf(parsed->at(0));
  if (!extended) {
    return Internal("not an extended statement");
  }
  return MakePlan(*extended, source, source.models(), options);
}

}  // namespace sluice::planner
