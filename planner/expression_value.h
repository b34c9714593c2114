#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "parser/ast.h"

// The values of literals in COLUMN expressions.
namespace sluice::planner {

const parser::Expression& WithoutParentheses(const parser::Expression& expression);

// Text of a name or a string: combiners, types and delimiters may be written either way.
std::optional<std::string> WordOf(const parser::Expression& expression);
// A finite number with any sign.
std::optional<double> NumberOf(const parser::Expression& expression);
std::optional<int64_t> IntegerOf(const parser::Expression& expression);

}  // namespace sluice::planner
