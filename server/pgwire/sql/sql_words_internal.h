#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

// The words of a PostgreSQL statement, outside strings, quoted names and comments. Linear in the
// text. Nothing here fails: an unclosed string or comment extends to the end of the text.
namespace sluice::server::pgwire {

std::string_view TextOf(std::string_view script, const Span& span);

bool IsWordByte(char byte);
char Upper(char byte);
bool EqualsWord(std::string_view text, std::string_view upper);
std::string_view FirstWord(std::string_view text);
std::string UpperWord(std::string_view word);

// The position after the quoted text that begins at `at`.
size_t SkipQuoted(std::string_view sql, size_t at, bool escapes);
size_t SkipBlockComment(std::string_view sql, size_t at);
// The position after $tag$ ... $tag$; one byte further if none begins at `at`.
size_t SkipDollarQuoted(std::string_view sql, size_t at);
// The position after the parenthesis that closes the one at `at`; npos: it is not closed.
size_t SkipParentheses(std::string_view sql, size_t at);

// The position after the first word that equals `upper`; npos: there is none.
size_t BehindWord(std::string_view sql, std::string_view upper);

// Without blanks at both ends and semicolons at its end.
Span Trimmed(std::string_view sql, size_t begin, size_t end);

// As many blanks as the text has characters, which keeps what follows at its own place.
std::string Blanks(std::string_view text);

// Calls visit(begin, end) for each word and each $n outside strings, quoted names and comments,
// until it returns true; returns whether it did.
template <typename Visit>
bool ScanCode(std::string_view sql, const Visit& visit) {
  for (size_t at = 0; at < sql.size();) {
    const char byte = sql[at];
    const size_t begin = at;
    if (IsWordByte(byte)) {
      while (at < sql.size() && (IsWordByte(sql[at]) || sql[at] == '$')) {
        ++at;
      }
      const bool string_with_escapes =
          at == begin + 1 && Upper(byte) == 'E' && at < sql.size() && sql[at] == '\'';
      if (string_with_escapes) {
        at = SkipQuoted(sql, at, true);
      } else if (visit(begin, at)) {
        return true;
      }
    } else if (byte == '\'' || byte == '"') {
      at = SkipQuoted(sql, at, false);
    } else if (byte == '$' && at + 1 < sql.size() && sql[at + 1] >= '0' && sql[at + 1] <= '9') {
      for (++at; at < sql.size() && sql[at] >= '0' && sql[at] <= '9';) {
        ++at;
      }
      if (visit(begin, at)) {
        return true;
      }
    } else if (byte == '$') {
      at = SkipDollarQuoted(sql, at);
    } else if (byte == '-' && sql.substr(at, 2) == "--") {
      at = std::min(sql.find('\n', at), sql.size());
    } else if (byte == '/' && sql.substr(at, 2) == "/*") {
      at = SkipBlockComment(sql, at);
    } else {
      ++at;
    }
  }
  return false;
}

}  // namespace sluice::server::pgwire
