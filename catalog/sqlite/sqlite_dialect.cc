#include "base/letter_case.h"
#include "catalog/sqlite/sqlite_dialect_internal.h"

#include <algorithm>
#include <array>
#include <set>

#include "catalog/sql/sql_text.h"

namespace sluice::catalog {
namespace {

using Kind = SqlToken::Kind;

constexpr std::array<std::string_view, 6> kSessionWords = {
    "current_user", "session_user", "current_role", "current_catalog", "current_schema", "user"};

bool IsPgName(std::string_view lower) {
  return lower.starts_with("pg_") || lower == "information_schema";
}

// Functions, and types of names, that only PostgreSQL has.
constexpr std::array<std::string_view, 16> kPgFunctions = {"format_type",
                                                           "current_schemas",
                                                           "obj_description",
                                                           "col_description",
                                                           "has_table_privilege",
                                                           "has_schema_privilege",
                                                           "array_to_string",
                                                           "has_database_privilege",
                                                           "quote_ident",
                                                           "to_regclass",
                                                           "regclass",
                                                           "regtype",
                                                           "regproc",
                                                           "regprocedure",
                                                           "regnamespace",
                                                           "regrole"};

}  // namespace

bool IsSessionWord(std::string_view lower) {
  return std::find(kSessionWords.begin(), kSessionWords.end(), lower) != kSessionWords.end();
}

bool NamesPgCatalog(std::string_view sql) {
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kPostgres)) {
    if (token.kind != Kind::kWord) {
      continue;
    }
    const std::string word = LowerAscii(sql.substr(token.begin, token.end - token.begin));
    if (IsPgName(word) ||
        std::find(kPgFunctions.begin(), kPgFunctions.end(), word) != kPgFunctions.end() ||
        (word != "user" && IsSessionWord(word))) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> NamedPgRelations(std::string_view sql) {
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kPostgres);
  const auto text = [&](size_t at) {
    return at < tokens.size() && tokens[at].kind != Kind::kString
               ? LowerAscii(sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin))
               : std::string();
  };
  std::set<std::string> names;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (text(at) == "information_schema" && text(at + 1) == ".") {
      names.insert("information_schema." + text(at + 2));
    } else if (text(at).starts_with("pg_") && text(at + 1) != "(" && text(at + 1) != ".") {
      names.insert(text(at));
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace sluice::catalog
