#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "catalog/store/catalog_query_internal.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/role_oid.h"

namespace sluice::catalog {
namespace {

// Rows in one INSERT: few round trips, and far below both databases' limit of parameters.
constexpr size_t kRowsPerInsert = 200;

}  // namespace

Result<SqlRows> CatalogQuery::Ask(std::string_view sql, const std::vector<SqlParameter>& parameters,
                                  RoleOid* role) {
  return Again([&]() -> Result<SqlRows> {
    ASSIGN_OR_RETURN(const auto session, database_.TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return SqlRows{};
    }
    std::vector<SqlParameter> all = parameters;
    if (role != nullptr) {
      ASSIGN_OR_RETURN(const int64_t oid, role->Find(*session));
      all.emplace_back(oid);
    }
    return session->Query(tables_.Resolve(sql), all);
  });
}

Status CatalogQuery::Insert(std::string_view into,
                            const std::vector<std::vector<SqlParameter>>& rows) {
  return rows.empty() ? OkStatus() : Again([&] { return InsertOnce(into, rows); });
}

Status CatalogQuery::InsertOnce(std::string_view into,
                                const std::vector<std::vector<SqlParameter>>& rows) {
  ASSIGN_OR_RETURN(const auto session, database_.TakeSession());
  RETURN_IF_ERROR(tables_.Create(*session));
  ASSIGN_OR_RETURN(const auto transaction,
                   SqlTransaction::Begin(*session, tables_.dialect(), true));
  for (size_t begin = 0; begin < rows.size(); begin += kRowsPerInsert) {
    const size_t end = std::min(rows.size(), begin + kRowsPerInsert);
    std::string values;
    std::vector<SqlParameter> parameters;
    for (size_t row = begin; row < end; ++row) {
      values += values.empty() ? "(" : ", (";
      for (size_t i = 0; i < rows[row].size(); ++i) {
        parameters.push_back(rows[row][i]);
        values += fmt::format("{}${}", i == 0 ? "" : ", ", parameters.size());
      }
      values += ")";
    }
    const std::string sql = fmt::format("INSERT INTO {} VALUES {}", into, values);
    RETURN_IF_ERROR(session->Query(tables_.Resolve(sql), parameters).status());
  }
  return transaction->Commit();
}

}  // namespace sluice::catalog
