#include <fmt/core.h>

#include <utility>

#include "parser/clauses.h"
#include "parser/cursor.h"
#include "parser/parse_statement.h"
#include "parser/quoting.h"

// CREATE [OR REPLACE] MODEL model [TRANSFORM (columns)] [OPTIONS (attrs)] AS select
namespace sluice::parser {
namespace {

// An option that is not an attribute of the model but a name: a string or a bare word.
Result<Name> NameFromOption(const Attribute& option) {
  Name name;
  name.span = option.value.span;
  if (const auto* text = std::get_if<std::string>(&option.value.value)) {
    name.text = *text;
    name.parts = {*text};
    name.quoted = true;
  } else if (const auto* word = std::get_if<AttributeValue::Word>(&option.value.value)) {
    name.text = word->text;
    name.parts = SplitAtDots(word->text);
  }
  if (name.text.empty()) {
    return SyntaxError(fmt::format("option {} must be a name, quoted or not", option.name.text))
        .At(option.value.span);
  }
  return name;
}

// Some OPTIONS replace LABEL and the model type of other statements; the rest are attributes.
Status LiftOptions(TrainStatement& statement) {
  std::vector<Attribute> attributes;
  for (Attribute& option : statement.attributes) {
    std::optional<Name>* field = nullptr;
    if (option.name.text == "model_type") {
      field = &statement.model_type;
    } else if (option.name.text == "label") {
      field = &statement.label;
    }
    if (field == nullptr) {
      attributes.push_back(std::move(option));
      continue;
    }
    ASSIGN_OR_RETURN(*field, NameFromOption(option));
  }
  statement.attributes = std::move(attributes);
  return OkStatus();
}

Status ParseTransform(Cursor& cursor, int64_t begin, TrainStatement& statement) {
  ColumnClause clause;
  RETURN_IF_ERROR(cursor.ExpectSymbol("("));
  ASSIGN_OR_RETURN(clause.columns, ParseColumns(cursor));
  RETURN_IF_ERROR(cursor.ExpectSymbol(")"));
  clause.span = cursor.SpanFrom(begin);
  statement.columns.push_back(std::move(clause));
  return OkStatus();
}

// Several systems have CREATE MODEL, each with different clauses.
Status CreateModelHint(Status unexpected) {
  return unexpected.diagnostics().front().hint.empty()
             ? std::move(unexpected)
                   .Hint(
                       "here it is CREATE MODEL m OPTIONS (label='y') AS SELECT ..., or SELECT "
                       "... LABEL y INTO m")
             : unexpected;
}

}  // namespace

Result<ExtendedStatement> ParseCreateModelPiece(std::string_view script, const Piece& piece) {
  Cursor cursor(script, piece.clauses);
  TrainStatement statement;
  statement.create_form = true;
  RETURN_IF_ERROR(cursor.ExpectWord("CREATE"));
  if (cursor.TryWord("OR")) {
    RETURN_IF_ERROR(cursor.ExpectWord("REPLACE"));
    statement.or_replace = true;
  }
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  ASSIGN_OR_RETURN(statement.into, cursor.TakeModelName());
  bool options = false;
  while (!cursor.AtEnd()) {
    const Span keyword = cursor.Peek().span;
    if (statement.columns.empty() && cursor.TryWord("TRANSFORM")) {
      RETURN_IF_ERROR(ParseTransform(cursor, keyword.begin, statement));
    } else if (!options && cursor.TryWord("OPTIONS")) {
      options = true;
      RETURN_IF_ERROR(cursor.ExpectSymbol("("));
      ASSIGN_OR_RETURN(statement.attributes, ParseAttributes(cursor));
      RETURN_IF_ERROR(cursor.ExpectSymbol(")"));
      RETURN_IF_ERROR(LiftOptions(statement));
    } else if (cursor.AtWord("TRANSFORM") || cursor.AtWord("OPTIONS")) {
      return SyntaxError(fmt::format("{} is given twice", cursor.Peek().text)).At(keyword);
    } else {
      return CreateModelHint(cursor.Unexpected("TRANSFORM (...), OPTIONS (...) or AS and a query",
                                               {"TRANSFORM", "OPTIONS", "AS"}));
    }
  }
  if (!piece.query.valid()) {
    return Missing(cursor, "CREATE MODEL", "AS and a query");
  }
  statement.select = MakeSelect(script, piece.query);
  return ExtendedStatement(std::move(statement));
}

}  // namespace sluice::parser
