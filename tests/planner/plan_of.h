#pragma once

#include <string>
#include <type_traits>
#include <variant>

#include "fake_source.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"

namespace sluice::planner {

// The plan of one extended statement. Errors of the parser, too.
inline Result<plan::Plan> PlanOf(const std::string& text, FakeSource& source,
                                 const Options& options = {}) {
  const auto parsed = parser::Parse(text);
  if (!parsed.ok()) {
    return parsed.status();
  }
  return std::visit(
      [&](const auto& node) -> Result<plan::Plan> {
        if constexpr (std::is_constructible_v<parser::ExtendedStatement, decltype(node)>) {
          return MakePlan(node, source, source.models(), options);
        } else {
          return Internal("not an extended statement");
        }
      },
      parsed->at(0));
}

}  // namespace sluice::planner
