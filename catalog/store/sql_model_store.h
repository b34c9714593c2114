#pragma once

#include <memory>

#include "catalog/model_store.h"

namespace sluice::catalog {

class CatalogTables;

// The model store over either database. `tables` outlives it.
std::unique_ptr<ModelStore> MakeModelStore(CatalogTables& tables);

}  // namespace sluice::catalog
