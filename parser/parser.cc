#include "parser/parser.h"

#include <fmt/core.h>

#include <utility>

#include "base/utf8.h"
#include "parser/cursor.h"
#include "parser/lexer.h"
#include "parser/parse_statement.h"
#include "parser/splitter.h"

namespace sluice::parser {
namespace {

// Databases, plans and messages are UTF-8 without NUL; other text is refused here.
Status CheckText(std::string_view script) {
  constexpr std::string_view kNotInRepertoire = "22021";
  if (script.size() > kMaxScriptBytes) {
    return SyntaxError(fmt::format("the script has {} bytes, the limit is {}", script.size(),
                                   kMaxScriptBytes))
        .SqlState("54000")
        .Hint("load data by COPY or .import, and split the script");
  }
  for (size_t at = 0; at < script.size();) {
    const Span span = {static_cast<int64_t>(at), static_cast<int64_t>(at + 1)};
    if (script[at] == '\0') {
      return SyntaxError("the script contains a NUL byte").SqlState(kNotInRepertoire).At(span);
    }
    const size_t length = CharacterAt(script, at).bytes;
    if (length == 0) {
      return SyntaxError(
                 fmt::format("byte 0x{:02X} is not UTF-8", static_cast<unsigned char>(script[at])))
          .SqlState(kNotInRepertoire)
          .At(span)
          .Hint("save the script as UTF-8");
    }
    at += length;
  }
  return OkStatus();
}

Statement MakePlain(std::string_view script, const Piece& piece) {
  PlainStatement plain;
  plain.text = MakeSelect(script, piece.span).text;
  plain.returns_rows = piece.returns_rows;
  plain.span = piece.span;
  return plain;
}

Result<ExtendedStatement> ParseExtended(std::string_view script, const Piece& piece) {
  switch (piece.kind) {
    case Piece::Kind::kQuery:
      return ParseQueryPiece(script, piece);
    case Piece::Kind::kCommand:
      return ParseCommandPiece(script, piece);
    case Piece::Kind::kCreateModelType:
      return ParseCreateModelTypePiece(script, piece);
    default:
      return ParseCreateModelPiece(script, piece);
  }
}

Result<Statement> ParsePiece(std::string_view script, const Piece& piece) {
  if (piece.kind == Piece::Kind::kPlain) {
    return MakePlain(script, piece);
  }
  ASSIGN_OR_RETURN(ExtendedStatement extended, ParseExtended(script, piece));
  const Span body = {piece.body_begin, piece.span.end};
  std::visit([body](auto& statement) { statement.span = body; }, extended);
  if (auto* train = std::get_if<TrainStatement>(&extended)) {
    train->written = MakeSelect(script, body).text;
  }
  if (piece.explain) {
    ExplainPlanStatement plan;
    plan.statement = std::move(extended);
    plan.json = piece.explain_json;
    plan.analyze = piece.explain_analyze;
    plan.span = piece.span;
    return Statement(std::move(plan));
  }
  return std::visit([](auto& statement) { return Statement(std::move(statement)); }, extended);
}

}  // namespace

Result<std::vector<Statement>> Parse(std::string_view script) {
  RETURN_IF_ERROR(CheckText(script));
  const SplitScript split = Split(script);
  std::vector<Statement> statements;
  statements.reserve(split.pieces.size());
  for (const Piece& piece : split.pieces) {
    ASSIGN_OR_RETURN(Statement statement, ParsePiece(script, piece));
    statements.push_back(std::move(statement));
  }
  RETURN_IF_ERROR(split.error);  // after every piece
  return statements;
}

Result<Name> ParseName(std::string_view text) {
  RETURN_IF_ERROR(CheckText(text));
  Lexer lexer(text);  // a Cursor needs text that a lexer has read without an error
  for (auto kind = Token::Kind::kWord; kind != Token::Kind::kEnd;) {
    ASSIGN_OR_RETURN(const Token token, lexer.NextClause(false));
    kind = token.kind;
  }
  Cursor cursor(text, Span{0, static_cast<int64_t>(text.size())});
  ASSIGN_OR_RETURN(Name name, cursor.TakeName("a name"));
  RETURN_IF_ERROR(cursor.ExpectEnd());
  return name;
}

}  // namespace sluice::parser
