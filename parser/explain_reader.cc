#include "parser/statement_reader.h"

#include <utility>

// EXPLAIN and its options, in front of a statement.
namespace sluice::parser {

Status StatementReader::ReadExplain(const Token& first) {
  piece_.explain = true;
  Token token = first;
  explain_options_ = first.span;
  body_begin_ = lexer_.position();
  ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
  if (token.IsSymbol("(")) {
    const int64_t begin = token.span.begin;
    do {
      ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
      ASSIGN_OR_RETURN(token, ReadExplainOption(token));
    } while (token.IsSymbol(","));
    while (!token.IsSymbol(")") && !token.EndsStatement()) {
      plain_explain_ = false;
      ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
    }
    explain_options_ = {begin, token.span.end};
    plain_explain_ = plain_explain_ && !token.EndsStatement();
    body_begin_ = lexer_.position();
    return OkStatus();
  }
  while (token.IsWord("ANALYZE") || token.IsWord("VERBOSE") || token.IsWord("QUERY") ||
         token.IsWord("PLAN")) {
    plain_explain_ = plain_explain_ && token.IsWord("ANALYZE");
    piece_.explain_analyze = piece_.explain_analyze || token.IsWord("ANALYZE");
    explain_options_ = token.span;
    body_begin_ = lexer_.position();
    ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
  }
  lexer_.Seek(body_begin_);
  return OkStatus();
}

// An option in parentheses, which begins with `first`; returns the token after it. The options of
// ours are FORMAT {JSON | TEXT} and ANALYZE [boolean]; others are the database's.
Result<Token> StatementReader::ReadExplainOption(const Token& first) {
  if (first.IsSymbol(")") || first.EndsStatement()) {
    plain_explain_ = false;
    return first;
  }
  ASSIGN_OR_RETURN(Token value, lexer_.NextSql(first));
  if (first.IsWord("FORMAT") && (value.IsWord("JSON") || value.IsWord("TEXT"))) {
    piece_.explain_json = value.IsWord("JSON");
    return lexer_.NextSql(value);
  }
  plain_explain_ = plain_explain_ && first.IsWord("ANALYZE");
  const bool yes = value.IsWord("TRUE") || value.IsWord("ON") || value.text == "1";
  const bool no = value.IsWord("FALSE") || value.IsWord("OFF") || value.text == "0";
  piece_.explain_analyze = !no;
  return yes || no ? lexer_.NextSql(value) : Result<Token>(value);
}

Status StatementReader::RequirePlainExplain() const {
  if (plain_explain_) {
    return OkStatus();
  }
  return SyntaxError("of the options of EXPLAIN, this statement has FORMAT and ANALYZE only")
      .At(explain_options_)
      .Hint("the others belong to the database's own statements");
}

}  // namespace sluice::parser
