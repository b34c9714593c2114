#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "parser/token.h"

namespace sluice::parser {

// Cuts a script into tokens. The database's own text and our clauses have different lexical rules
// (in a clause `reg:squarederror` is one name and "it's" a string), so the caller chooses the rules
// for every token. Every token takes time linear in its length.
// Copyable; not thread-safe. The script must outlive it and its tokens.
class Lexer {
 public:
  explicit Lexer(std::string_view script) : script_(script) {}

  // The next token by PostgreSQL's rules, and by SQLite's where PostgreSQL does not use the
  // character: `name` and [name] are quoted names. `previous` distinguishes [name] from a
  // subscript.
  Result<Token> NextSql(const Token& previous);

  // The next token of a clause. With `narrow` a name ends at - / and : (an expression such as
  // price-cost); otherwise these join names, as in SQLFlow.
  Result<Token> NextClause(bool narrow);

  // Skips white space between statements, and the byte order marks that joined files leave there,
  // but not comments.
  void SkipToStatement();

  size_t position() const { return position_; }
  // Back to a place outside of every array. (To look ahead, copy the lexer.)
  void Seek(size_t position) {
    position_ = position;
    array_depth_ = 0;
  }

  std::string_view TextOf(const Span& span) const {
    return script_.substr(static_cast<size_t>(span.begin),
                          static_cast<size_t>(span.end - span.begin));
  }

  // Whether a spelling that PostgreSQL reads differently was met since ForgetForeign.
  bool met_foreign() const { return met_foreign_; }
  void ForgetForeign() { met_foreign_ = false; }

 private:
  char At(size_t index) const { return index < script_.size() ? script_[index] : '\0'; }
  bool LooksAt(std::string_view text) const {
    return script_.substr(position_, text.size()) == text;
  }
  Token Make(Token::Kind kind, size_t end);
  Status Unterminated(std::string_view what, std::string_view close) const;

  void SkipSpace();
  Status SkipBlanks(bool clause);
  Status SkipBlockComment();
  Result<Token> DollarQuoted();
  Result<Token> Bracketed(const Token& previous);
  Result<Token> Backquoted();
  // One quoted token; `doubled` and `backslash` say which escapes keep it open.
  Result<Token> Quoted(Token::Kind kind, size_t open, bool doubled, bool backslash);
  Result<Token> EscapeString(size_t open);
  Result<Token> ClauseNumber();
  Result<Token> ClauseName(bool narrow);

  std::string_view script_;
  size_t position_ = 0;
  bool met_foreign_ = false;
  int array_depth_ = 0;  // of PostgreSQL's [ ], inside which [ opens no name of SQLite
  // Set when one of these has no end: then no later one has, and the search is not repeated.
  bool no_backquote_ahead_ = false;
  bool no_bracket_ahead_ = false;
  int unnested_comments_ = 0;
};

// How to read the next token of a clause, given the tokens before it: in the expressions of
// MAXIMIZE and MINIMIZE a-b needs no blanks.
class ClauseState {
 public:
  bool narrow() const { return narrow_; }
  int depth() const { return depth_; }  // of open brackets
  void See(const Token& token);

 private:
  bool optimize_ = false;
  bool narrow_ = false;
  int depth_ = 0;
};

// True for characters that may begin or continue a name in a clause.
bool IsNameStart(char c);
bool IsNameCharacter(char c);

}  // namespace sluice::parser
