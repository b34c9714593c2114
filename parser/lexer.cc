#include "parser/lexer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/letter_case.h"
#include "parser/keywords.h"

namespace sluice::parser {
namespace {

// PostgreSQL nests comments, SQLite does not: "/* see /* here */" is a complete comment there. Each
// such comment requires scanning the rest of the script, hence the limit.
constexpr int kMaxUnnestedComments = 8;
// libpg_query's scanner takes time quadratic in the nesting of comments: 100 seconds for 400 KB.
constexpr int kMaxScannedComments = 100;
// The text that an error quotes is cut to this length.
constexpr size_t kLongestPlace = 30;

bool IsSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsHigh(char c) {
  return static_cast<unsigned char>(c) >= 0x80U;
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// Blanks that editors and chat programs insert into copied statements.
constexpr std::array<std::string_view, 3> kWideBlanks = {"\xC2\xA0", "\xE3\x80\x80",
                                                         kByteOrderMark};
// Their curly quotes.
constexpr std::array<std::string_view, 4> kCurlyQuotes = {"\xE2\x80\x98", "\xE2\x80\x99",
                                                          "\xE2\x80\x9C", "\xE2\x80\x9D"};

template <size_t kSize>
size_t MatchAny(std::string_view text, const std::array<std::string_view, kSize>& candidates) {
  for (const std::string_view candidate : candidates) {
    if (text.starts_with(candidate)) {
      return candidate.size();
    }
  }
  return 0;
}

// Keywords that cannot precede a subscript in PostgreSQL, so that [ opens a SQLite name.
constexpr std::array<std::string_view, 19> kBeforeBracketName = {
    "SELECT", "DISTINCT", "FROM", "JOIN",   "ON",    "WHERE", "AND",    "OR",   "NOT", "BY",
    "AS",     "HAVING",   "INTO", "UPDATE", "TABLE", "SET",   "EXISTS", "WHEN", "THEN"};

bool OpensBracketName(const Token& previous) {
  switch (previous.kind) {
    case Token::Kind::kWord:
      return IsOneOf(previous.text, kBeforeBracketName);
    case Token::Kind::kSymbol:
      return previous.text != ")" && previous.text != "]";
    default:
      return false;
  }
}

}  // namespace

void ClauseState::See(const Token& token) {
  if (token.IsWord("MAXIMIZE") || token.IsWord("MINIMIZE")) {
    optimize_ = true;
    narrow_ = true;
  } else if (optimize_ && depth_ == 0) {
    if (token.IsWord("WITH") || token.IsWord("USING") || token.IsWord("INTO")) {
      narrow_ = false;
    } else if (token.IsWord("CONSTRAINT")) {
      narrow_ = true;
    }
  }
  if (token.IsSymbol("(") || token.IsSymbol("[")) {
    ++depth_;
  } else if (token.IsSymbol(")") || token.IsSymbol("]")) {
    depth_ = std::max(0, depth_ - 1);
  }
}

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || IsHigh(c);
}
bool IsNameCharacter(char c) {
  return IsNameStart(c) || IsDigit(c);
}

bool Token::IsWord(std::string_view upper_case) const {
  return kind == Kind::kWord && SameWord(text, upper_case);
}

Token Lexer::Make(Token::Kind kind, size_t end) {
  Token token;
  token.kind = kind;
  token.text = script_.substr(position_, end - position_);
  token.span = {static_cast<int64_t>(position_), static_cast<int64_t>(end)};
  position_ = end;
  return token;
}

Status Lexer::Unterminated(std::string_view what, std::string_view close) const {
  const size_t end = std::min(script_.size(), position_ + kLongestPlace);
  return SyntaxError(fmt::format("unterminated {}", what))
      .At({static_cast<int64_t>(position_), static_cast<int64_t>(end)})
      .Hint(fmt::format("it begins here and no {} follows that would end it", close));
}

void Lexer::SkipSpace() {
  while (position_ < script_.size() && IsSpace(script_[position_])) {
    ++position_;
  }
}

void Lexer::SkipToStatement() {
  SkipSpace();
  while (LooksAt(kByteOrderMark)) {
    position_ += kByteOrderMark.size();
    SkipSpace();
  }
}

Status Lexer::SkipBlockComment() {
  size_t at = position_ + 2;
  int depth = 1;
  int deepest = 1;
  while (depth > 0) {
    at = script_.find_first_of("*/", at);
    if (at == std::string_view::npos) {
      break;
    }
    if (script_[at] == '*' && At(at + 1) == '/') {
      --depth;
      at += 2;
    } else if (script_[at] == '/' && At(at + 1) == '*') {
      deepest = std::max(deepest, ++depth);
      at += 2;
    } else {
      ++at;
    }
  }
  if (depth > 0) {
    at = script_.find("*/", position_ + 2);
    if (at == std::string_view::npos || ++unnested_comments_ > kMaxUnnestedComments) {
      return Unterminated("comment", "*/");
    }
    at += 2;
    met_foreign_ = true;
  }
  met_foreign_ = met_foreign_ || deepest > kMaxScannedComments;
  position_ = at;
  return OkStatus();
}

Status Lexer::SkipBlanks(bool clause) {
  while (true) {
    SkipSpace();
    if (LooksAt("--")) {
      position_ = std::min(script_.size(), script_.find_first_of("\r\n", position_));
    } else if (LooksAt("/*")) {
      RETURN_IF_ERROR(SkipBlockComment());
    } else if (clause && IsHigh(At(position_)) &&
               MatchAny(script_.substr(position_), kWideBlanks) > 0) {
      position_ += MatchAny(script_.substr(position_), kWideBlanks);
    } else {
      return OkStatus();
    }
  }
}

Result<Token> Lexer::Quoted(Token::Kind kind, size_t open, bool doubled, bool backslash) {
  const char quote = script_[open];
  size_t at = open + 1;
  while (at < script_.size()) {
    if (script_[at] == quote) {
      if (!doubled || At(at + 1) != quote) {
        return Make(kind, at + 1);
      }
      at += 2;
    } else {
      at += backslash && script_[at] == '\\' ? 2 : 1;
    }
  }
  return Unterminated(kind == Token::Kind::kString ? "string" : "quoted name",
                      std::string_view(&quote, 1));
}

// E'...', and the strings on the following lines, which continue it under the same rules.
Result<Token> Lexer::EscapeString(size_t open) {
  const size_t begin = position_;
  while (true) {
    RETURN_IF_ERROR(Quoted(Token::Kind::kString, open, true, true).status());
    const size_t end = position_;
    SkipSpace();
    const bool continued =
        script_.substr(end, position_ - end).find_first_of("\r\n") != std::string_view::npos;
    open = position_;
    position_ = begin;
    if (!continued || At(open) != '\'') {
      return Make(Token::Kind::kString, end);
    }
  }
}

Result<Token> Lexer::Backquoted() {
  if (no_backquote_ahead_ || script_.find('`', position_ + 1) == std::string_view::npos) {
    no_backquote_ahead_ = true;
    return Make(Token::Kind::kSymbol, position_ + 1);  // an operator's character in PostgreSQL
  }
  met_foreign_ = true;
  return Quoted(Token::Kind::kQuoted, position_, false, false);
}

Result<Token> Lexer::Bracketed(const Token& previous) {
  if (array_depth_ == 0 && OpensBracketName(previous) && !no_bracket_ahead_) {
    const size_t close = script_.find(']', position_);
    if (close != std::string_view::npos) {
      met_foreign_ = true;
      return Make(Token::Kind::kQuoted, close + 1);
    }
    no_bracket_ahead_ = true;
  }
  ++array_depth_;
  return Make(Token::Kind::kSymbol, position_ + 1);
}

Result<Token> Lexer::DollarQuoted() {
  size_t at = position_ + 1;
  if (IsNameStart(At(at))) {
    while (IsNameCharacter(At(at))) {
      ++at;
    }
  }
  if (At(at) != '$') {  // $1, or SQLite's $name
    while (IsNameCharacter(At(at))) {
      ++at;
    }
    return Make(Token::Kind::kNumber, at);
  }
  const std::string_view tag = script_.substr(position_, at + 1 - position_);
  const size_t close = script_.find(tag, at + 1);
  if (close == std::string_view::npos) {
    return Unterminated("dollar-quoted string", tag);
  }
  return Make(Token::Kind::kString, close + tag.size());
}

Result<Token> Lexer::NextSql(const Token& previous) {
  RETURN_IF_ERROR(SkipBlanks(false));
  if (position_ >= script_.size()) {
    return Make(Token::Kind::kEnd, script_.size());
  }
  const char c = script_[position_];
  if (IsNameStart(c)) {
    size_t end = position_ + 1;
    while (end < script_.size() && (IsNameCharacter(script_[end]) || script_[end] == '$')) {
      ++end;
    }
    if (end == position_ + 1 && UpperAscii(c) == 'E' && At(end) == '\'') {
      return EscapeString(end);
    }
    return Make(Token::Kind::kWord, end);
  }
  if (IsDigit(c)) {
    size_t end = position_ + 1;
    bool letters = false;  // after letters a dollar belongs to the name; after digits it may begin
                           // a string
    while (IsNameCharacter(At(end)) || (At(end) == '.' && !IsNameStart(At(end + 1))) ||
           (letters && At(end) == '$')) {
      const bool exponent = UpperAscii(At(end)) == 'E' && IsDigit(At(end + 1));
      letters = letters || (IsNameStart(At(end)) && !exponent);
      ++end;
    }
    return Make(Token::Kind::kNumber, end);
  }
  switch (c) {
    case '\'':
      return Quoted(Token::Kind::kString, position_, true, false);
    case '"':
      return Quoted(Token::Kind::kQuoted, position_, true, false);
    case '`':
      return Backquoted();
    case '[':
      return Bracketed(previous);
    case ']':
      array_depth_ = std::max(0, array_depth_ - 1);
      return Make(Token::Kind::kSymbol, position_ + 1);
    case ';':
      array_depth_ = 0;
      return Make(Token::Kind::kSymbol, position_ + 1);
    case '$':
      return DollarQuoted();
    default:
      return Make(Token::Kind::kSymbol, position_ + 1);
  }
}

Result<Token> Lexer::ClauseName(bool narrow) {
  const std::string_view joins = narrow ? "." : "./:-";
  size_t end = position_;
  while (end < script_.size()) {
    const char c = script_[end];
    if (IsHigh(c)) {
      if (MatchAny(script_.substr(end), kWideBlanks) > 0) {
        break;
      }
      if (const size_t curly = MatchAny(script_.substr(end), kCurlyQuotes); curly > 0) {
        return SyntaxError("a curly quotation mark stands where none can")
            .At({static_cast<int64_t>(end), static_cast<int64_t>(end + curly)})
            .Hint("write straight quotes: '...' or \"...\"");
      }
    } else if (!IsNameCharacter(c) &&
               !(joins.find(c) != std::string_view::npos && IsNameCharacter(At(end + 1)) &&
                 MatchAny(script_.substr(end + 1), kWideBlanks) == 0)) {
      break;
    }
    ++end;
  }
  return Make(Token::Kind::kWord, end);
}

Result<Token> Lexer::ClauseNumber() {
  size_t end = position_;
  const auto skip_digits = [this, &end] {
    while (IsDigit(At(end))) {
      ++end;
    }
  };
  skip_digits();
  if (At(end) == '.') {
    ++end;
    skip_digits();
  }
  if (UpperAscii(At(end)) == 'E') {
    const size_t sign = At(end + 1) == '+' || At(end + 1) == '-' ? 1 : 0;
    if (IsDigit(At(end + 1 + sign))) {
      end += 1 + sign;
      skip_digits();
    }
  }
  if (IsNameCharacter(At(end)) && MatchAny(script_.substr(end), kWideBlanks) == 0) {
    while (IsNameCharacter(At(end))) {
      ++end;
    }
    const Token bad = Make(Token::Kind::kWord, end);
    return SyntaxError(fmt::format("'{}' is neither a number nor a name",
                                   bad.text.substr(0, kLongestPlace)))
        .At(bad.span)
        .Hint("a name begins with a letter, or is quoted; so is any other text");
  }
  return Make(Token::Kind::kNumber, end);
}

Result<Token> Lexer::NextClause(bool narrow) {
  RETURN_IF_ERROR(SkipBlanks(true));
  if (position_ >= script_.size()) {
    return Make(Token::Kind::kEnd, script_.size());
  }
  const char c = script_[position_];
  if (IsNameStart(c)) {
    return ClauseName(narrow);
  }
  if (IsDigit(c) || (c == '.' && IsDigit(At(position_ + 1)))) {
    return ClauseNumber();
  }
  switch (c) {
    case '\'':
      return Quoted(Token::Kind::kString, position_, true, true);
    case '"':
      return Quoted(Token::Kind::kQuoted, position_, true, true);
    case '`':
      return Quoted(Token::Kind::kQuoted, position_, true, false);
    default:
      break;
  }
  for (const std::string_view pair : {"<=", ">=", "<>", "!=", "**"}) {
    if (LooksAt(pair)) {
      return Make(Token::Kind::kSymbol, position_ + 2);
    }
  }
  return Make(Token::Kind::kSymbol, position_ + 1);
}

}  // namespace sluice::parser
