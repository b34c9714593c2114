#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/sql/sql_session.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {

class CatalogTables;
class RoleOid;

inline Status StatusOf(const Status& status) {
  return status;
}
template <typename T>
Status StatusOf(const Result<T>& result) {
  return result.status();
}

// Retried on other connections if one was lost: for functions that may run twice.
template <typename Function>
auto Again(const Function& function) {
  constexpr int kTries = 3;
  auto result = function();
  for (int tried = 1; tried < kTries && IsConnectionLost(StatusOf(result)); ++tried) {
    result = function();
  }
  return result;
}

// Single statements on the catalog's tables, each on a session of its own and retried if that is
// lost. In `sql`, {table} stands for a table of the catalog. Thread-safe.
class CatalogQuery {
 public:
  CatalogQuery(CatalogTables& tables, SqlDatabase& database)
      : tables_(tables), database_(database) {}

  // No rows while the tables do not exist. `role`: its OID is appended to the parameters; null: not
  // restricted to a role.
  Result<SqlRows> Ask(std::string_view sql, const std::vector<SqlParameter>& parameters,
                      RoleOid* role = nullptr);
  // All rows in one transaction. `into`: the table and its columns.
  Status Insert(std::string_view into, const std::vector<std::vector<SqlParameter>>& rows);

 private:
  Status InsertOnce(std::string_view into, const std::vector<std::vector<SqlParameter>>& rows);

  CatalogTables& tables_;
  SqlDatabase& database_;
};

}  // namespace sluice::catalog
