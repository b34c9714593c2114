#pragma once

#include <memory>

#include "catalog/catalog.h"

namespace sluice::catalog {

class CatalogTables;
class RoleOid;
class SqlDatabase;

// The job store over either database, for `role` (null: the database has none). `tables` must
// outlive it.
std::unique_ptr<JobStore> MakeJobStore(CatalogTables& tables, std::unique_ptr<SqlDatabase> database,
                                       std::shared_ptr<RoleOid> role);

}  // namespace sluice::catalog
