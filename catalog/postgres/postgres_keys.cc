#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_connection_internal.h"

namespace sluice::catalog {

Result<std::vector<ColumnKey>> PostgresKeys(PostgresConnection& connection,
                                            std::string_view select) {
  ASSIGN_OR_RETURN(const PostgresResult described, connection.DescribeColumns(select));
  const int count = PQnfields(described.get());
  std::vector<ColumnKey> keys(static_cast<size_t>(count), ColumnKey::kNone);
  std::set<Oid> tables;
  for (int i = 0; i < count; ++i) {
    if (PQftable(described.get(), i) != InvalidOid) {
      tables.insert(PQftable(described.get(), i));
    }
  }
  if (tables.empty()) {
    return keys;
  }
  ASSIGN_OR_RETURN(
      const PostgresResult unique,
      connection.Ask("SELECT indrelid::pg_catalog.text, indkey[0]::pg_catalog.text, indisprimary"
                     " FROM pg_catalog.pg_index WHERE indrelid OPERATOR(pg_catalog.=) "
                     "ANY($1::pg_catalog.oid[]) AND"
                     " indisunique AND indisvalid AND indnkeyatts OPERATOR(pg_catalog.=) 1 AND "
                     "indpred IS NULL AND"
                     " indexprs IS NULL",
                     {fmt::format("{{{}}}", fmt::join(tables, ","))}));
  std::map<std::pair<std::string, std::string>, bool> primary;
  for (int row = 0; row < PQntuples(unique.get()); ++row) {
    bool& of_column = primary[{std::string(PostgresText(unique.get(), row, 0)),
                               std::string(PostgresText(unique.get(), row, 1))}];
    of_column = of_column || PostgresText(unique.get(), row, 2) == "t";
  }
  for (int i = 0; i < count; ++i) {
    const auto found = primary.find({fmt::format("{}", PQftable(described.get(), i)),
                                     fmt::format("{}", PQftablecol(described.get(), i))});
    if (found != primary.end()) {
      keys[static_cast<size_t>(i)] = found->second ? ColumnKey::kPrimary : ColumnKey::kUnique;
    }
  }
  return keys;
}

}  // namespace sluice::catalog
