#pragma once

#include <memory>

#include "catalog/catalog.h"
#include "catalog/store/model_rows.h"

namespace sluice::catalog {

class CatalogTables;
class RoleOid;
class SqlDatabase;

// The store of models, or of model types, over either database, for `role` (null: the database has
// none). `tables` outlives it.
std::unique_ptr<ModelStore> MakeModelStore(CatalogTables& tables,
                                           std::unique_ptr<SqlDatabase> database,
                                           std::shared_ptr<RoleOid> role,
                                           Versioned what = Versioned::kModels);

}  // namespace sluice::catalog
