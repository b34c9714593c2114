#include <google/protobuf/io/coded_stream.h>
#include <pg_query.h>
#include <sqlite3.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "parser/lexer.h"
#include "tests/fuzz/target.h"

// PostgreSQL's own scanner (libpg_query) and sqlite3_complete tell which parts of a text are code,
// and which are quoted or comments: our two tokenizers must agree, or a statement could be cut, or
// a clause seen, where the database sees text.
namespace sluice {
namespace {

struct Range {
  size_t begin = 0;
  size_t end = 0;
};

// The tokens of a ScanResult: field 2, each with start (1), end (2) and token (4). nullopt if
// libpg_query gives wrong places (for U&'...' and U&"..."), or has met a lone dollar, which no
// PostgreSQL statement contains and which begins a name in SQLite.
std::optional<std::vector<Range>> QuotedOf(const PgQueryScanResult& result, std::string_view sql) {
  using google::protobuf::io::CodedInputStream;
  constexpr uint32_t kUnicodeName = 259;
  constexpr uint32_t kUnicodeString = 262;
  constexpr uint32_t kSqlComment = 275;
  constexpr uint32_t kBlockComment = 276;
  std::vector<Range> quoted;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(result.pbuf.data),
                      static_cast<int>(result.pbuf.len));
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    if ((tag & 7U) != 2) {
      in.ReadVarint32(&size);
      continue;
    }
    in.ReadVarint32(&size);
    const auto limit = in.PushLimit(static_cast<int>(size));
    Range range;
    uint32_t kind = 0;
    while (const uint32_t field = in.ReadTag()) {
      uint32_t value = 0;
      in.ReadVarint32(&value);
      range.begin = field >> 3U == 1 ? value : range.begin;
      range.end = field >> 3U == 2 ? value : range.end;
      kind = field >> 3U == 4 ? value : kind;
    }
    in.PopLimit(limit);
    if (kind == kUnicodeName || kind == kUnicodeString) {
      return std::nullopt;
    }
    const std::string_view text = sql.substr(range.begin, range.end - range.begin);
    if (text == "$") {
      return std::nullopt;
    }
    const bool comment = kind == kSqlComment || kind == kBlockComment;
    const bool dollar = text.size() > 1 && text.front() == '$' && text.back() == '$';
    if (comment || dollar || text.find('\'') != std::string_view::npos ||
        text.find('"') != std::string_view::npos) {
      quoted.push_back(range);
    }
  }
  return quoted;
}

// The bytes that are code: 1; quoted, commented or blank: 0. Letters before a quote count as
// quoted.
std::vector<char> CodeBytes(std::string_view sql, const std::vector<Range>& quoted) {
  std::vector<char> code(sql.size());
  for (size_t i = 0; i < sql.size(); ++i) {
    code[i] = std::string_view(" \t\n\r\f\v").find(sql[i]) == std::string_view::npos ? 1 : 0;
  }
  for (const Range& range : quoted) {
    for (size_t i = range.begin; i < range.end; ++i) {
      code[i] = 0;
    }
  }
  return code;
}

[[noreturn]] void Differ(const char* who, std::string_view sql, size_t at) {
  std::fprintf(stderr, "%s at byte %zu of: %.*s\n", who, at, static_cast<int>(sql.size()),
               sql.data());
  std::abort();
}

// Prefixes of strings (E, B, X, N, U&), and what joins two halves of a string, are not code to
// PostgreSQL: such bytes are compared only where they would end a statement or open a bracket.
void Compare(const char* who, std::string_view sql, const std::vector<char>& theirs,
             const std::vector<char>& ours) {
  for (size_t i = 0; i < sql.size(); ++i) {
    const bool matters = std::string_view(";()'\"").find(sql[i]) != std::string_view::npos;
    if (matters && theirs[i] != ours[i]) {
      Differ(who, sql, i);
    }
  }
}

// nullopt: a comment or a quote is not closed.
std::optional<std::vector<char>> CodeByLexer(std::string_view sql, bool* foreign) {
  parser::Lexer lexer(sql);
  std::vector<char> code(sql.size(), 0);
  parser::Token token;
  while (true) {
    const Result<parser::Token> next = lexer.NextSql(token);
    *foreign = lexer.met_foreign();
    if (!next.ok()) {
      return std::nullopt;
    }
    token = *next;
    if (token.kind == parser::Token::Kind::kEnd) {
      return code;
    }
    const bool quoted =
        token.kind == parser::Token::Kind::kString || token.kind == parser::Token::Kind::kQuoted;
    for (auto i = token.span.begin; !quoted && i < token.span.end; ++i) {
      code[static_cast<size_t>(i)] = 1;
    }
  }
}

std::vector<char> CodeByTokens(std::string_view sql, catalog::Dialect dialect) {
  std::vector<char> code(sql.size(), 0);
  for (const catalog::SqlToken& token : catalog::TokenizeSql(sql, dialect)) {
    const bool quoted = token.kind == catalog::SqlToken::Kind::kString ||
                        token.kind == catalog::SqlToken::Kind::kQuotedName;
    for (size_t i = token.begin; !quoted && i < token.end; ++i) {
      code[i] = 1;
    }
  }
  return code;
}

void AgainstPostgres(const std::string& sql) {
  PgQueryScanResult scanned = pg_query_scan(sql.c_str());
  if (scanned.error != nullptr) {
    pg_query_free_scan_result(scanned);
    return;
  }
  const std::optional<std::vector<Range>> quoted = QuotedOf(scanned, sql);
  pg_query_free_scan_result(scanned);
  if (!quoted) {
    return;
  }
  const std::vector<char> theirs = CodeBytes(sql, *quoted);
  Compare("TokenizeSql and libpg_query differ", sql, theirs,
          CodeByTokens(sql, catalog::Dialect::kPostgres));
  bool foreign = false;
  const std::optional<std::vector<char>> ours = CodeByLexer(sql, &foreign);
  if (foreign) {
    return;  // a spelling of SQLite's, which PostgreSQL reads differently
  }
  if (!ours) {
    Differ("our lexer refuses what libpg_query reads", sql, 0);
  } else {
    Compare("our lexer and libpg_query differ", sql, theirs, *ours);
  }
}

// Whether a ';' on the line after the text ends a statement. Not for triggers, which contain
// semicolons.
void AgainstSqlite(const std::string& sql) {
  if (LowerAscii(sql).find("trigger") != std::string::npos) {
    return;
  }
  const std::string text = sql + "\n;";
  const bool complete = sqlite3_complete(text.c_str()) != 0;
  const auto tokens = catalog::TokenizeSql(text, catalog::Dialect::kSqlite);
  const bool ours = !tokens.empty() && tokens.back().kind == catalog::SqlToken::Kind::kSymbol &&
                    tokens.back().begin == sql.size() + 1;
  if (complete != ours) {
    Differ("TokenizeSql and sqlite3_complete differ", text, sql.size());
  }
}

}  // namespace
}  // namespace sluice

FUZZ_TARGET(tokenizer) {
  const std::string sql(reinterpret_cast<const char*>(data), size);
  if (sql.find('\0') != std::string::npos) {
    return 0;  // neither database accepts one
  }
  sluice::AgainstPostgres(sql);
  sluice::AgainstSqlite(sql);
  return 0;
}
