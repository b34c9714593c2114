#include "parser/missing_to.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/letter_case.h"
#include "parser/keywords.h"
#include "parser/statement_shape.h"

namespace sluice::parser {
namespace {

using TokenKind = Token::Kind;

// These begin no clause there by themselves; directly before LABEL each of them is a mistake.
constexpr std::array<std::string_view, 4> kOthers = {"LABEL", "COLUMN", "CMD", "CONSTRAINT"};

// The tokens after the word: enough to distinguish PREDICT m USING n from an alias.
struct Following {
  Token first;
  Token second;
  Token third;
};

bool IsName(const Token& token) {
  return token.kind == TokenKind::kQuoted ||
         (token.kind == TokenKind::kWord && !IsOneOf(token.text, kFollowAlias));
}

// JOIN u train USING (id) is the database's own.
bool BeginsUsing(const Token& first, const Token& second) {
  return first.IsWord("USING") && IsName(second);
}

Following LookAhead(Lexer lexer) {
  Following following;
  for (Token* token : {&following.first, &following.second, &following.third}) {
    Result<Token> next = lexer.NextClause(false);
    if (!next.ok()) {
      *token = Token{TokenKind::kSymbol, {}, {}};  // neither a name nor an end
      break;
    }
    *token = *next;
    if (token->EndsStatement()) {
      break;
    }
  }
  return following;
}

// Clauses that may follow every verb: WITH a = 1, COLUMN a, LABEL y, USING m.
bool GoesOnWithClause(const Following& next) {
  if (next.first.IsWord("LABEL")) {
    return IsName(next.second) || next.second.kind == TokenKind::kString;
  }
  if (next.first.IsWord("WITH")) {
    return next.second.kind == TokenKind::kWord && next.third.IsSymbol("=");
  }
  if (next.first.IsWord("COLUMN")) {
    return IsName(next.second) || next.second.IsSymbol("*");
  }
  return BeginsUsing(next.first, next.second);
}

// The verb's own operand, followed by a clause or the end.
bool GoesOnWithOperand(const Token& verb, const Following& next) {
  const Token& second = next.second;
  if (verb.IsWord("RUN")) {
    return (IsName(next.first) || next.first.kind == TokenKind::kString) &&
           (second.EndsStatement() || second.IsWord("CMD") || second.IsWord("INTO"));
  }
  if (!IsName(next.first)) {
    return false;
  }
  if (verb.IsWord("PREDICT")) {
    return second.IsWord("WITH") || BeginsUsing(second, next.third);
  }
  if (verb.IsWord("EVALUATE") || verb.IsWord("EXPLAIN")) {
    return second.EndsStatement() || second.IsWord("WITH") || second.IsWord("LABEL") ||
           second.IsWord("INTO") || BeginsUsing(second, next.third);
  }
  if (verb.IsWord("MAXIMIZE") || verb.IsWord("MINIMIZE")) {
    constexpr std::array<std::string_view, 5> kOperators = {"(", "*", "+", "-", "/"};
    return second.kind == TokenKind::kSymbol && IsOneOf(second.text, kOperators);
  }
  return false;  // TRAIN type: TO may be omitted
}

}  // namespace

Status CheckAliasIsNoClause(const Lexer& lexer, const Token& word) {
  const bool verb = IsOneOf(word.text, kVerbs);
  if (!verb && !IsOneOf(word.text, kOthers)) {
    return OkStatus();
  }
  const Following next = LookAhead(lexer);
  const std::string upper = UpperAscii(word.text);
  if (verb && (GoesOnWithClause(next) || GoesOnWithOperand(word, next))) {
    return SyntaxError(fmt::format("{} without TO reads as an alias", upper))
        .At(word.span)
        .Hint(fmt::format("did you forget TO? TO {0} ...; an alias of this name is written AS {1}",
                          upper, word.text));
  }
  if (!verb && next.first.IsWord("LABEL") && GoesOnWithClause(next)) {
    return SyntaxError(fmt::format("{} stands before LABEL as an alias", upper))
        .At(word.span)
        .Hint(fmt::format("leave it out, or write AS {} if an alias is meant", word.text));
  }
  return OkStatus();
}

bool BeginsTraining(const Lexer& lexer, const Token& keyword) {
  constexpr std::array<std::string_view, 4> kClauses = {"WITH", "COLUMN", "USING", "INTO"};
  constexpr std::array<std::string_view, 5> kNext = {"LABEL", "WITH", "COLUMN", "USING", "INTO"};
  if (!IsOneOf(keyword.text, kClauses)) {
    return false;
  }
  const Following next = LookAhead(lexer);
  const bool another = next.second.kind == TokenKind::kWord && IsOneOf(next.second.text, kNext);
  if (keyword.IsWord("WITH")) {
    return next.first.kind == TokenKind::kWord && next.second.IsSymbol("=");
  }
  if (keyword.IsWord("COLUMN")) {
    return (IsName(next.first) || next.first.IsSymbol("*")) &&
           (another || next.second.IsWord("FOR") || next.second.IsSymbol(",") ||
            next.second.IsSymbol("("));
  }
  return IsName(next.first) && another;
}

}  // namespace sluice::parser
