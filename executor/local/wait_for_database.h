#pragma once

#include <stop_token>

#include "base/status.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"

namespace sluice::executor {

// Opens both; waits for a server that is restarting, or has no connection left.
Result<catalog::Database> OpenWhenThere(const catalog::DatabaseLogin& source,
                                        const catalog::DatabaseLogin& catalog,
                                        double patience_seconds, const std::stop_token& stop);

}  // namespace sluice::executor
