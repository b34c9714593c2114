#include <fmt/core.h>

#include <utility>

#include "parser/clauses.h"
#include "parser/cursor.h"
#include "parser/expression.h"
#include "parser/keywords.h"
#include "parser/parse_statement.h"

// SELECT ... TO <verb>, and the short form SELECT ... LABEL.
namespace sluice::parser {
namespace {

using Operand = ClauseRules::Operand;

Result<ExtendedStatement> ParseTrain(Cursor& cursor, Select select) {
  TrainStatement statement;
  statement.select = std::move(select);
  // TO TRAIN LABEL income INTO m is also the short form.
  if (cursor.TryWord("TRAIN") && !cursor.AtWord("LABEL")) {
    ASSIGN_OR_RETURN(statement.model_type, cursor.TakeName("a model type or LABEL"));
  }
  const ClauseRules rules = {
      .verb = "TO TRAIN",
      .allowed = {Clause::kWith, Clause::kColumn, Clause::kLabel, Clause::kUsing, Clause::kInto}};
  ASSIGN_OR_RETURN(Clauses clauses, ParseClauses(cursor, rules));
  if (!statement.model_type && !clauses.label) {
    return Missing(cursor, "a training without a model type", "LABEL and the label's column");
  }
  if (!clauses.into_model) {
    return Missing(cursor, statement.model_type ? "TO TRAIN" : "LABEL", "INTO and a model's name");
  }
  statement.attributes = std::move(clauses.attributes);
  statement.columns = std::move(clauses.columns);
  statement.label = std::move(clauses.label);
  statement.base_model = std::move(clauses.using_model);
  statement.into = *std::move(clauses.into_model);
  return ExtendedStatement(std::move(statement));
}

Status CheckTarget(const Name& target) {
  constexpr size_t kMaxParts = 3;  // schema.table.column
  if (target.parts.size() <= kMaxParts) {
    return OkStatus();
  }
  return SyntaxError(fmt::format("'{}' does not name a column of a result table", target.text))
      .At(target.span)
      .Hint("TO PREDICT takes table.column or schema.table.column; quote names that hold dots");
}

Result<ExtendedStatement> ParsePredict(Cursor& cursor, Select select) {
  PredictStatement statement;
  statement.select = std::move(select);
  if (!cursor.AtWord("WITH") && !cursor.AtWord("USING") && !cursor.AtEnd()) {
    ASSIGN_OR_RETURN(statement.target, cursor.TakeName("table.column, or USING and a model"));
    RETURN_IF_ERROR(CheckTarget(*statement.target));
  }
  const ClauseRules rules = {.verb = "TO PREDICT", .allowed = {Clause::kWith, Clause::kUsing}};
  ASSIGN_OR_RETURN(Clauses clauses, ParseClauses(cursor, rules));
  if (!clauses.using_model) {
    return Missing(cursor, rules.verb, "USING and a model's name");
  }
  statement.attributes = std::move(clauses.attributes);
  statement.model = *std::move(clauses.using_model);
  return ExtendedStatement(std::move(statement));
}

std::optional<Name> FirstName(std::vector<Name> names) {
  return names.empty() ? std::optional<Name>() : std::optional<Name>(std::move(names.front()));
}

// The model directly after the verb (TO PREDICT has it after USING).
Result<ModelName> TakeModelOf(Cursor& cursor, std::string_view verb) {
  if (cursor.AtWord("USING") && cursor.Peek(1).kind != Token::Kind::kEnd) {
    return cursor.Unexpected("a model's name")
        .Hint(fmt::format("it stands right behind {0}, without USING: {0} {1}", verb,
                          cursor.Peek(1).text));
  }
  return cursor.TakeModelName();
}

Result<ExtendedStatement> ParseEvaluate(Cursor& cursor, Select select) {
  EvaluateStatement statement;
  statement.select = std::move(select);
  ASSIGN_OR_RETURN(statement.model, TakeModelOf(cursor, "TO EVALUATE"));
  const ClauseRules rules = {.verb = "TO EVALUATE",
                             .allowed = {Clause::kWith, Clause::kLabel, Clause::kInto},
                             .into_operand = Operand::kName};
  ASSIGN_OR_RETURN(Clauses clauses, ParseClauses(cursor, rules));
  statement.attributes = std::move(clauses.attributes);
  statement.label = std::move(clauses.label);
  statement.into = FirstName(std::move(clauses.into_names));
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseReport(Cursor& cursor, Select select) {
  ModelReportStatement statement;
  statement.select = std::move(select);
  ASSIGN_OR_RETURN(statement.model, TakeModelOf(cursor, "TO EXPLAIN"));
  const ClauseRules rules = {.verb = "TO EXPLAIN",
                             .allowed = {Clause::kWith, Clause::kUsing, Clause::kInto},
                             .using_operand = Operand::kName,
                             .into_operand = Operand::kName};
  ASSIGN_OR_RETURN(Clauses clauses, ParseClauses(cursor, rules));
  statement.attributes = std::move(clauses.attributes);
  statement.explainer = std::move(clauses.using_name);
  statement.into = FirstName(std::move(clauses.into_names));
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseRun(Cursor& cursor, Select select, const Span& verb) {
  RunStatement statement;
  statement.verb = verb;
  statement.select = std::move(select);
  ASSIGN_OR_RETURN(statement.image, cursor.TakeName("an image's name"));
  const ClauseRules rules = {.verb = "TO RUN",
                             .allowed = {Clause::kCommand, Clause::kInto},
                             .into_operand = Operand::kNames};
  ASSIGN_OR_RETURN(Clauses clauses, ParseClauses(cursor, rules));
  statement.command = std::move(clauses.command);
  statement.into = std::move(clauses.into_names);
  return ExtendedStatement(std::move(statement));
}

Result<ExtendedStatement> ParseOptimize(Cursor& cursor, Select select, bool maximize,
                                        const Span& verb) {
  OptimizeStatement statement;
  statement.verb = verb;
  statement.select = std::move(select);
  statement.maximize = maximize;
  ASSIGN_OR_RETURN(statement.objective, ParseExpression(cursor, Dialect::kOptimize));
  const ClauseRules rules = {
      .verb = maximize ? "TO MAXIMIZE" : "TO MINIMIZE",
      .allowed = {Clause::kConstraint, Clause::kWith, Clause::kUsing, Clause::kInto},
      .using_operand = Operand::kName,
      .into_operand = Operand::kName};
  ASSIGN_OR_RETURN(Clauses clauses, ParseClauses(cursor, rules));
  if (!Has(clauses, Clause::kWith)) {
    return Missing(cursor, rules.verb, "WITH variables = '...', var_type = '...'");
  }
  if (clauses.into_names.empty()) {
    return Missing(cursor, rules.verb, "INTO and a table's name");
  }
  statement.constraints = std::move(clauses.constraints);
  statement.attributes = std::move(clauses.attributes);
  statement.solver = std::move(clauses.using_name);
  statement.into = std::move(clauses.into_names.front());
  return ExtendedStatement(std::move(statement));
}

}  // namespace

Select MakeSelect(std::string_view script, Span span) {
  Select select;
  select.text =
      script.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
  select.span = span;
  return select;
}

Result<ExtendedStatement> ParseQueryPiece(std::string_view script, const Piece& piece) {
  Cursor cursor(script, piece.clauses);
  const int64_t begin = piece.clauses.begin;
  Select select = MakeSelect(script, piece.query);
  if (!cursor.TryWord("TO") || cursor.AtWord("TRAIN")) {
    return ParseTrain(cursor, std::move(select));
  }
  if (cursor.TryWord("PREDICT")) {
    return ParsePredict(cursor, std::move(select));
  }
  if (cursor.TryWord("EVALUATE")) {
    return ParseEvaluate(cursor, std::move(select));
  }
  if (cursor.TryWord("EXPLAIN")) {
    return ParseReport(cursor, std::move(select));
  }
  if (cursor.TryWord("RUN")) {
    return ParseRun(cursor, std::move(select), cursor.SpanFrom(begin));
  }
  if (cursor.AtWord("MAXIMIZE") || cursor.AtWord("MINIMIZE")) {
    const bool maximize = cursor.Take().IsWord("MAXIMIZE");
    return ParseOptimize(cursor, std::move(select), maximize, cursor.SpanFrom(begin));
  }
  // The splitter saw a verb where the clause lexer reads a longer name: TO TRAIN-x.
  return cursor.Unexpected("TRAIN, PREDICT, EVALUATE, EXPLAIN, RUN, MAXIMIZE or MINIMIZE",
                           {kVerbs.begin(), kVerbs.end()});
}

}  // namespace sluice::parser
