#pragma once

#include <memory>

#include "catalog/job_store.h"

namespace sluice::catalog {

class CatalogTables;
class SqlDatabase;

// The job store over either database. `tables` outlives it.
std::unique_ptr<JobStore> MakeJobStore(CatalogTables& tables);
// The same, with sessions of its own kind.
std::unique_ptr<JobStore> MakeJobStore(std::unique_ptr<SqlDatabase> database);

}  // namespace sluice::catalog
