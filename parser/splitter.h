#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/token.h"

namespace sluice::parser {

// One statement of a script, cut out but not yet parsed.
struct Piece {
  enum class Kind {
    kPlain,            // the database's
    kQuery,            // a query of the database followed by our clauses
    kCommand,          // SHOW MODELS and the like
    kCreateModel,      // clauses, AS, a query of the database
    kCreateModelType,  // clauses, AS, a string
  };
  Kind kind = Kind::kPlain;
  Span span;   // without comments around it, but for a plain statement's, which may be hints to it
  Span query;  // kQuery, kCreateModel; kCreateModelType: the string with its quotes
  Span clauses;          // ours, from their first token to their last one
  bool explain = false;  // EXPLAIN stands before it
  bool explain_json = false;
  bool explain_analyze = false;
  int64_t body_begin = 0;     // after EXPLAIN and its options
  bool returns_rows = false;  // kPlain
  // Contains a spelling that libpg_query's scanner does not know (a quoted name of SQLite, the body
  // of a trigger), so that the scanner cannot find the statement's end.
  bool foreign = false;
};

struct SplitScript {
  std::vector<Piece> pieces;  // up to the error, if there is one
  Status error;
  // The error is that there are more statements than are read at once, first so many plain ones.
  bool too_many_plain = false;
};

// Cuts a script at its semicolons. Plain SQL is cut where libpg_query's scanner says; our clauses,
// which it cannot read, and SQLite's spellings are cut by our own lexer. Linear in the script.
SplitScript Split(std::string_view script);

// Where a script that is still being typed stops.
enum class ScriptEnd {
  kBlank,        // no statement yet: only blanks and comments
  kComplete,     // behind the ';' of a statement
  kInStatement,  // which still needs its ';'
  kInToken,      // in a string, a quoted name or a comment
};
ScriptEnd EndOf(std::string_view script);

// Whether Split met a string, a quoted name or a comment without its end.
bool IsUnterminated(const Status& error);

}  // namespace sluice::parser
