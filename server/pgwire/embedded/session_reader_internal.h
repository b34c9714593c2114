#pragma once

#include <fmt/core.h>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/sql/sql_text.h"
#include "server/pgwire/embedded/session_statement.h"
#include "server/pgwire/sql/sql_words_internal.h"

namespace sluice::server::pgwire {

// Reads the words of a session statement one after another. Not thread-safe.
class SessionReader {
 public:
  explicit SessionReader(std::string_view sql)
      : sql_(sql), tokens_(catalog::TokenizeSql(sql, catalog::Dialect::kPostgres)) {}

  bool AtEnd() const { return at_ >= tokens_.size(); }
  std::string_view Text() const {
    return AtEnd() ? std::string_view()
                   : sql_.substr(tokens_[at_].begin, tokens_[at_].end - tokens_[at_].begin);
  }
  bool Is(std::string_view upper) const { return !AtEnd() && EqualsWord(Text(), upper); }
  bool Take(std::string_view upper) {
    const bool is = Is(upper);
    at_ += is ? 1 : 0;
    return is;
  }
  bool TakeSymbol(std::string_view symbol) {
    const bool is = Text() == symbol;
    at_ += is ? 1 : 0;
    return is;
  }
  // The end of the statement without these last words, if it ends with them.
  size_t EndWithout(std::initializer_list<std::string_view> words) const {
    if (tokens_.size() < at_ + words.size()) {
      return sql_.size();
    }
    const size_t first = tokens_.size() - words.size();
    size_t at = first;
    for (const std::string_view word : words) {
      const catalog::SqlToken& token = tokens_[at++];
      if (!EqualsWord(sql_.substr(token.begin, token.end - token.begin), word)) {
        return sql_.size();
      }
    }
    return tokens_[first].begin;
  }
  void Skip() { ++at_; }
  Span Place() const {
    if (AtEnd()) {
      return {static_cast<int64_t>(sql_.size()), static_cast<int64_t>(sql_.size())};
    }
    return {static_cast<int64_t>(tokens_[at_].begin), static_cast<int64_t>(tokens_[at_].end)};
  }
  const catalog::SqlToken* Token() const { return AtEnd() ? nullptr : &tokens_[at_]; }
  // A name, folded as PostgreSQL folds it.
  std::optional<std::string> TakeName() {
    if (AtEnd() || (tokens_[at_].kind != catalog::SqlToken::Kind::kWord &&
                    tokens_[at_].kind != catalog::SqlToken::Kind::kQuotedName)) {
      return std::nullopt;
    }
    auto name = catalog::ParseTableName(Text(), catalog::Dialect::kPostgres);
    ++at_;
    return name.ok() ? std::optional(name->name) : std::nullopt;
  }
  // The value of a literal: 'x', x, "x", 5.
  std::string TakeValue() {
    std::string value;
    if (AtEnd()) {
      return value;
    }
    const catalog::SqlToken& token = tokens_[at_];
    std::string_view text = Text();
    if (token.kind == catalog::SqlToken::Kind::kString ||
        token.kind == catalog::SqlToken::Kind::kQuotedName) {
      const bool escapes = text[0] == 'E' || text[0] == 'e';
      const size_t open = escapes ? 1 : 0;
      const char quote = text[open];
      for (size_t i = open + 1; i + 1 < text.size(); ++i) {
        char c = text[i];
        if (escapes && c == '\\' && i + 2 < text.size()) {
          c = text[++i];
          c = c == 't' ? '\t' : c == 'n' ? '\n' : c;
        } else if (c == quote && text[i + 1] == quote) {
          ++i;
        }
        value += c;
      }
    } else {
      value = text;
    }
    ++at_;
    return value;
  }
  std::string_view Rest() const {
    return AtEnd() ? std::string_view() : sql_.substr(tokens_[at_].begin);
  }
  Status Unexpected() const {
    return AtEnd() ? SyntaxError("syntax error at end of input").At(Place())
                   : SyntaxError(fmt::format("syntax error at or near \"{}\"", Text())).At(Place());
  }

 private:
  const std::string_view sql_;
  const std::vector<catalog::SqlToken> tokens_;
  size_t at_ = 0;
};

using SessionRead = Result<std::optional<SessionStatement>>;

inline SessionStatement StatementOf(SessionStatement::Kind kind, std::string tag) {
  SessionStatement statement{.kind = kind};
  statement.tag = std::move(tag);
  return statement;
}

// After COPY; `sql` is the whole statement.
SessionRead ReadCopy(SessionReader& reader, std::string_view sql);

}  // namespace sluice::server::pgwire
