#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"
#include "parser/lexer.h"
#include "parser/token.h"

namespace sluice::parser {

// Walks over the tokens of one statement's clauses. The parser reports an unexpected token by
// Unexpected: what was found, what was expected, the nearest keyword.
class Cursor {
 public:
  // `clauses` is where in the script a StatementReader found them; the script outlives the cursor.
  Cursor(std::string_view script, const Span& clauses);

  // The next token, or (1) the one after it; kEnd at the end and from then on.
  const Token& Peek(size_t ahead = 0) const { return ahead_[ahead]; }
  Token Take();
  bool AtEnd() const { return Peek().kind == Token::Kind::kEnd; }
  bool AtWord(std::string_view upper_case) const { return Peek().IsWord(upper_case); }
  bool AtSymbol(std::string_view symbol) const { return Peek().IsSymbol(symbol); }
  bool TryWord(std::string_view upper_case);
  bool TrySymbol(std::string_view symbol);
  Status ExpectWord(std::string_view upper_case);
  Status ExpectSymbol(std::string_view symbol);
  Status ExpectEnd() const;

  // From the first byte at `begin` to the last byte taken.
  Span SpanFrom(int64_t begin) const;

  // "expected <what>, found 'x'"; a hint when one of `keywords` is near to what was found.
  Status Unexpected(std::string_view what, const std::vector<std::string>& keywords = {}) const;

  // A name, quoted or not; `what` describes it in an error. Keywords need quotes.
  Result<Name> TakeName(std::string_view what);
  Result<ModelName> TakeModelName(std::string_view what = "a model's name");
  Result<std::vector<Name>> TakeNames(std::string_view what);
  Result<int64_t> TakeInteger(std::string_view what);
  Result<std::string> TakeString(std::string_view what);

  // To be called for every element of a list: limits the elements of all lists of a statement
  // together.
  Status CountElement();

 private:
  Token Read();

  Lexer lexer_;
  ClauseState state_;
  int64_t end_;
  bool AtUnicodeName() const;

  std::array<Token, 2> ahead_;
  std::optional<Token> taken_;  // the last one
  size_t elements_ = 0;
};

}  // namespace sluice::parser
