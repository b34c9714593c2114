#pragma once

#include <rapidjson/document.h>

#include <string_view>

#include "base/status.h"

namespace sluice::catalog {

class PostgresConnection;

// The server's plan of a select: an array whose first entry has a member "Plan". Nothing runs.
// `describe`: see PostgresConnection::Explain.
Result<rapidjson::Document> ExplainPostgresSelect(PostgresConnection& connection,
                                                  std::string_view select, bool describe = false);

}  // namespace sluice::catalog
