#pragma once

#include <memory>
#include <stop_token>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/source_url.h"

namespace sluice::catalog {

Result<std::unique_ptr<DataSource>> OpenPostgres(const SourceUrl& url, const std::stop_token& stop);
Result<std::unique_ptr<Catalog>> OpenPostgresCatalog(const SourceUrl& url,
                                                     const std::stop_token& stop);

}  // namespace sluice::catalog
