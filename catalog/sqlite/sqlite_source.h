#pragma once

#include <memory>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/source_url.h"

namespace sluice::catalog {

class SqliteDatabase;

// The data and the catalog of one file, which share its connections.
Result<Database> OpenSqlite(const SourceUrl& url);
std::unique_ptr<Catalog> MakeSqliteCatalog(std::shared_ptr<SqliteDatabase> database,
                                           std::string url);

}  // namespace sluice::catalog
