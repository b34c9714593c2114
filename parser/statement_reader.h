#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "parser/lexer.h"
#include "parser/splitter.h"
#include "parser/token.h"

namespace sluice::parser {

// Counts, over the whole script, what makes a reader go beyond a statement's end and return.
struct Overruns {
  int open_bodies = 0;   // CREATE TRIGGER ... BEGIN without its END
  int longer_texts = 0;  // statements of ours whose quotes are longer as the database reads them
};

// Reads one statement token by token until its end, and finds where our clauses begin. Used once.
class StatementReader {
 public:
  StatementReader(Lexer& lexer, Overruns& overruns) : lexer_(lexer), overruns_(overruns) {}

  // The statement that begins with `first`, which the lexer has just read; a plain one's text
  // begins at `text_begin`, where comments may stand. Leaves the lexer after the ';'. What
  // PostgreSQL's own parser accepts is a plain one, however much it looks like ours or like a
  // misspelling of ours, and PREPARE of one of ours; but our settings, SHOW MODELS, SHOW JOBS and
  // SHOW CLUSTER are ours.
  Result<Piece> Read(size_t text_begin, const Token& first);

 private:
  Result<Piece> ReadByClauses(size_t text_begin, const Token& first);
  Result<Piece> ReadAsPlain(size_t text_begin);
  Result<bool> SkipPrepare(const Token& first);
  Result<std::optional<Piece>> ReadPrepareOfOurs(size_t text_begin, const Token& first);
  Status ReadExplain(const Token& first);
  Result<Token> ReadExplainOption(const Token& first);
  bool HasGrammarOfSettings() const;
  Result<bool> ReadCommand();
  bool AtModelType(size_t type) const;
  Result<Piece> ReadCreateModel();
  Result<Piece> ReadCreateModelType();
  Result<Piece> ReadQueryOrPlain(size_t text_begin, bool follow_bodies);
  // Up to the end of the statement, or to AS; returns the token at which it stopped.
  Result<Token> ReadClauses(bool stop_at_as);
  Result<bool> AtClause(const Token& token, const Token& previous, int depth);
  Result<bool> AtVerb(const Token& to, const Token& previous);
  Result<bool> AtShortForm(const Token& keyword);
  Status RequirePlainExplain() const;

  Lexer& lexer_;
  Overruns& overruns_;
  Piece piece_;
  size_t body_begin_ = 0;      // after EXPLAIN
  bool plain_explain_ = true;  // EXPLAIN has no options that only the database knows
  Span explain_options_;
  bool plain_ = false;       // looks for no clauses
  std::vector<Token> head_;  // the first tokens of the body
};

}  // namespace sluice::parser
