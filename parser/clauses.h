#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"
#include "parser/cursor.h"

namespace sluice::parser {

enum class Clause { kWith, kColumn, kLabel, kUsing, kInto, kCommand, kConstraint };

// The clauses of a verb; they may stand in any order, each once (COLUMN once per target).
struct ClauseRules {
  std::string_view verb;  // its name in messages: "TO TRAIN"
  std::vector<Clause> allowed;
  enum class Operand { kModel, kName, kNames };
  Operand using_operand = Operand::kModel;
  Operand into_operand = Operand::kModel;
};

struct Clauses {
  std::vector<Attribute> attributes;
  std::vector<ColumnClause> columns;
  std::optional<Name> label;
  std::optional<ModelName> using_model;  // by ClauseRules::using_operand
  std::optional<Name> using_name;
  std::optional<ModelName> into_model;  // by ClauseRules::into_operand
  std::vector<Name> into_names;
  std::vector<std::string> command;
  std::vector<OptimizeStatement::Constraint> constraints;
  std::vector<Clause> present;  // in the order of the text
};

// The clauses up to the end of the statement.
Result<Clauses> ParseClauses(Cursor& cursor, const ClauseRules& rules);

bool Has(const Clauses& clauses, Clause clause);
// "TO TRAIN needs INTO ..."; placed at the end of the statement, where the clause could have stood.
Status Missing(const Cursor& cursor, std::string_view verb, std::string_view clause);

// name = value {, name = value}, each name once.
Result<std::vector<Attribute>> ParseAttributes(Cursor& cursor);
// col {, col}
Result<std::vector<Expression>> ParseColumns(Cursor& cursor);
// After LABEL a string is also a name.
Result<Name> ParseLabel(Cursor& cursor);

}  // namespace sluice::parser
