#include "parser/postgres_scanner.h"

#include <pg_query.h>

#include <string>

namespace sluice::parser {

std::optional<std::vector<Span>> SplitByPostgres(std::string_view sql) {
  PgQuerySplitResult split = pg_query_split_with_scanner(std::string(sql).c_str());
  std::optional<std::vector<Span>> statements;
  if (split.error == nullptr) {
    statements.emplace();
    for (int i = 0; i < split.n_stmts; ++i) {
      const PgQuerySplitStmt& statement = *split.stmts[i];
      statements->push_back(
          {statement.stmt_location, statement.stmt_location + statement.stmt_len});
    }
  } else {
    split.n_stmts = 0;  // counted, but never allocated; freeing them would crash
  }
  pg_query_free_split_result(split);
  return statements;
}

}  // namespace sluice::parser
