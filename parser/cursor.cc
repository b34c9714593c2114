#include "parser/cursor.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "parser/keywords.h"
#include "parser/quoting.h"

namespace sluice::parser {
namespace {

// Longest piece of the user's text inside a message.
constexpr size_t kLongestExcerpt = 30;
// An element takes sixty times the memory of its shortest text; this many take a megabyte.
constexpr size_t kMaxElements = 1 << 14;

std::string Describe(const Token& token) {
  if (token.kind == Token::Kind::kEnd) {
    return "the end of the statement";
  }
  std::string_view text = token.text;
  if (text.size() > kLongestExcerpt) {
    return fmt::format("'{}...'", CutToBytes(text, kLongestExcerpt));
  }
  return fmt::format("'{}'", text);
}

bool Adjacent(const Token& left, const Token& right) {
  return left.span.end == right.span.begin;
}

}  // namespace

Cursor::Cursor(std::string_view script, const Span& clauses)
    : lexer_(script.substr(0, static_cast<size_t>(clauses.end))), end_(clauses.end) {
  lexer_.Seek(static_cast<size_t>(clauses.begin));
  ahead_ = {Read(), Read()};
}

// Scanned again rather than stored: a token is many times as large as its text.
Token Cursor::Read() {
  const Result<Token> token = lexer_.NextClause(state_.narrow());
  if (!token.ok() || token->kind == Token::Kind::kEnd) {  // it was scanned once without an error
    return {Token::Kind::kEnd, {}, {end_, end_}};
  }
  state_.See(*token);
  return *token;
}

Token Cursor::Take() {
  const Token token = ahead_[0];
  if (token.kind != Token::Kind::kEnd) {
    taken_ = token;
    ahead_[0] = ahead_[1];
    ahead_[1] = Read();
  }
  return token;
}

Status Cursor::CountElement() {
  if (++elements_ > kMaxElements) {
    return SyntaxError(
               fmt::format("the lists of this statement have more than {} elements", kMaxElements))
        .SqlState("54000")
        .At(Peek().span)
        .Hint("store data in a table");
  }
  return OkStatus();
}

bool Cursor::TryWord(std::string_view upper_case) {
  if (!AtWord(upper_case)) {
    return false;
  }
  Take();
  return true;
}

bool Cursor::TrySymbol(std::string_view symbol) {
  if (!AtSymbol(symbol)) {
    return false;
  }
  Take();
  return true;
}

Status Cursor::ExpectWord(std::string_view upper_case) {
  return TryWord(upper_case) ? OkStatus() : Unexpected(upper_case, {std::string(upper_case)});
}

Status Cursor::ExpectSymbol(std::string_view symbol) {
  return TrySymbol(symbol) ? OkStatus() : Unexpected(fmt::format("'{}'", symbol));
}

Status Cursor::ExpectEnd() const {
  return AtEnd() ? OkStatus() : Unexpected("the end of the statement");
}

Span Cursor::SpanFrom(int64_t begin) const {
  return {begin, taken_ ? taken_->span.end : begin};
}

Status Cursor::Unexpected(std::string_view what, const std::vector<std::string>& keywords) const {
  const Token found = Peek();
  Status status =
      SyntaxError(fmt::format("expected {}, found {}", what, Describe(found))).At(found.span);
  if (found.kind == Token::Kind::kWord) {
    if (const std::optional<std::string> near = NearestName(found.text, keywords);
        near && !SameWord(found.text, *near)) {
      return std::move(status).Hint(fmt::format("did you mean {}?", *near));
    }
  }
  return status;
}

// U&"...", PostgreSQL's syntax for characters by code point.
bool Cursor::AtUnicodeName() const {
  return Peek().IsWord("U") && Peek(1).IsSymbol("&") && Adjacent(Peek(), Peek(1));
}

Result<Name> Cursor::TakeName(std::string_view what) {
  Name name;
  const int64_t begin = Peek().span.begin;
  while (true) {
    const Token token = Peek();
    if (token.kind == Token::Kind::kQuoted) {
      name.quoted = true;
      name.parts.push_back(Unquote(token.text));
      name.quoted_parts.push_back(true);
      if (name.parts.back().empty()) {
        return SyntaxError("a quoted name is empty").At(token.span);
      }
    } else if (AtUnicodeName()) {
      return Unexpected(what).Hint("write the letters themselves in the quotes: \"...\"");
    } else if (token.IsSymbol("[")) {
      return Unexpected(what).Hint("quote a name as \"name\" or `name` here, not as [name]");
    } else if (token.kind == Token::Kind::kWord &&
               !(name.parts.empty() && IsReserved(token.text))) {
      for (std::string& part : SplitAtDots(token.text)) {
        name.parts.push_back(std::move(part));
        name.quoted_parts.push_back(false);
      }
    } else if (token.kind == Token::Kind::kWord) {
      return Unexpected(what).Hint(fmt::format(
          "{} is a keyword here; as a name it must be quoted: \"{}\"", token.text, token.text));
    } else {
      return Unexpected(what);
    }
    Take();
    if (!AtSymbol(".") || !Adjacent(token, Peek())) {
      break;
    }
    if (!Adjacent(Peek(), Peek(1))) {
      Take();
      return Unexpected("a name right behind '.'");
    }
    Take();
  }
  for (const std::string& part : name.parts) {
    name.text += name.text.empty() ? part : "." + part;
  }
  name.span = SpanFrom(begin);
  return name;
}

Result<ModelName> Cursor::TakeModelName(std::string_view what) {
  ASSIGN_OR_RETURN(const Name name, TakeName(what));
  ASSIGN_OR_RETURN(ModelName model, ToModelName(name));
  if (name.quoted && AtSymbol(":") && Peek().span.begin == name.span.end) {
    Take();
    ASSIGN_OR_RETURN(model.version, TakeInteger("the version's number"));
    model.span = SpanFrom(name.span.begin);
  } else if (const size_t colon = model.name.rfind(':');
             name.quoted && colon != std::string::npos && taken_->kind == Token::Kind::kWord) {
    // "my schema".model:3, where only the schema is quoted
    ASSIGN_OR_RETURN(const ModelName unquoted, ToModelName({model.name, {model.name}, false, {}}));
    model.name = unquoted.name;
    model.version = unquoted.version;
  }
  return model;
}

Result<std::vector<Name>> Cursor::TakeNames(std::string_view what) {
  std::vector<Name> names;
  do {
    ASSIGN_OR_RETURN(Name name, TakeName(what));
    names.push_back(std::move(name));
  } while (TrySymbol(","));
  return names;
}

Result<int64_t> Cursor::TakeInteger(std::string_view what) {
  const Token token = Peek();
  int64_t value = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.kind != Token::Kind::kNumber) {
    return Unexpected(what);
  }
  const std::from_chars_result read = std::from_chars(token.text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) {
    return Unexpected(what).Hint("a whole number below 2^63 is expected");
  }
  Take();
  return value;
}

Result<std::string> Cursor::TakeString(std::string_view what) {
  const Token token = Peek();
  const bool string = token.kind == Token::Kind::kString ||
                      (token.kind == Token::Kind::kQuoted && token.text.front() == '"');
  if (!string) {
    return Unexpected(what);
  }
  return Unquote(Take().text);
}

}  // namespace sluice::parser
