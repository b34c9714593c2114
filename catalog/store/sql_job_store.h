#pragma once

#include <memory>

#include "catalog/job_store.h"

namespace sluice::catalog {

class CatalogTables;

// The job store over either database. `tables` outlives it.
std::unique_ptr<JobStore> MakeJobStore(CatalogTables& tables);

}  // namespace sluice::catalog
