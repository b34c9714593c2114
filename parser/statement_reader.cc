#include "parser/statement_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/letter_case.h"
#include "parser/missing_to.h"
#include "parser/postgres_scanner.h"
#include "parser/statement_shape.h"

namespace sluice::parser {
namespace {

using TokenKind = Token::Kind;

// Each overrun may require scanning the rest of the script a second time.
constexpr int kMaxOverruns = 8;

// The clauses are parsed into a tree, which is larger than its text; the select is not.
constexpr int64_t kMaxClauseBytes = 1 << 20;

// Where the words of a statement tell what it is: CREATE OR REPLACE MODEL TYPE and a name is the
// longest.
constexpr size_t kHeadTokens = 8;

// What may follow TRAIN type or LABEL target; after an alias all of it would be invalid.
bool GoesOnAsClause(const Token& next) {
  return next.IsWord("WITH") || next.IsWord("COLUMN") || next.IsWord("INTO") ||
         next.IsWord("USING") || next.IsWord("LABEL") || next.IsWord("TRAIN") || next.IsWord("TO");
}

// "INOT" for INTO: probably a clause, although the database would only see a syntax error.
bool IsNearClauseKeyword(const Token& next) {
  return next.kind == TokenKind::kWord &&
         NearestName(next.text, {"WITH", "COLUMN", "INTO", "USING"}).has_value();
}

}  // namespace

Result<Token> StatementReader::ReadClauses(bool stop_at_as) {
  ClauseState state;
  piece_.clauses = Span();
  while (true) {
    ASSIGN_OR_RETURN(Token token, lexer_.NextClause(state.narrow()));
    if (!piece_.clauses.valid()) {
      piece_.clauses = {token.span.begin, token.span.begin};
    }
    if (token.EndsStatement() || (stop_at_as && state.depth() == 0 && token.IsWord("AS"))) {
      piece_.span.end = piece_.clauses.end;
      return token;
    }
    piece_.clauses.end = token.span.end;
    if (piece_.clauses.end - piece_.clauses.begin > kMaxClauseBytes) {
      return SyntaxError(fmt::format("the clauses of this statement have more than {} bytes",
                                     kMaxClauseBytes))
          .SqlState("54000")
          .At(token.span)
          .Hint("the select may be longer; store data in a table");
    }
    state.See(token);
  }
}

// TO TRAIN and the other verbs; SIMILAR TO is the database's, right or wrong.
Result<bool> StatementReader::AtVerb(const Token& to, const Token& previous) {
  if (previous.IsWord("SIMILAR")) {
    return false;
  }
  Lexer ahead = lexer_;
  ASSIGN_OR_RETURN(const Token verb, ahead.NextSql(to));
  if (verb.kind != TokenKind::kWord) {
    return false;
  }
  if (IsOneOf(verb.text, kVerbs)) {
    return true;
  }
  for (const auto& [other, ours] : kVerbsElsewhere) {
    if (verb.IsWord(other)) {
      return SyntaxError(fmt::format("unknown verb '{}' after TO", verb.text))
          .At(verb.span)
          .Hint(fmt::format("did you mean {}?", ours));
    }
  }
  const std::vector<std::string> verbs(kVerbs.begin(), kVerbs.end());
  const std::optional<std::string> near = NearestName(verb.text, verbs);
  if (!near || verb.text.size() < kMinMisspelt || IsOneOf(verb.text, kIntervalFields)) {
    return false;
  }
  return SyntaxError(fmt::format("unknown verb '{}' after TO", verb.text))
      .At(verb.span)
      .Hint(fmt::format("did you mean {}?", *near));
}

// TRAIN type and LABEL target without TO, distinguished from aliases by the following tokens.
Result<bool> StatementReader::AtShortForm(const Token& keyword) {
  Lexer ahead = lexer_;
  const Result<Token> name = ahead.NextClause(false);
  const Result<Token> next = name.ok() ? ahead.NextClause(false) : name;
  if (!next.ok()) {  // if the database cannot read it either, the next step reports it
    return false;
  }
  const Token& token = name.value();
  const bool train = keyword.IsWord("TRAIN");
  const bool names = token.kind == TokenKind::kQuoted ||
                     (!train && token.kind == TokenKind::kString) ||
                     (token.kind == TokenKind::kWord && !IsOneOf(token.text, kFollowAlias));
  if (!names) {
    return false;
  }
  if (train || keyword.IsWord("LABEL")) {
    return next.value().EndsStatement() || GoesOnAsClause(next.value()) ||
           IsNearClauseKeyword(next.value());
  }
  if (!GoesOnAsClause(next.value())) {
    return false;
  }
  return SyntaxError(fmt::format("unknown clause '{}'", keyword.text))
      .At(keyword.span)
      .Hint("did you mean LABEL?");
}

Result<bool> StatementReader::AtClause(const Token& token, const Token& previous, int depth) {
  if (depth > 0 || token.kind != TokenKind::kWord || previous.IsSymbol(".")) {
    return false;
  }
  if (token.IsWord("TO")) {
    return AtVerb(token, previous);
  }
  if (!EndsOperand(previous)) {
    return false;
  }
  if (token.IsWord("TRAIN") ||
      (UpperAscii(token.text.front()) == 'L' && token.text.size() >= kMinMisspelt &&
       NearestName(token.text, {"LABEL"}).has_value())) {
    return AtShortForm(token);
  }
  if (BeginsTraining(lexer_, token)) {
    return true;
  }
  if (token.IsWord("SHOW")) {
    Lexer ahead = lexer_;
    ASSIGN_OR_RETURN(const Token noun, ahead.NextSql(token));
    if (noun.kind == TokenKind::kWord && IsOneOf(noun.text, kModelNouns)) {
      return SyntaxError(fmt::format("SHOW {} cannot follow a query", noun.text))
          .At(token.span)
          .Hint("it is a statement of its own: end the query with ';'");
    }
  }
  return false;
}

Result<Piece> StatementReader::ReadQueryOrPlain(size_t text_begin, bool follow_bodies) {
  const Token& first = head_.front();
  const bool query = IsOneOf(first.text, kQueryStarts) || first.IsSymbol("(");
  const bool looks_for_clauses =
      !plain_ && !(first.kind == TokenKind::kWord && IsOneOf(first.text, kTakeTo));
  const bool reports_rows = piece_.explain;
  BodyTracker body(follow_bodies && overruns_.open_bodies < kMaxOverruns ? head_
                                                                         : std::vector<Token>());
  RowsTracker rows;
  lexer_.Seek(body_begin_);
  Token previous;
  int depth = 0;
  int64_t end = 0;
  bool unbalanced = false;  // libpg_query's scanner includes everything after such a ')'
  while (true) {
    ASSIGN_OR_RETURN(Token token, lexer_.NextSql(previous));
    end = token.span.begin;
    if (token.kind == TokenKind::kEnd && body.inside()) {
      ++overruns_.open_bodies;
      return ReadQueryOrPlain(text_begin, false);
    }
    if (token.kind == TokenKind::kEnd || (token.IsSymbol(";") && depth == 0 && !body.inside())) {
      break;
    }
    if (looks_for_clauses) {
      if (query && rows.rows() && depth == 0 && token.kind == TokenKind::kWord &&
          EndsOperand(previous)) {
        RETURN_IF_ERROR(CheckAliasIsNoClause(lexer_, token));
      }
      ASSIGN_OR_RETURN(const bool clause, AtClause(token, previous, depth));
      if (clause && (query || token.IsWord("TO"))) {
        if (!query) {
          return SyntaxError("a TO clause must follow a query, and this statement has none")
              .At(token.span)
              .Hint("begin with SELECT: SELECT ... TO TRAIN type LABEL target INTO model");
        }
        RETURN_IF_ERROR(RequirePlainExplain());
        piece_.kind = Piece::Kind::kQuery;
        piece_.query = {first.span.begin, previous.span.end};
        lexer_.Seek(static_cast<size_t>(token.span.begin));
        RETURN_IF_ERROR(ReadClauses(false).status());
        return piece_;
      }
    }
    rows.See(token, previous, depth);
    if (token.IsSymbol("(")) {
      rows.SeeParenthesis();
      ++depth;
    } else if (token.IsSymbol(")")) {
      unbalanced = unbalanced || depth == 0;
      depth = std::max(0, depth - 1);
    }
    body.See(token, previous);
    previous = token;
  }
  piece_.kind = Piece::Kind::kPlain;
  piece_.span = {static_cast<int64_t>(text_begin), end};
  piece_.explain = false;
  piece_.explain_json = false;
  piece_.explain_analyze = false;
  piece_.returns_rows = reports_rows || rows.rows();
  piece_.foreign = lexer_.met_foreign() || body.met() || unbalanced;
  return piece_;
}

// The whole statement as the database's text.
Result<Piece> StatementReader::ReadAsPlain(size_t text_begin) {
  const bool explain = piece_.explain;
  piece_ = Piece();
  piece_.explain = explain;
  plain_ = true;
  lexer_.ForgetForeign();
  return ReadQueryOrPlain(text_begin, true);
}

Result<Piece> StatementReader::Read(size_t text_begin, const Token& first) {
  if (first.IsWord("PREPARE")) {
    ASSIGN_OR_RETURN(const std::optional<Piece> prepare, ReadPrepareOfOurs(text_begin, first));
    if (prepare.has_value()) {
      return *prepare;
    }
  }
  const auto begin = static_cast<size_t>(first.span.begin);
  Result<Piece> ours = ReadByClauses(text_begin, first);
  const Lexer after = lexer_;
  if ((ours.ok() && ours->kind == Piece::Kind::kPlain) || head_.size() < kHeadTokens ||
      HasGrammarOfSettings() || after.position() - begin > kMaxParsedBytes ||
      overruns_.longer_texts >= kMaxOverruns) {
    return ours;
  }
  const Result<Piece> plain = ReadAsPlain(text_begin);
  if (plain.ok() && PostgresParses(lexer_.TextOf({first.span.begin, plain->span.end}))) {
    return plain;
  }
  overruns_.longer_texts += lexer_.position() > after.position() ? 1 : 0;
  lexer_ = after;
  return ours;
}

Result<Piece> StatementReader::ReadByClauses(size_t text_begin, const Token& first) {
  lexer_.ForgetForeign();
  piece_.span = first.span;
  body_begin_ = static_cast<size_t>(first.span.begin);
  if (first.IsWord("EXPLAIN")) {
    RETURN_IF_ERROR(ReadExplain(first));
  } else {
    lexer_.Seek(body_begin_);
  }
  Token token;
  while (head_.size() < kHeadTokens) {
    if (!token.EndsStatement() || head_.empty()) {
      ASSIGN_OR_RETURN(token, lexer_.NextSql(token));
    }
    head_.push_back(token);  // repeats the end of a short statement
  }
  piece_.body_begin = head_.front().span.begin;
  const size_t replace = head_[1].IsWord("OR") && head_[2].IsWord("REPLACE") ? 3 : 1;
  const bool create_model = head_[0].IsWord("CREATE") && head_[replace].IsWord("MODEL");
  ASSIGN_OR_RETURN(const bool command, ReadCommand());
  if (create_model || command) {
    RETURN_IF_ERROR(RequirePlainExplain());
  }
  if (create_model) {
    return AtModelType(replace + 1) ? ReadCreateModelType() : ReadCreateModel();
  }
  if (command) {
    piece_.kind = Piece::Kind::kCommand;
    lexer_.Seek(static_cast<size_t>(head_.front().span.begin));
    RETURN_IF_ERROR(ReadClauses(false).status());
    return piece_;
  }
  return ReadQueryOrPlain(text_begin, true);
}

}  // namespace sluice::parser
