#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"
#include "parser/token.h"

namespace sluice::parser {

// Walks over the tokens of one statement's clauses. What the parser finds where it cannot stand
// becomes an error by Unexpected: what was found, what was expected, the nearest keyword.
class Cursor {
 public:
  // `tokens` ends with kEnd and outlives the cursor.
  explicit Cursor(const std::vector<Token>& tokens) : tokens_(tokens) {}

  const Token& Peek(size_t ahead = 0) const;
  const Token& Take();
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

  // A name, quoted or not; `what` says for what, in an error. Keywords need quotes.
  Result<Name> TakeName(std::string_view what);
  Result<ModelName> TakeModelName(std::string_view what = "a model's name");
  Result<std::vector<Name>> TakeNames(std::string_view what);
  Result<int64_t> TakeInteger(std::string_view what);
  Result<std::string> TakeString(std::string_view what);

 private:
  const std::vector<Token>& tokens_;
  size_t next_ = 0;
};

}  // namespace sluice::parser
