#pragma once

#include <memory>

#include "catalog/data_source.h"
#include "catalog/source_url.h"

namespace sluice::catalog {

Result<std::unique_ptr<DataSource>> OpenSqlite(const SourceUrl& url);

}  // namespace sluice::catalog
