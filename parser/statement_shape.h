#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "parser/keywords.h"
#include "parser/token.h"

// The splitter's knowledge of SQL: enough to find where a query ends and our clauses begin.
namespace sluice::parser {

// From this length on, a word that is nearly one of ours is taken for a misspelling.
inline constexpr size_t kMinMisspelt = 4;

// Statements that our clauses may follow. ("(" may begin one as well.)
inline constexpr std::array<std::string_view, 4> kQueryStarts = {"SELECT", "WITH", "VALUES",
                                                                 "TABLE"};

// In these statements TO belongs to the database: GRANT ... TO train, ALTER TABLE t RENAME TO
// predict.
inline constexpr std::array<std::string_view, 14> kTakeTo = {
    "GRANT",    "REVOKE",  "ALTER",    "CREATE",  "SET",      "RESET",  "COPY",
    "ROLLBACK", "RELEASE", "REASSIGN", "COMMENT", "SECURITY", "IMPORT", "MOVE"};

// Statements that always return rows.
inline constexpr std::array<std::string_view, 11> kReturnRows = {
    "SELECT",   "WITH", "VALUES", "TABLE", "SHOW",   "EXPLAIN",
    "DESCRIBE", "DESC", "PRAGMA", "FETCH", "EXECUTE"};

inline constexpr std::array<std::string_view, 5> kWriters = {"INSERT", "UPDATE", "DELETE", "MERGE",
                                                             "REPLACE"};

// SELECT INTERVAL ... DAY TO HOUR.
inline constexpr std::array<std::string_view, 6> kIntervalFields = {"YEAR", "MONTH",  "DAY",
                                                                    "HOUR", "MINUTE", "SECOND"};

// After one of these a word is an operand, never the beginning of a clause: WHERE label = 1.
inline constexpr std::array<std::string_view, 56> kExpectOperand = {
    "SELECT",  "DISTINCT",  "ALL",    "FROM",   "JOIN",     "ON",        "WHERE",  "AND",
    "OR",      "NOT",       "BY",     "HAVING", "AS",       "IN",        "LIKE",   "ILIKE",
    "SIMILAR", "BETWEEN",   "IS",     "CASE",   "WHEN",     "THEN",      "ELSE",   "UNION",
    "EXCEPT",  "INTERSECT", "LIMIT",  "OFFSET", "VALUES",   "TABLE",     "WITH",   "RECURSIVE",
    "USING",   "INTO",      "ONLY",   "SET",    "LATERAL",  "RETURNING", "UPDATE", "DELETE",
    "INSERT",  "COLLATE",   "ESCAPE", "ARRAY",  "INTERVAL", "ROW",       "EXISTS", "OVER",
    "FILTER",  "FETCH",     "FOR",    "OF",     "TO",       "GLOB",      "REGEXP", "MATCH"};

// Words that may follow a table's or a column's alias; `FROM t label LEFT JOIN u` has no clause.
inline constexpr std::array<std::string_view, 42> kFollowAlias = {
    "JOIN",      "INNER", "LEFT",        "RIGHT",  "FULL",   "CROSS", "NATURAL",
    "OUTER",     "WHERE", "GROUP",       "HAVING", "WINDOW", "UNION", "EXCEPT",
    "INTERSECT", "ORDER", "LIMIT",       "OFFSET", "FETCH",  "FOR",   "ON",
    "USING",     "INTO",  "TABLESAMPLE", "FROM",   "SET",    "WITH",  "INDEXED",
    "RETURNING", "NOT",   "AS",          "VALUES", "AND",    "OR",    "IS",
    "IN",        "LIKE",  "BETWEEN",     "ASC",    "DESC",   "END",   "TO"};

inline constexpr std::array<std::string_view, 6> kModelNouns = {"TRAIN", "MODEL", "MODELS",
                                                                "JOB",   "JOBS",  "CLUSTER"};

// What CANCEL JOB is called elsewhere.
inline constexpr std::array<std::string_view, 4> kEndsOfJobs = {"KILL", "STOP", "ABORT",
                                                                "TERMINATE"};

// What others call our verbs.
inline constexpr std::array<std::array<std::string_view, 2>, 13> kVerbsElsewhere = {
    {{"SHAP", "EXPLAIN"},
     {"INTERPRET", "EXPLAIN"},
     {"FIT", "TRAIN"},
     {"LEARN", "TRAIN"},
     {"SCORE", "PREDICT"},
     {"INFER", "PREDICT"},
     {"CLASSIFY", "PREDICT"},
     {"FORECAST", "PREDICT"},
     {"TEST", "EVALUATE"},
     {"VALIDATE", "EVALUATE"},
     {"EVAL", "EVALUATE"},
     {"EXECUTE", "RUN"},
     {"OPTIMIZE", "MAXIMIZE or MINIMIZE"}}};

// Whether an operand (a table, a value) is complete with `token`, so that a clause may follow.
inline bool EndsOperand(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kWord:
      return !IsOneOf(token.text, kExpectOperand);
    case Token::Kind::kQuoted:
    case Token::Kind::kString:
    case Token::Kind::kNumber:
      return true;
    case Token::Kind::kSymbol:
      return token.text == ")" || token.text == "]" || token.text == "?";
    case Token::Kind::kEnd:
      break;
  }
  return false;
}

// Counts BEGIN ... END of trigger and SQL-standard function bodies, whose ';' end no statement.
class BodyTracker {
 public:
  explicit BodyTracker(const std::vector<Token>& head) {
    bool create = false;
    for (const Token& token : head) {
      create = create || token.IsWord("CREATE");
      trigger_ = trigger_ || (create && token.IsWord("TRIGGER"));
      function_ = function_ || (create && (token.IsWord("FUNCTION") || token.IsWord("PROCEDURE")));
    }
  }

  void See(const Token& token, const Token& previous) {
    if (!(trigger_ || function_) || token.kind != Token::Kind::kWord || previous.IsSymbol(".")) {
      return;
    }
    if (depth_ == 0) {
      opens_ = (trigger_ && token.IsWord("BEGIN")) ||
               (function_ && token.IsWord("ATOMIC") && previous.IsWord("BEGIN"));
      depth_ = opens_ ? 1 : 0;
      met_ = met_ || opens_;
    } else if (token.IsWord("CASE")) {
      ++depth_;
    } else if (token.IsWord("END")) {
      --depth_;
    }
  }
  bool inside() const { return depth_ > 0; }
  bool met() const { return met_; }

 private:
  bool trigger_ = false;
  bool function_ = false;
  bool opens_ = false;
  bool met_ = false;
  int depth_ = 0;
};

// Decides from a plain statement's tokens whether it returns rows.
class RowsTracker {
 public:
  void See(const Token& token, const Token& previous, int depth) {
    if (depth > 0 || token.kind != Token::Kind::kWord || previous.IsSymbol(".")) {
      return;
    }
    if (first_) {
      first_ = false;
      rows_ = IsOneOf(token.text, kReturnRows);
      select_ = token.IsWord("SELECT");
      with_ = token.IsWord("WITH");
      writer_ = IsOneOf(token.text, kWriters);
    } else if (with_ && token.IsWord("SELECT")) {
      select_ = true;
      with_ = false;
    } else if (with_ && IsOneOf(token.text, kWriters)) {
      writer_ = true;
      rows_ = false;
      with_ = false;
    } else if (select_ && token.IsWord("INTO")) {
      rows_ = false;  // SELECT ... INTO makes a table
    } else if (writer_ && token.IsWord("RETURNING")) {
      rows_ = true;
    }
  }
  void SeeParenthesis() {
    if (first_) {
      first_ = false;
      rows_ = true;
    }
  }
  bool rows() const { return rows_; }

 private:
  bool first_ = true;
  bool rows_ = false;
  bool select_ = false;
  bool with_ = false;
  bool writer_ = false;
};

}  // namespace sluice::parser
