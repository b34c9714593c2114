#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/spool/spool.h"

// Selects read through the session's own connection.
namespace sluice::catalog {

class PostgresConnection;
class PostgresDatabase;

// The rows of a select, as the session saw them when its statement began reading.
struct SpooledSelect {
  Schema schema;
  std::optional<CopiedColumns::Purpose> copies;
  std::vector<std::string> binary_copies;
  std::unique_ptr<Spool> spool;
};

// Why other connections would not see what the session sees in `select`, in words for the user; ""
// if they would. Gets the plan from the server, with policies and views expanded; runs nothing.
// `has_temporary`: the session has temporary tables or the like.
Result<std::string> ReasonToReadThroughSession(PostgresConnection& session, std::string_view select,
                                               bool has_temporary);

// The planner's estimate; nullopt: it refuses the select, and Describe reports the error.
Result<std::optional<int64_t>> EstimateRows(PostgresConnection& session, std::string_view select);

// Reads all rows of the select, whose columns are `schema`, with the copies that the options ask
// for.
Result<std::shared_ptr<const SpooledSelect>> SpoolPostgresSelect(PostgresConnection& session,
                                                                 std::string_view select,
                                                                 Schema schema,
                                                                 const DatasetOptions& options);

Result<SelectStatistics> SpooledStatistics(const SpooledSelect& select, const Schema& schema,
                                           const StatisticsOptions& options);
std::unique_ptr<Dataset> MakeSpooledDataset(std::shared_ptr<const SpooledSelect> select,
                                            const std::string& url, const DatasetOptions& options);
Result<std::unique_ptr<ShardReader>> OpenSpooledReader(const DatasetSpec& spec);

}  // namespace sluice::catalog
