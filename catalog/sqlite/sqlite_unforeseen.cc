#include <pg_query.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/lasting_threads.h"
#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_unforeseen_internal.h"

namespace sluice::catalog {
namespace {

// Every table of PostgreSQL has these, and our catalogs do not.
constexpr std::array<std::string_view, 7> kSystemColumns = {"ctid", "xmin", "xmax",    "cmin",
                                                            "cmax", "oid",  "tableoid"};

// "t.x" from "no such column: t.x"; only its last part unless `qualified`.
std::string MissingName(const Status& error, bool qualified) {
  const std::string& message = error.message();
  const size_t colon = message.rfind(": ");
  const std::string name = LowerAscii(colon == std::string::npos ? "" : message.substr(colon + 2));
  return qualified ? name : name.substr(name.rfind('.') + 1);  // npos + 1 is the beginning
}

// The verdict of PostgreSQL's own parser. (Printing its tree, as pg_query_parse does, takes stack
// without a bound.)
Status PostgresParses(std::string_view sql) {
  const std::string text(sql);
  PgQuerySplitResult parsed{};
  OnLastingThread([&] { parsed = pg_query_split_with_parser(text.c_str()); });
  Status status;
  if (parsed.error != nullptr) {
    status = SyntaxError(parsed.error->message);
    const int64_t place = parsed.error->cursorpos - 1;
    if (place >= 0 && place < static_cast<int64_t>(sql.size())) {
      status = std::move(status).At({place, place + 1});
    }
    parsed.n_stmts = 0;  // counted, but never allocated
  }
  pg_query_free_split_result(parsed);
  return status;
}

// FROM x t, or FROM (...) AS t: in PostgreSQL t stands for a whole row.
bool IsAliasIn(std::string_view sql, std::string_view name) {
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kPostgres);
  const auto word = [&](size_t at) {
    return at < tokens.size()
               ? LowerAscii(sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin))
               : std::string();
  };
  for (size_t at = 2; at < tokens.size(); ++at) {
    if (word(at) != name) {
      continue;
    }
    const size_t before = word(at - 1) == "as" ? at - 2 : at - 1;
    const std::string lead = before == 0 ? "" : word(before - 1);
    if (word(before) == ")" || lead == "from" || lead == "join" || lead == "," || lead == ".") {
      return true;
    }
  }
  return false;
}

}  // namespace

Status AtName(Status error, std::string_view sql) {
  const std::string& state = error.sqlstate();
  if ((state != "42P01" && state != "42703") || error.diagnostics()[0].span.valid()) {
    return error;
  }
  const std::string missing = MissingName(error, false);
  const std::string whole = MissingName(error, true);
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kSqlite);
  const auto name_at = [&](size_t at) {
    const SqlToken& token = tokens[at];
    const auto name =
        ParseTableName(sql.substr(token.begin, token.end - token.begin), Dialect::kSqlite);
    return name.ok() && (token.kind == SqlToken::Kind::kWord ||
                         token.kind == SqlToken::Kind::kQuotedName)
               ? LowerAscii(name->name)
               : std::string();
  };
  for (size_t at = 0; at < tokens.size(); ++at) {
    const bool qualified = at + 2 < tokens.size() && sql[tokens[at + 1].begin] == '.' &&
                           name_at(at) + "." + name_at(at + 2) == whole;
    if (qualified || (!missing.empty() && name_at(at) == missing)) {
      return std::move(error).At({static_cast<int64_t>(tokens[at].begin),
                                  static_cast<int64_t>(tokens[qualified ? at + 2 : at].end)});
    }
  }
  return error;
}

Status ErrorOfCatalogQuery(std::string_view sql, const Status& refused) {
  const std::string& state = refused.sqlstate();
  if (state == "42704" || state == "55P03" || state == "57014" || state == "53200" ||
      state == "XX001" || state.starts_with("58")) {
    return refused;
  }
  RETURN_IF_ERROR(PostgresParses(sql));
  if (state == "42P01") {
    const std::string name = MissingName(refused, true);
    return name.starts_with("pg_") || name.starts_with("information_schema.") ? OkStatus()
                                                                              : refused;
  }
  if (state == "42703") {
    const std::string name = MissingName(refused, false);
    const bool known =
        std::find(kSystemColumns.begin(), kSystemColumns.end(), name) != kSystemColumns.end();
    return known || IsAliasIn(sql, name) ? OkStatus() : refused;
  }
  return OkStatus();
}

}  // namespace sluice::catalog
