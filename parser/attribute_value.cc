#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "parser/expression.h"
#include "parser/keywords.h"
#include "parser/parser.h"

namespace sluice::parser {
namespace {

using Kind = Expression::Kind;

Result<AttributeValue> Fold(const Expression& expression);

Status BadNumber(std::string message, Span span) {
  return SyntaxError(std::move(message)).SqlState("22003").At(span);
}

Result<AttributeValue> ReadNumber(std::string_view digits, bool negative, Span span) {
  AttributeValue number;
  number.span = span;
  std::string text = negative ? "-" : "";
  text += digits;
  const char* end = text.data() + text.size();
  if (text.find_first_of(".eE") == std::string::npos) {
    int64_t integer = 0;
    if (std::from_chars(text.data(), end, integer).ec != std::errc()) {
      return BadNumber(fmt::format("the integer {:.40} is out of range", text), span)
          .Hint("integers end at 2^63 - 1; write a decimal point for a floating-point number");
    }
    number.value = integer;
    return number;
  }
  double real = 0;
  if (std::from_chars(text.data(), end, real).ec != std::errc()) {
    return BadNumber(fmt::format("the number {:.40} is out of range", text), span)
        .Hint("a double holds 1e-307 to 1e308");
  }
  number.value = real;
  return number;
}

const int64_t* AsInteger(const AttributeValue& value) {
  return std::get_if<int64_t>(&value.value);
}

std::optional<double> AsDouble(const AttributeValue& value) {
  if (const int64_t* integer = AsInteger(value)) {
    return static_cast<double>(*integer);
  }
  const double* real = std::get_if<double>(&value.value);
  return real != nullptr ? std::optional<double>(*real) : std::nullopt;
}

Result<AttributeValue> FoldSign(const Expression& unary) {
  const Expression& operand = unary.args.front();
  const bool negative = unary.text == "-";
  if (operand.kind == Kind::kNumber) {
    return ReadNumber(operand.text, negative, unary.span);
  }
  ASSIGN_OR_RETURN(AttributeValue value, Fold(operand));
  value.span = unary.span;
  if (const int64_t* integer = AsInteger(value)) {
    if (negative && *integer == std::numeric_limits<int64_t>::min()) {
      return BadNumber("the integer is out of range", unary.span);
    }
    value.value = negative ? -*integer : *integer;
    return value;
  }
  if (const std::optional<double> real = AsDouble(value)) {
    value.value = negative ? -*real : *real;
    return value;
  }
  return SyntaxError(fmt::format("'{}' needs a number after it", unary.text))
      .At(operand.span)
      .Hint("quote text: '...'");
}

// The integer result, or nullopt if the exact result is not an integer.
std::optional<int64_t> FoldIntegers(char op, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (op) {
    case '+':
      return __builtin_add_overflow(left, right, &result) ? std::nullopt : std::optional(result);
    case '-':
      return __builtin_sub_overflow(left, right, &result) ? std::nullopt : std::optional(result);
    case '*':
      return __builtin_mul_overflow(left, right, &result) ? std::nullopt : std::optional(result);
    default:
      break;
  }
  if (right == 0 || right == -1) {  // -1: the quotient of the smallest integer does not exist
    return right == 0 || op == '%' ? std::optional<int64_t>() : FoldIntegers('*', left, -1);
  }
  if (op == '%') {
    return left % right;
  }
  return left % right == 0 ? std::optional(left / right) : std::nullopt;
}

double FoldDoubles(char op, double left, double right) {
  switch (op) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    case '/':
      return left / right;
    default:
      return std::fmod(left, right);
  }
}

// 2014-09-01 without quotes would silently be read as 2004.
bool LooksLikeDate(const Expression& binary) {
  const auto touches = [](const Expression& left, const Expression& right) {
    return left.span.end + 1 == right.span.begin && left.kind == Kind::kNumber &&
           right.kind == Kind::kNumber;
  };
  const Expression& left = binary.args.front();
  return binary.text == "-" && left.kind == Kind::kBinary && left.text == "-" &&
         touches(left.args[0], left.args[1]) && touches(left.args[1], binary.args[1]);
}

Result<AttributeValue> FoldBinary(const Expression& binary) {
  if (LooksLikeDate(binary)) {
    return SyntaxError("a date must be quoted").At(binary.span).Hint("write '2014-09-01'");
  }
  ASSIGN_OR_RETURN(const AttributeValue left, Fold(binary.args[0]));
  ASSIGN_OR_RETURN(const AttributeValue right, Fold(binary.args[1]));
  const std::optional<double> x = AsDouble(left);
  const std::optional<double> y = AsDouble(right);
  if (!x || !y) {
    return SyntaxError(fmt::format("'{}' needs numbers on both sides", binary.text))
        .At(x ? right.span : left.span)
        .Hint("quote text: '...'");
  }
  AttributeValue value;
  value.span = binary.span;
  const char op = binary.text.front();
  if (AsInteger(left) != nullptr && AsInteger(right) != nullptr) {
    if (const std::optional<int64_t> exact =
            FoldIntegers(op, *AsInteger(left), *AsInteger(right))) {
      value.value = *exact;
      return value;
    }
    if (op == '%' && *AsInteger(right) == -1) {
      value.value = int64_t{0};
      return value;
    }
    if (op != '/' && op != '%') {
      return BadNumber("the integer is out of range", binary.span);
    }
  }
  const double result = FoldDoubles(op, *x, *y);
  if (!std::isfinite(result)) {
    return BadNumber(*y == 0 ? "division by zero" : "the number is out of range", binary.span);
  }
  value.value = result;
  return value;
}

AttributeValue FoldName(const Expression& name) {
  AttributeValue value;
  value.span = name.span;
  if (SameWord(name.text, "TRUE") || SameWord(name.text, "FALSE")) {
    value.value = SameWord(name.text, "TRUE");
  } else if (!SameWord(name.text, "NULL")) {
    value.value = AttributeValue::Word{name.text};
  }
  return value;
}

Result<AttributeValue> FoldList(const Expression& expression) {
  AttributeValue::List list;
  list.reserve(expression.args.size());
  for (const Expression& item : expression.args) {
    ASSIGN_OR_RETURN(AttributeValue value, Fold(item));
    list.push_back(std::move(value));
  }
  AttributeValue value;
  value.value = std::move(list);
  value.span = expression.span;
  return value;
}

Result<AttributeValue> Fold(const Expression& expression) {
  AttributeValue value;
  value.span = expression.span;
  switch (expression.kind) {
    case Kind::kNumber:
      return ReadNumber(expression.text, false, expression.span);
    case Kind::kString:
      value.value = expression.text;
      return value;
    case Kind::kName:
      return FoldName(expression);
    case Kind::kList:
      return FoldList(expression);
    case Kind::kParen: {
      ASSIGN_OR_RETURN(value, Fold(expression.args.front()));
      value.span = expression.span;
      return value;
    }
    case Kind::kUnary:
      return FoldSign(expression);
    case Kind::kBinary:
      return FoldBinary(expression);
    case Kind::kCall:
      return SyntaxError(
                 fmt::format("the value {}(...) is a function, not a constant", expression.text))
          .At(expression.span)
          .Hint("functions such as DENSE belong to COLUMN; quote text: '...'");
    case Kind::kStar:
      break;
  }
  return Internal("an attribute's value is of a kind that its parser never makes");
}

Result<AttributeValue> ReadValue(Cursor& cursor, int depth);

// Element by element, so that no tree of the whole list is built.
Result<AttributeValue> ReadList(Cursor& cursor, int depth) {
  const Token open = cursor.Take();
  if (depth == kMaxDepth) {
    return SyntaxError(fmt::format("nested more than {} levels deep", kMaxDepth))
        .SqlState("54001")
        .At(open.span);
  }
  AttributeValue::List list;
  if (!cursor.AtSymbol("]")) {
    do {
      RETURN_IF_ERROR(cursor.CountElement());
      ASSIGN_OR_RETURN(AttributeValue element, ReadValue(cursor, depth + 1));
      list.push_back(std::move(element));
    } while (cursor.TrySymbol(","));
  }
  if (!cursor.TrySymbol("]")) {
    return cursor.Unexpected("',' or ']'");
  }
  AttributeValue value;
  value.value = std::move(list);
  value.span = cursor.SpanFrom(open.span.begin);
  return value;
}

Result<AttributeValue> ReadMap(Cursor& cursor, int depth) {
  const Token open = cursor.Take();
  if (depth == kMaxDepth) {
    return SyntaxError(fmt::format("nested more than {} levels deep", kMaxDepth))
        .SqlState("54001")
        .At(open.span);
  }
  AttributeValue::Map map;
  if (!cursor.AtSymbol("}")) {
    do {
      RETURN_IF_ERROR(cursor.CountElement());
      ASSIGN_OR_RETURN(AttributeValue key, ReadValue(cursor, depth + 1));
      if (!cursor.TrySymbol(":")) {
        return cursor.Unexpected("':' and a value, as in {'yes': 5, 'no': 1}");
      }
      ASSIGN_OR_RETURN(AttributeValue value, ReadValue(cursor, depth + 1));
      map.keys.push_back(std::move(key));
      map.values.push_back(std::move(value));
    } while (cursor.TrySymbol(","));
  }
  if (!cursor.TrySymbol("}")) {
    return cursor.Unexpected("',' or '}'");
  }
  AttributeValue value;
  value.value = std::move(map);
  value.span = cursor.SpanFrom(open.span.begin);
  return value;
}

Result<AttributeValue> ReadValue(Cursor& cursor, int depth) {
  if (cursor.AtSymbol("{")) {
    return ReadMap(cursor, depth);
  }
  if (cursor.AtSymbol("[")) {
    return ReadList(cursor, depth);
  }
  ASSIGN_OR_RETURN(const Expression expression, ParseExpression(cursor, Dialect::kValue));
  return Fold(expression);
}

}  // namespace

Result<AttributeValue> ParseValue(Cursor& cursor) {
  return ReadValue(cursor, 0);
}

}  // namespace sluice::parser
