#include "parser/expression.h"

#include <fmt/core.h>

#include <utility>

#include "base/letter_case.h"
#include "parser/keywords.h"
#include "parser/parser.h"
#include "parser/quoting.h"

namespace sluice::parser {
namespace {

using Kind = Expression::Kind;

// Operators of one expression: a chain of them is a tree of that depth, which is walked
// recursively.
constexpr int kMaxOperators = 1000;

class ExpressionParser {
 public:
  ExpressionParser(Cursor& cursor, Dialect dialect) : cursor_(cursor), dialect_(dialect) {}

  Result<Expression> Parse() { return ParseLevel(dialect_ == Dialect::kValue ? kSum : kOr); }
  Result<Expression> ParseColumnItem();

 private:
  enum Level { kOr, kAnd, kNot, kComparison, kSum, kProduct, kSign };

  bool AtOperator(Level level) const;
  Result<Expression> ParseLevel(Level level);
  Result<Expression> ParseUnary(Level level);
  Result<Expression> ParsePrimary();
  Result<Expression> ParseName();
  Status ParseArguments(std::string_view close, std::vector<Expression>& args);
  Status Enter();

  Cursor& cursor_;
  Dialect dialect_;
  int depth_ = 0;
  int operators_ = 0;
};

Status ExpressionParser::Enter() {
  if (++depth_ > kMaxDepth) {
    return SyntaxError(fmt::format("nested more than {} levels deep", kMaxDepth))
        .SqlState("54001")
        .At(cursor_.Peek().span);
  }
  return OkStatus();
}

bool ExpressionParser::AtOperator(Level level) const {
  const Token token = cursor_.Peek();
  if (token.kind == Token::Kind::kWord) {
    return (level == kOr && token.IsWord("OR")) || (level == kAnd && token.IsWord("AND"));
  }
  if (token.kind != Token::Kind::kSymbol) {
    return false;
  }
  const std::string_view text = token.text;
  switch (level) {
    case kComparison:
      return text == "=" || text == "<" || text == ">" || text == "<=" || text == ">=" ||
             text == "!=" || text == "<>";
    case kSum:
      return text == "+" || text == "-";
    case kProduct:
      return text == "*" || text == "/" || text == "%";
    default:
      return false;
  }
}

Result<Expression> ExpressionParser::ParseLevel(Level level) {
  if (level == kNot || level == kSign) {
    return ParseUnary(level);
  }
  const auto next = static_cast<Level>(level + 1);
  ASSIGN_OR_RETURN(Expression left, ParseLevel(next));
  while (AtOperator(level)) {
    if (++operators_ > kMaxOperators) {
      return SyntaxError(fmt::format("an expression of more than {} operators", kMaxOperators))
          .SqlState("54001")
          .At(cursor_.Peek().span);
    }
    Expression binary;
    binary.kind = Kind::kBinary;
    binary.text = UpperAscii(cursor_.Take().text);
    ASSIGN_OR_RETURN(Expression right, ParseLevel(next));
    binary.span = {left.span.begin, right.span.end};
    binary.args.push_back(std::move(left));
    binary.args.push_back(std::move(right));
    left = std::move(binary);
  }
  return left;
}

Result<Expression> ExpressionParser::ParseUnary(Level level) {
  const bool present =
      level == kNot ? cursor_.AtWord("NOT") : cursor_.AtSymbol("-") || cursor_.AtSymbol("+");
  if (!present) {
    return level == kNot ? ParseLevel(kComparison) : ParsePrimary();
  }
  RETURN_IF_ERROR(Enter());
  const Token op = cursor_.Take();
  ASSIGN_OR_RETURN(Expression operand, ParseUnary(level));
  --depth_;
  Expression unary;
  unary.kind = Kind::kUnary;
  unary.text = UpperAscii(op.text);
  unary.span = {op.span.begin, operand.span.end};
  unary.args.push_back(std::move(operand));
  return unary;
}

Status ExpressionParser::ParseArguments(std::string_view close, std::vector<Expression>& args) {
  RETURN_IF_ERROR(Enter());
  if (!cursor_.AtSymbol(close)) {
    do {
      if (dialect_ == Dialect::kValue) {
        RETURN_IF_ERROR(cursor_.CountElement());
      }
      ASSIGN_OR_RETURN(Expression argument, Parse());
      args.push_back(std::move(argument));
    } while (cursor_.TrySymbol(","));
  }
  if (!cursor_.TrySymbol(close)) {
    return cursor_.Unexpected(fmt::format("',' or '{}'", close));
  }
  --depth_;
  return OkStatus();
}

Result<Expression> ExpressionParser::ParseName() {
  const Token token = cursor_.Peek();
  Expression name;
  name.kind = Kind::kName;
  name.span = token.span;
  if (token.kind == Token::Kind::kWord && !IsReserved(token.text) &&
      !cursor_.Peek(1).IsSymbol(".")) {
    name.text = cursor_.Take().text;
  } else {
    ASSIGN_OR_RETURN(
        Name quoted,
        cursor_.TakeName(dialect_ == Dialect::kColumn ? "a column" : "a value or a name"));
    name.text = std::move(quoted.text);
    name.span = quoted.span;
    return name;
  }
  if (cursor_.AtSymbol("(")) {
    cursor_.Take();
    name.kind = Kind::kCall;
    RETURN_IF_ERROR(ParseArguments(")", name.args));
    name.span = cursor_.SpanFrom(name.span.begin);
  }
  return name;
}

Result<Expression> ExpressionParser::ParsePrimary() {
  const Token token = cursor_.Peek();
  const int64_t begin = token.span.begin;
  Expression expression;
  const bool string_quotes = token.kind == Token::Kind::kQuoted && token.text.front() == '"' &&
                             dialect_ != Dialect::kOptimize;
  if (token.kind == Token::Kind::kString || string_quotes) {
    expression.kind = Kind::kString;
    expression.text = Unquote(cursor_.Take().text);
  } else if (token.kind == Token::Kind::kNumber) {
    expression.kind = Kind::kNumber;
    expression.text = cursor_.Take().text;
  } else if (cursor_.TrySymbol("[")) {
    expression.kind = Kind::kList;
    RETURN_IF_ERROR(ParseArguments("]", expression.args));
  } else if (cursor_.TrySymbol("(")) {
    RETURN_IF_ERROR(Enter());
    expression.kind = Kind::kParen;
    ASSIGN_OR_RETURN(Expression inner, Parse());
    expression.args.push_back(std::move(inner));
    if (cursor_.AtSymbol(",") && dialect_ != Dialect::kOptimize) {
      return cursor_.Unexpected("')'").Hint("a list stands in square brackets: [10, 20]");
    }
    RETURN_IF_ERROR(cursor_.ExpectSymbol(")"));
    --depth_;
  } else if (token.kind == Token::Kind::kWord ||
             (token.kind == Token::Kind::kQuoted && dialect_ != Dialect::kValue)) {
    return ParseName();
  } else if (token.kind == Token::Kind::kQuoted) {
    return cursor_.Unexpected("a value").Hint("text is quoted as '...' or \"...\"");
  } else {
    return cursor_.Unexpected("a value or a name");
  }
  expression.span = cursor_.SpanFrom(begin);
  return expression;
}

Result<Expression> ExpressionParser::ParseColumnItem() {
  const Token token = cursor_.Peek();
  if (token.IsSymbol("*")) {
    Expression star;
    star.kind = Kind::kStar;
    star.span = cursor_.Take().span;
    return star;
  }
  if (token.kind == Token::Kind::kWord || token.kind == Token::Kind::kQuoted) {
    return ParseName();
  }
  return cursor_.Unexpected("a column: *, a name or a function such as DENSE(...)");
}

}  // namespace

Result<Expression> ParseExpression(Cursor& cursor, Dialect dialect) {
  return ExpressionParser(cursor, dialect).Parse();
}

Result<Expression> ParseColumn(Cursor& cursor) {
  return ExpressionParser(cursor, Dialect::kColumn).ParseColumnItem();
}

}  // namespace sluice::parser
