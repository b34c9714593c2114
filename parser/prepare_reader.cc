#include "parser/statement_reader.h"

// PREPARE name [(type, ...)] AS, in front of a statement of ours.
namespace sluice::parser {

// Up to and including AS; false: the statement is no such PREPARE.
Result<bool> StatementReader::SkipPrepare(const Token& first) {
  ASSIGN_OR_RETURN(const Token name, lexer_.NextSql(first));
  ASSIGN_OR_RETURN(Token token, lexer_.NextSql(name));
  if (token.IsSymbol("(")) {
    int depth = 1;
    while (depth > 0 && !token.EndsStatement()) {
      ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
      depth += token.IsSymbol("(") ? 1 : token.IsSymbol(")") ? -1 : 0;
    }
    ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
  }
  return token.IsWord("AS");
}

// The statement as a plain one that goes on to the end of ours; nullopt: what it prepares, if
// anything, is the database's.
Result<std::optional<Piece>> StatementReader::ReadPrepareOfOurs(size_t text_begin,
                                                                const Token& first) {
  const Lexer before = lexer_;
  ASSIGN_OR_RETURN(const bool prepares, SkipPrepare(first));
  if (prepares) {
    ASSIGN_OR_RETURN(const Token inside, lexer_.NextSql(Token()));
    const auto begin = static_cast<size_t>(inside.span.begin);
    if (!inside.EndsStatement() && !inside.IsWord("PREPARE")) {
      ASSIGN_OR_RETURN(Piece piece, StatementReader(lexer_, overruns_).Read(begin, inside));
      if (piece.kind != Piece::Kind::kPlain) {
        Piece whole;
        whole.span = {static_cast<int64_t>(text_begin), piece.span.end};
        whole.foreign = true;
        return std::optional<Piece>(whole);
      }
    }
  }
  lexer_ = before;
  return std::optional<Piece>();
}

}  // namespace sluice::parser
