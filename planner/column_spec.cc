#include "planner/column_spec.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <optional>

#include "base/letter_case.h"
#include "parser/printer.h"
#include "planner/column_call_internal.h"
#include "planner/column_function.h"
#include "planner/expression_value.h"

namespace sluice::planner {

using parser::Expression;
using Kind = ColumnSpec::Kind;

const ColumnSpec& InnermostColumn(const ColumnSpec& spec) {
  const ColumnSpec* inner = &spec;
  while (!inner->inner.empty()) {
    inner = &inner->inner[0];
  }
  return *inner;
}

Result<ColumnSpec> ReadColumn(const parser::Expression& expression) {
  const Expression& inner = WithoutParentheses(expression);
  ColumnSpec spec;
  spec.span = inner.span;
  switch (inner.kind) {
    case Expression::Kind::kStar:
      spec.kind = Kind::kStar;
      return spec;
    case Expression::Kind::kName:
      spec.name = inner.text;
      return spec;
    case Expression::Kind::kCall: {
      if (const ColumnFunction* function = FindColumnFunction(inner.text)) {
        return ReadColumnCall(inner, *function);
      }
      std::vector<std::string> names;
      for (const ColumnFunction& function : ColumnFunctions()) {
        names.emplace_back(function.name);
      }
      const std::optional<std::string> nearest = NearestName(inner.text, names);
      std::string hint = nearest ? fmt::format("did you mean {}?", *nearest)
                                 : fmt::format("column functions: {}", fmt::join(names, ", "));
      return NotFound(fmt::format("{}: no column function {}", parser::Print(inner), inner.text))
          .SqlState("42883")
          .At(inner.span)
          .Hint(std::move(hint));
    }
    default:
      return SyntaxError(fmt::format("COLUMN takes columns and column functions, not {}",
                                     parser::Print(inner)))
          .At(inner.span)
          .Hint("write a column's name, * or a function such as EMBEDDING(column, 8)");
  }
}

}  // namespace sluice::planner
