#include "server/statements/statement_record.h"

#include <algorithm>
#include <cctype>

namespace sluice::server {
namespace {

// $tag$ is no token of SQLite, so what it encloses would be taken for words.
bool HasDollarQuote(std::string_view sql) {
  for (size_t at = sql.find('$'); at != std::string_view::npos; at = sql.find('$', at + 1)) {
    const auto* const end = std::find_if_not(sql.begin() + at + 1, sql.end(), [](char c) {
      return c == '_' || std::isalpha(static_cast<unsigned char>(c)) != 0;
    });
    if (end != sql.end() && *end == '$') {
      return true;
    }
  }
  return false;
}

std::string_view Masked(catalog::SqlToken::Kind kind, std::string_view written, char before,
                        catalog::Dialect dialect) {
  switch (kind) {
    case catalog::SqlToken::Kind::kString:
      return "'...'";
    case catalog::SqlToken::Kind::kNumber:
      return before == '$' ? written : "?";  // $1 is a parameter
    case catalog::SqlToken::Kind::kQuotedName:
      // SQLite takes a name that it does not find for a text; and a list of ours looks like a name
      // in brackets there.
      if (dialect == catalog::Dialect::kSqlite && written.front() != '`') {
        return written.front() == '[' ? "[...]" : "\"...\"";
      }
      return written;
    case catalog::SqlToken::Kind::kWord:
    case catalog::SqlToken::Kind::kSymbol:
      break;
  }
  return written;
}

}  // namespace

std::string RecordedText(std::string_view sql, catalog::Dialect dialect) {
  constexpr size_t kLongest = 2'000;
  std::string text;
  // What is cut off is not looked at; a text that is cut inside is masked nevertheless.
  const std::string_view begin = sql.substr(0, 2 * kLongest);
  size_t end = 0;
  if (dialect == catalog::Dialect::kSqlite && HasDollarQuote(begin)) {
    return "...";
  }
  for (const catalog::SqlToken& token : catalog::TokenizeSql(begin, dialect)) {
    if (text.size() > kLongest) {
      return text + " ...";
    }
    text += token.begin > end && !text.empty() ? " " : "";
    const std::string_view written = begin.substr(token.begin, token.end - token.begin);
    if (written.front() == '\'' && written.ends_with("\\'")) {
      // Without standard_conforming_strings, or as E'...' at SQLite's port, it goes on.
      return text + "'...' ...";
    }
    text += Masked(token.kind, written, token.begin > 0 ? begin[token.begin - 1] : ' ', dialect);
    end = token.end;
  }
  return text + (begin.size() < sql.size() ? " ..." : "");
}

std::string RecordedColumn(std::string_view name, catalog::Dialect dialect) {
  return dialect == catalog::Dialect::kSqlite ? RecordedText(name, dialect) : std::string(name);
}

}  // namespace sluice::server
