#include <fmt/core.h>

#include <utility>

#include "parser/cursor.h"
#include "parser/lexer.h"
#include "parser/parse_statement.h"
#include "parser/quoting.h"

// CREATE [OR REPLACE] MODEL TYPE name LANGUAGE language AS $$ source $$
namespace sluice::parser {
namespace {

// '...', E'...' or $tag$...$tag$.
void ReadBody(std::string_view script, Span quoted, CreateModelTypeStatement* statement) {
  const std::string_view token = script.substr(static_cast<size_t>(quoted.begin),
                                               static_cast<size_t>(quoted.end - quoted.begin));
  const size_t open = token.front() == '$' ? token.find('$', 1) + 1 : token.find('\'') + 1;
  const size_t close = token.front() == '$' ? open : 1;
  const std::string_view content = token.substr(open, token.size() - open - close);
  statement->body_span = {quoted.begin + static_cast<int64_t>(open),
                          quoted.end - static_cast<int64_t>(close)};
  statement->verbatim =
      token.front() == '$' || content.find_first_of("'\\") == std::string_view::npos;
  statement->body = statement->verbatim ? std::string(content) : Unquote(token.substr(open - 1));
}

}  // namespace

Result<ExtendedStatement> ParseCreateModelTypePiece(std::string_view script, const Piece& piece) {
  Cursor cursor(script, piece.clauses);
  CreateModelTypeStatement statement;
  RETURN_IF_ERROR(cursor.ExpectWord("CREATE"));
  if (cursor.TryWord("OR")) {
    RETURN_IF_ERROR(cursor.ExpectWord("REPLACE"));
    statement.or_replace = true;
  }
  RETURN_IF_ERROR(cursor.ExpectWord("MODEL"));
  RETURN_IF_ERROR(cursor.ExpectWord("TYPE"));
  ASSIGN_OR_RETURN(statement.type, cursor.TakeModelName("a model type's name"));
  if (!cursor.TryWord("LANGUAGE")) {
    return cursor.Unexpected("LANGUAGE and onnx, keras or pytorch", {"LANGUAGE"});
  }
  ASSIGN_OR_RETURN(statement.language, cursor.TakeName("a language"));
  if (!cursor.AtEnd() || !piece.query.valid()) {
    return cursor.Unexpected("AS and the source as a string", {"AS"});
  }
  ReadBody(script, piece.query, &statement);
  return ExtendedStatement(std::move(statement));
}

}  // namespace sluice::parser
