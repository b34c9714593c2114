#include "server/statements/statement_record.h"

#include <algorithm>

namespace sluice::server {

std::string RecordedText(std::string_view sql, catalog::Dialect dialect) {
  constexpr size_t kLongest = 2'000;
  std::string text;
  // What is cut off is not looked at; a text that is cut inside is masked nevertheless.
  const std::string_view begin = sql.substr(0, 2 * kLongest);
  size_t end = 0;
  for (const catalog::SqlToken& token : catalog::TokenizeSql(begin, dialect)) {
    if (text.size() > kLongest) {
      return text + " ...";
    }
    text += token.begin > end && !text.empty() ? " " : "";
    text += token.kind == catalog::SqlToken::Kind::kString
                ? std::string_view("'...'")
                : begin.substr(token.begin, token.end - token.begin);
    end = token.end;
  }
  return text + (begin.size() < sql.size() ? " ..." : "");
}

}  // namespace sluice::server
