#include "parser/clauses.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "base/letter_case.h"
#include "parser/expression.h"
#include "parser/keywords.h"
#include "parser/quoting.h"

namespace sluice::parser {
namespace {

constexpr std::string_view Keyword(Clause clause) {
  switch (clause) {
    case Clause::kWith:
      return "WITH";
    case Clause::kColumn:
      return "COLUMN";
    case Clause::kLabel:
      return "LABEL";
    case Clause::kUsing:
      return "USING";
    case Clause::kInto:
      return "INTO";
    case Clause::kCommand:
      return "CMD";
    case Clause::kConstraint:
      break;
  }
  return "CONSTRAINT";
}

constexpr std::array<Clause, 7> kClauses = {Clause::kWith,      Clause::kColumn, Clause::kLabel,
                                            Clause::kUsing,     Clause::kInto,   Clause::kCommand,
                                            Clause::kConstraint};

std::string ListOf(const std::vector<Clause>& clauses) {
  std::string list;
  for (const Clause clause : clauses) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", Keyword(clause));
  }
  return list;
}

bool Contains(const std::vector<Clause>& clauses, Clause clause) {
  return std::find(clauses.begin(), clauses.end(), clause) != clauses.end();
}

// Words of a select, which stand behind our clauses by mistake.
constexpr std::array<std::string_view, 13> kOfSelect = {
    "FROM",   "WHERE", "GROUP", "HAVING", "ORDER",     "LIMIT", "OFFSET",
    "WINDOW", "FETCH", "JOIN",  "UNION",  "INTERSECT", "EXCEPT"};

// What the token can have been meant for that begins no clause; "": unknown.
std::string HintAtNoClause(const Cursor& cursor, const std::vector<Clause>& present) {
  const Token token = cursor.Peek();
  const std::optional<Clause> last = present.empty() ? std::optional<Clause>() : present.back();
  if (token.kind == Token::Kind::kWord && IsOneOf(token.text, kOfSelect)) {
    return fmt::format("{} belongs to the select, in front of Sluice's clauses",
                       UpperAscii(token.text));
  }
  if (last == Clause::kWith && cursor.Peek(1).IsSymbol("=")) {
    return fmt::format("a comma is missing before the attribute '{}'", token.text);
  }
  const bool name = token.kind == Token::Kind::kWord || token.kind == Token::Kind::kQuoted;
  if (last == Clause::kColumn && name) {
    return fmt::format("a comma is missing before the column {}", token.text);
  }
  return "";
}

// The clause that begins here, after those that are `present`; an error if `rules` has no such
// clause.
Result<Clause> TakeKeyword(Cursor& cursor, const ClauseRules& rules,
                           const std::vector<Clause>& present) {
  for (const Clause clause : kClauses) {
    if (!cursor.AtWord(Keyword(clause))) {
      continue;
    }
    if (!Contains(rules.allowed, clause)) {
      return SyntaxError(fmt::format("{} has no {} clause", rules.verb, Keyword(clause)))
          .At(cursor.Peek().span)
          .Hint(fmt::format("its clauses are {}", ListOf(rules.allowed)));
    }
    cursor.Take();
    return clause;
  }
  std::vector<std::string> keywords;
  for (const Clause clause : rules.allowed) {
    keywords.emplace_back(Keyword(clause));
  }
  Status unexpected = cursor.Unexpected(
      fmt::format("{} or the end of the statement", ListOf(rules.allowed)), keywords);
  std::string hint = HintAtNoClause(cursor, present);
  return hint.empty() ? unexpected : std::move(unexpected).Hint(std::move(hint));
}

// CMD 'word' {, 'word'}
Status ParseCommand(Cursor& cursor, std::vector<std::string>& command) {
  do {
    if (cursor.Peek().kind == Token::Kind::kWord) {
      return cursor.Unexpected("a string").Hint("each word of the command is quoted: CMD 'a', 'b'");
    }
    ASSIGN_OR_RETURN(std::string word, cursor.TakeString("a string"));
    command.push_back(std::move(word));
  } while (cursor.TrySymbol(","));
  return OkStatus();
}

Status ParseColumnClause(Cursor& cursor, int64_t begin, std::vector<ColumnClause>& clauses) {
  ColumnClause clause;
  ASSIGN_OR_RETURN(clause.columns, ParseColumns(cursor));
  if (cursor.TryWord("FOR")) {
    ASSIGN_OR_RETURN(clause.target, cursor.TakeName("the columns' target"));
  }
  clause.span = cursor.SpanFrom(begin);
  const std::string target = clause.target ? clause.target->text : "";
  for (const ColumnClause& other : clauses) {
    if ((other.target ? other.target->text : "") != target) {
      continue;
    }
    const Status twice = clause.target
                             ? SyntaxError(fmt::format("COLUMN ... FOR {} is given twice", target))
                             : SyntaxError("a second COLUMN clause needs FOR and a target");
    return Status(twice)
        .At(clause.span)
        .Hint("COLUMN a, b FOR linear_feature_columns COLUMN c FOR dnn_feature_columns");
  }
  clauses.push_back(std::move(clause));
  return OkStatus();
}

bool IsComparison(const Expression& expression) {
  if (expression.kind == Expression::Kind::kParen) {
    return IsComparison(expression.args.front());
  }
  const std::string_view op = expression.text;
  return expression.kind == Expression::Kind::kBinary &&
         (op == "=" || op == "<" || op == ">" || op == "<=" || op == ">=");
}

// CONSTRAINT expr [GROUP BY name] {, expr [GROUP BY name]}
Status ParseConstraints(Cursor& cursor, std::vector<OptimizeStatement::Constraint>& constraints) {
  do {
    OptimizeStatement::Constraint constraint;
    ASSIGN_OR_RETURN(constraint.expression, ParseExpression(cursor, Dialect::kOptimize));
    if (!IsComparison(constraint.expression)) {
      return SyntaxError("a constraint is a comparison by =, <, >, <= or >=")
          .At(constraint.expression.span);
    }
    if (cursor.TryWord("GROUP")) {
      RETURN_IF_ERROR(cursor.ExpectWord("BY"));
      ASSIGN_OR_RETURN(constraint.group_by, cursor.TakeName("a column"));
    }
    constraint.span = cursor.SpanFrom(constraint.expression.span.begin);
    constraints.push_back(std::move(constraint));
  } while (cursor.TrySymbol(","));
  return OkStatus();
}

Status ParseUsing(Cursor& cursor, const ClauseRules& rules, Clauses& clauses) {
  if (rules.using_operand == ClauseRules::Operand::kModel) {
    ASSIGN_OR_RETURN(clauses.using_model, cursor.TakeModelName());
  } else {
    ASSIGN_OR_RETURN(clauses.using_name, cursor.TakeName("a name"));
  }
  return OkStatus();
}

Status ParseInto(Cursor& cursor, const ClauseRules& rules, Clauses& clauses) {
  if (rules.into_operand == ClauseRules::Operand::kModel) {
    ASSIGN_OR_RETURN(clauses.into_model, cursor.TakeModelName());
  } else if (rules.into_operand == ClauseRules::Operand::kName) {
    ASSIGN_OR_RETURN(Name name, cursor.TakeName("a table's name"));
    clauses.into_names.push_back(std::move(name));
  } else {
    ASSIGN_OR_RETURN(clauses.into_names, cursor.TakeNames("a table's name"));
  }
  return OkStatus();
}

Status ParseClause(Cursor& cursor, Clause clause, int64_t begin, const ClauseRules& rules,
                   Clauses& clauses) {
  switch (clause) {
    case Clause::kWith: {
      ASSIGN_OR_RETURN(clauses.attributes, ParseAttributes(cursor));
      return OkStatus();
    }
    case Clause::kColumn:
      return ParseColumnClause(cursor, begin, clauses.columns);
    case Clause::kLabel: {
      ASSIGN_OR_RETURN(clauses.label, ParseLabel(cursor));
      return OkStatus();
    }
    case Clause::kUsing:
      return ParseUsing(cursor, rules, clauses);
    case Clause::kInto:
      return ParseInto(cursor, rules, clauses);
    case Clause::kCommand:
      return ParseCommand(cursor, clauses.command);
    case Clause::kConstraint:
      break;
  }
  return ParseConstraints(cursor, clauses.constraints);
}

Result<Name> ParseAttributeName(Cursor& cursor) {
  const Token token = cursor.Peek();
  // A keyword before '=' is an attribute: WITH group = 1.
  if (token.kind == Token::Kind::kWord && cursor.Peek(1).IsSymbol("=")) {
    cursor.Take();
    Name name;
    name.text = token.text;
    name.parts = SplitAtDots(token.text);
    name.span = token.span;
    return name;
  }
  if (token.kind == Token::Kind::kQuoted && token.text.front() == '"') {
    return cursor.Unexpected("an attribute's name")
        .Hint("attribute names are not quoted: WITH train.epoch = 5");
  }
  if (token.IsSymbol("(")) {
    return cursor.Unexpected("an attribute's name")
        .Hint("attributes stand without parentheses: WITH train.epoch = 5, model.x = 1");
  }
  return cursor.TakeName("an attribute's name");
}

}  // namespace

Result<std::vector<Attribute>> ParseAttributes(Cursor& cursor) {
  std::vector<Attribute> attributes;
  std::unordered_set<std::string> names;
  do {
    Attribute attribute;
    ASSIGN_OR_RETURN(attribute.name, ParseAttributeName(cursor));
    if (!names.insert(attribute.name.text).second) {
      return SyntaxError(fmt::format("attribute '{}' is given twice", attribute.name.text))
          .At(attribute.name.span);
    }
    if (!cursor.TrySymbol("=")) {
      return cursor.Unexpected(fmt::format("'=' after attribute '{}'", attribute.name.text));
    }
    ASSIGN_OR_RETURN(attribute.value, ParseValue(cursor));
    attribute.span = cursor.SpanFrom(attribute.name.span.begin);
    attributes.push_back(std::move(attribute));
  } while (cursor.TrySymbol(","));
  return attributes;
}

Result<std::vector<Expression>> ParseColumns(Cursor& cursor) {
  std::vector<Expression> columns;
  do {
    ASSIGN_OR_RETURN(Expression column, ParseColumn(cursor));
    columns.push_back(std::move(column));
  } while (cursor.TrySymbol(","));
  return columns;
}

// A column may have the name of a keyword: LABEL label INTO m. The following tokens decide.
bool IsLabelNamedAsKeyword(Cursor& cursor) {
  constexpr std::array<std::string_view, 4> kFurtherClauses = {"INTO", "WITH", "COLUMN", "USING"};
  const Token token = cursor.Peek();
  const Token next = cursor.Peek(1);
  if (token.kind != Token::Kind::kWord || !IsReserved(token.text)) {
    return false;
  }
  return next.EndsStatement()
             ? token.IsWord("LABEL")
             : next.kind == Token::Kind::kWord && IsOneOf(next.text, kFurtherClauses);
}

Result<Name> ParseLabel(Cursor& cursor) {
  const Token token = cursor.Peek();
  if (IsLabelNamedAsKeyword(cursor)) {
    Name name;
    name.text = std::string(cursor.Take().text);
    name.parts = {name.text};
    name.quoted_parts = {false};
    name.span = token.span;
    return name;
  }
  if (token.kind != Token::Kind::kString) {
    return cursor.TakeName("the label's column");
  }
  Name name;
  name.text = Unquote(cursor.Take().text);
  name.parts = {name.text};
  name.quoted = true;
  name.span = token.span;
  if (name.text.empty()) {
    return SyntaxError("the label's name is empty").At(token.span);
  }
  return name;
}

Result<Clauses> ParseClauses(Cursor& cursor, const ClauseRules& rules) {
  Clauses clauses;
  while (!cursor.AtEnd()) {
    const Span keyword = cursor.Peek().span;
    ASSIGN_OR_RETURN(const Clause clause, TakeKeyword(cursor, rules, clauses.present));
    if (clause != Clause::kColumn && Has(clauses, clause)) {
      return SyntaxError(fmt::format("{} is given twice", Keyword(clause))).At(keyword);
    }
    clauses.present.push_back(clause);
    RETURN_IF_ERROR(ParseClause(cursor, clause, keyword.begin, rules, clauses));
  }
  return clauses;
}

bool Has(const Clauses& clauses, Clause clause) {
  return Contains(clauses.present, clause);
}

Status Missing(const Cursor& cursor, std::string_view verb, std::string_view clause) {
  return SyntaxError(fmt::format("{} needs {}", verb, clause)).At(cursor.Peek().span);
}

}  // namespace sluice::parser
