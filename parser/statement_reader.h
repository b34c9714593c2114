#pragma once

#include <vector>

#include "base/status.h"
#include "parser/lexer.h"
#include "parser/splitter.h"
#include "parser/token.h"

namespace sluice::parser {

// Reads one statement token by token until its end, and finds where our clauses begin. Used once.
// `open_bodies` counts, over the whole script, the CREATE TRIGGER bodies without an end.
class StatementReader {
 public:
  StatementReader(Lexer& lexer, int& open_bodies) : lexer_(lexer), open_bodies_(open_bodies) {}

  // The statement that begins with `first`, which the lexer has just read; a plain one's text
  // begins at `text_begin`, where comments may stand. Leaves the lexer after the ';'.
  Result<Piece> Read(size_t text_begin, const Token& first);

 private:
  Status ReadExplain(const Token& first);
  Result<Token> ReadExplainOption(const Token& first);
  Result<bool> ReadCommand();
  bool AtModelType(size_t type) const;
  Result<Piece> ReadCreateModel();
  Result<Piece> ReadCreateModelType();
  Result<Piece> ReadQueryOrPlain(size_t text_begin, bool follow_bodies);
  // Up to the end of the statement, or to AS; returns the token at which it stopped.
  Result<Token> ReadClauses(bool stop_at_as);
  Result<bool> AtClause(const Token& token, const Token& previous, int depth);
  Result<bool> AtVerb(const Token& to);
  Result<bool> AtShortForm(const Token& keyword);
  Status RequirePlainExplain() const;

  Lexer& lexer_;
  int& open_bodies_;
  Piece piece_;
  size_t body_begin_ = 0;      // after EXPLAIN
  bool plain_explain_ = true;  // EXPLAIN has no options that only the database knows
  Span explain_options_;
  std::vector<Token> head_;  // the first tokens of the body
};

}  // namespace sluice::parser
