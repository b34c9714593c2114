#pragma once

#include <memory>

#include "catalog/catalog.h"

namespace sluice::catalog {

class CatalogTables;
class SqlDatabase;

// The job store over either database, for `who`. `tables` outlives it.
std::unique_ptr<JobStore> MakeJobStore(CatalogTables& tables, std::unique_ptr<SqlDatabase> database,
                                       const Principal& who);

}  // namespace sluice::catalog
