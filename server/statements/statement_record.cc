#include "server/statements/statement_record.h"

#include <utility>

#include "base/utf8.h"
#include "catalog/embedded_session.h"

namespace sluice::server {
namespace {

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

std::string RecordedText(std::string_view sql, catalog::Dialect dialect, size_t most) {
  // What is recorded is its beginning, and each token kept would take many times its bytes.
  constexpr size_t kMostRead = size_t{256} << 10;
  sql = sql.substr(0, std::max(kMostRead, 2 * most));
  std::string translated;
  if (dialect == catalog::Dialect::kSqlite) {  // it knows no E'...', no $$...$$
    sql = translated = catalog::InEmbeddedDialect(sql);
  }
  std::string text;
  size_t end = 0;
  for (const catalog::SqlToken& token : catalog::TokenizeSql(sql, dialect)) {
    if (text.size() > most) {
      break;
    }
    text += token.begin > end && !text.empty() ? " " : "";
    text += Masked(token.kind, sql.substr(token.begin, token.end - token.begin),
                   token.begin > 0 ? sql[token.begin - 1] : ' ', dialect);
    end = token.end;
  }
  return ShortText(std::move(text), most);
}

std::string ShortText(std::string text, size_t most) {
  if (text.size() > most) {
    text.resize(CutToBytes(text, most).size());
    text += " ...";
  }
  return text;
}

std::string RecordedColumn(std::string_view name, catalog::Dialect dialect) {
  constexpr size_t kLongest = 2'000;
  return dialect == catalog::Dialect::kSqlite ? RecordedText(name, dialect, kLongest)
                                              : std::string(name);
}

}  // namespace sluice::server
