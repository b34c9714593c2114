#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/letter_case.h"
#include "parser/statement_reader.h"
#include "parser/statement_shape.h"

// Statements of ours that begin with a word of their own: SHOW MODELS, CREATE MODEL and the like.
namespace sluice::parser {
namespace {

using TokenKind = Token::Kind;

// SHOW MODELS; SHOW models.x is a parameter of the database, and no parameter of one word is as
// near to one of ours as SHOW MODLES.
bool IsShowOfOurs(const Token& noun, const Token& next) {
  if (noun.kind != TokenKind::kWord || next.IsSymbol(".")) {
    return false;
  }
  return IsOneOf(noun.text, kModelNouns) ||
         (noun.text.size() >= kMinMisspelt && noun.text.find('_') == std::string_view::npos &&
          NearestName(noun.text, {kModelNouns.begin(), kModelNouns.end()}).has_value());
}

}  // namespace

// SHOW MODELS, SET sluice.x = 1 and RESET sluice.x are sentences of PostgreSQL's grammar, too: of
// parameters that it does not have.
bool StatementReader::HasGrammarOfSettings() const {
  return head_[0].IsWord("SHOW") || head_[0].IsWord("SET") || head_[0].IsWord("RESET");
}

// Whether head_ begins a statement of ours that contains no query.
Result<bool> StatementReader::ReadCommand() {
  const Token& first = head_[0];
  const Token& second = head_[1];
  if (IsOneOf(first.text, kEndsOfJobs) && second.IsWord("JOB") &&
      head_[2].kind == TokenKind::kNumber) {
    return SyntaxError(fmt::format("unknown statement {} JOB", UpperAscii(first.text)))
        .At(first.span)
        .Hint(fmt::format("did you mean CANCEL JOB {}?", head_[2].text));
  }
  if (first.IsWord("SHOW")) {
    return IsShowOfOurs(second, head_[2]);
  }
  if (first.IsWord("DESCRIBE") || first.IsWord("DESC")) {
    return second.IsWord("MODEL");
  }
  if (first.IsWord("EXPORT") || first.IsWord("IMPORT")) {
    return second.IsWord("MODEL");
  }
  if (first.IsWord("DROP") || first.IsWord("ALTER")) {
    return second.IsWord("MODEL") || (first.IsWord("DROP") && second.IsWord("JOB"));
  }
  if (first.IsWord("GRANT") || first.IsWord("REVOKE")) {
    // For a table of that name the statement is the database's: GRANT SELECT ON model TO ann.
    const auto on = std::find_if(head_.begin() + 2, head_.end(),
                                 [](const Token& token) { return token.IsWord("ON"); });
    if (head_.end() - on < 3) {
      return false;
    }
    const Token& name = on[2];
    return on[1].IsWord("MODEL") &&
           (name.kind == TokenKind::kWord || name.kind == TokenKind::kQuoted) &&
           !name.IsWord("TO") && !name.IsWord("FROM");
  }
  if (first.IsWord("SET")) {
    const size_t name = second.IsWord("SESSION") || second.IsWord("LOCAL") ? 2 : 1;
    const bool ours =
        head_[name].IsWord("SLUICE") && name + 1 < head_.size() && head_[name + 1].IsSymbol(".");
    if (ours && second.IsWord("LOCAL")) {
      return SyntaxError("SET LOCAL does not know Sluice's settings")
          .At(second.span)
          .Hint("they hold for the session: SET sluice.name = value");
    }
    return ours;
  }
  if (first.IsWord("RESET")) {
    return second.IsWord("SLUICE") && head_[2].IsSymbol(".");
  }
  return first.IsWord("CANCEL") || first.IsWord("WAIT");
}

// CREATE MODEL type OPTIONS ... is about a model that is called so.
bool StatementReader::AtModelType(size_t type) const {
  const Token& name = head_[type + 1];
  return head_[type].IsWord("TYPE") &&
         (name.kind == TokenKind::kWord || name.kind == TokenKind::kQuoted) &&
         !name.IsWord("OPTIONS") && !name.IsWord("TRANSFORM") && !name.IsWord("AS");
}

Result<Piece> StatementReader::ReadCreateModelType() {
  piece_.kind = Piece::Kind::kCreateModelType;
  lexer_.Seek(static_cast<size_t>(head_.front().span.begin));
  ASSIGN_OR_RETURN(const Token as, ReadClauses(true));
  if (!as.IsWord("AS")) {
    return piece_;  // the parser says what is missing
  }
  piece_.span.end = as.span.end;
  ASSIGN_OR_RETURN(const Token body, lexer_.NextSql(as));
  if (body.kind != TokenKind::kString) {
    lexer_.Seek(static_cast<size_t>(body.span.begin));
    return SyntaxError("expected the source of the model type as a string")
        .At(body.span)
        .Hint("AS $$ ... $$");
  }
  piece_.query = body.span;
  piece_.span.end = body.span.end;
  ASSIGN_OR_RETURN(const Token end, lexer_.NextSql(body));
  if (!end.EndsStatement()) {
    return SyntaxError("expected the end of the statement behind the model type's source")
        .At(end.span)
        .Hint("attributes stand in the statement that trains: TO TRAIN name WITH model.x=1");
  }
  return piece_;
}

Result<Piece> StatementReader::ReadCreateModel() {
  piece_.kind = Piece::Kind::kCreateModel;
  lexer_.Seek(static_cast<size_t>(head_.front().span.begin));
  ASSIGN_OR_RETURN(const Token as, ReadClauses(true));
  if (!as.IsWord("AS")) {
    return piece_;  // the parser says what is missing
  }
  piece_.span.end = as.span.end;
  Token previous = as;
  int depth = 0;
  while (true) {
    ASSIGN_OR_RETURN(Token token, lexer_.NextSql(previous));
    if (token.kind == TokenKind::kEnd || (token.IsSymbol(";") && depth == 0)) {
      break;
    }
    ASSIGN_OR_RETURN(const bool clause, AtClause(token, previous, depth));
    if (clause) {
      return SyntaxError("the query of CREATE MODEL takes no further clauses")
          .At(token.span)
          .Hint("label, model type and attributes stand in OPTIONS (name = value, ...)");
    }
    depth += token.IsSymbol("(") ? 1 : 0;
    depth = token.IsSymbol(")") ? std::max(0, depth - 1) : depth;
    if (!piece_.query.valid()) {
      piece_.query = token.span;
    }
    piece_.query.end = token.span.end;
    piece_.span.end = token.span.end;
    previous = token;
  }
  return piece_;
}

}  // namespace sluice::parser
