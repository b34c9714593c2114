#include "planner/expression_value.h"

#include <charconv>
#include <cmath>

#include "planner/rounded_number.h"

namespace sluice::planner {

using parser::Expression;

const Expression& WithoutParentheses(const Expression& expression) {
  const Expression* inner = &expression;
  while (inner->kind == Expression::Kind::kParen && inner->args.size() == 1) {
    inner = &inner->args[0];
  }
  return *inner;
}

// Text of a name or a string: combiners, types and delimiters may be written either way.
std::optional<std::string> WordOf(const Expression& expression) {
  const Expression& inner = WithoutParentheses(expression);
  if (inner.kind == Expression::Kind::kName || inner.kind == Expression::Kind::kString) {
    return inner.text;
  }
  return std::nullopt;
}

std::optional<double> NumberOf(const Expression& expression) {
  const Expression& inner = WithoutParentheses(expression);
  if (inner.kind == Expression::Kind::kUnary && inner.args.size() == 1 &&
      (inner.text == "-" || inner.text == "+")) {
    const std::optional<double> number = NumberOf(inner.args[0]);
    return number && inner.text == "-" ? std::optional<double>(-*number) : number;
  }
  if (inner.kind != Expression::Kind::kNumber) {
    return std::nullopt;
  }
  double value = 0;
  const char* end = inner.text.data() + inner.text.size();
  const auto [parsed_to, error] = std::from_chars(inner.text.data(), end, value);
  if (error != std::errc() || parsed_to != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> IntegerOf(const Expression& expression) {
  const std::optional<double> number = NumberOf(expression);
  if (!number || *number != std::floor(*number) || std::abs(*number) > kExactIntegers) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

}  // namespace sluice::planner
