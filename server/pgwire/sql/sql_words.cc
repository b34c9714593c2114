#include "server/pgwire/sql/sql_words_internal.h"

#include <algorithm>

namespace sluice::server::pgwire {

std::string_view TextOf(std::string_view script, const Span& span) {
  return script.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

bool IsWordByte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' ||
         (static_cast<unsigned char>(byte) & 0x80U) != 0;
}

char Upper(char byte) {
  return byte >= 'a' && byte <= 'z' ? static_cast<char>(byte - 'a' + 'A') : byte;
}

bool EqualsWord(std::string_view text, std::string_view upper) {
  return text.size() == upper.size() &&
         std::equal(text.begin(), text.end(), upper.begin(),
                    [](char left, char right) { return Upper(left) == right; });
}

size_t SkipQuoted(std::string_view sql, size_t at, bool escapes) {
  const char quote = sql[at];
  for (++at; at < sql.size(); ++at) {
    if (escapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == quote) {
      return at + 1;  // a doubled quote continues the same text
    }
  }
  return sql.size();
}

size_t SkipBlockComment(std::string_view sql, size_t at) {
  int depth = 0;
  while (at < sql.size()) {
    if (sql.substr(at, 2) == "/*") {
      ++depth;
      at += 2;
    } else if (sql.substr(at, 2) == "*/") {
      at += 2;
      if (--depth == 0) {
        return at;
      }
    } else {
      ++at;
    }
  }
  return sql.size();
}

size_t SkipDollarQuoted(std::string_view sql, size_t at) {
  size_t end = at + 1;
  while (end < sql.size() && IsWordByte(sql[end])) {
    ++end;
  }
  if (end == sql.size() || sql[end] != '$') {
    return at + 1;
  }
  const std::string_view tag = sql.substr(at, end + 1 - at);
  const size_t close = sql.find(tag, end + 1);
  return close == std::string_view::npos ? sql.size() : close + tag.size();
}

std::string UpperWord(std::string_view word) {
  std::string upper;
  for (const char c : word) {
    upper += Upper(c);
  }
  return upper;
}

std::string_view FirstWord(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && !IsWordByte(text[at])) {
    if (text.substr(at, 2) == "--") {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at, 2) == "/*") {
      at = SkipBlockComment(text, at);
    } else {
      ++at;
    }
  }
  size_t end = at;
  while (end < text.size() && IsWordByte(text[end])) {
    ++end;
  }
  return text.substr(at, end - at);
}

size_t SkipParentheses(std::string_view sql, size_t at) {
  int depth = 0;
  while (at < sql.size()) {
    const char byte = sql[at];
    if (byte == '\'' || byte == '"') {
      at = SkipQuoted(sql, at, false);
    } else if (byte == '$') {
      at = SkipDollarQuoted(sql, at);
    } else if (sql.substr(at, 2) == "--") {
      at = std::min(sql.find('\n', at), sql.size());
    } else if (sql.substr(at, 2) == "/*") {
      at = SkipBlockComment(sql, at);
    } else {
      depth += byte == '(' ? 1 : byte == ')' ? -1 : 0;
      ++at;
      if (depth == 0) {
        return at;
      }
    }
  }
  return std::string_view::npos;
}

size_t BehindWord(std::string_view sql, std::string_view upper) {
  size_t behind = std::string_view::npos;
  ScanCode(sql, [sql, upper, &behind](size_t begin, size_t end) {
    behind = EqualsWord(sql.substr(begin, end - begin), upper) ? end : behind;
    return behind != std::string_view::npos;
  });
  return behind;
}

Span Trimmed(std::string_view sql, size_t begin, size_t end) {
  constexpr std::string_view kBlanks = " \t\r\n\f\v";
  begin = std::min(sql.find_first_not_of(kBlanks, begin), end);
  while (end > begin && (kBlanks.find(sql[end - 1]) != kBlanks.npos || sql[end - 1] == ';')) {
    --end;
  }
  return {static_cast<int64_t>(begin), static_cast<int64_t>(end)};
}

std::string Blanks(std::string_view text) {
  size_t characters = 0;
  for (const char byte : text) {
    characters += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return std::string(characters, ' ');
}

}  // namespace sluice::server::pgwire
