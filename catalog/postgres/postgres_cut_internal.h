#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sql/select_shape.h"

// Cutting a SELECT into ranges of row addresses (ctid).
namespace sluice::catalog {

// A row address as one number: block * 65536 + offset.
inline constexpr int64_t kTidsPerBlock = 65'536;
// After every row of any table.
inline constexpr int64_t kEndOfTable = int64_t{4'294'967'295} * kTidsPerBlock;
std::string TidText(int64_t key);

struct TidCut {
  SingleTableSelect shape;
  std::string shard_select;  // with {begin} and {end}
  int64_t table = 0;         // its oid
  int64_t blocks = 0;
  size_t columns = 0;
  double rows = 0;  // estimated
  RowDensity Density() const;
};

struct SelectPlan {
  std::optional<TidCut> cut;  // nullopt: cannot be read range by range
  // Reading it twice could give different rows (random(), now() ...), even under one snapshot.
  bool unsteady = false;
  double rows = 0;  // the planner's estimate
};

// The planner's information about a SELECT. Runs in a transaction of its own, which it rolls back.
// `columns`: their number.
Result<SelectPlan> PlanPostgresSelect(PostgresConnection& connection, std::string_view select,
                                      size_t columns);

// The number of rows of the cut, estimated from a few blocks all over the table. Unlike the
// planner's estimate it does not change when the table is analysed, so that neither do the shards,
// the sample and everything derived from them. Inside a transaction that began with BeginReading,
// as CutTids.
Result<double> ProbeTidRows(PostgresConnection& connection, const TidCut& cut);

Result<std::vector<ShardRange>> CutTids(PostgresConnection& connection, TidCut cut,
                                        const DatasetOptions& options);

// A statement over a cut's shard_select with its bounds as the parameters $1 and $2.
std::string WithParameters(std::string sql);
// Keeps the server from planning it for each range, which would take longer than reading it.
inline constexpr std::string_view kPlanOnce = "SET LOCAL plan_cache_mode = force_generic_plan";

// "SELECT c2, c0 FROM (rows) AS s(c0, c1, c2)".
std::string SelectColumns(std::string_view rows, size_t all, const std::vector<size_t>& columns);
std::string SelectAllColumns(std::string_view rows, size_t all);
// Lists columns of the dataset, called c0, c1 ..., each as it is read (ValueExpression).
std::string ValuesOf(const std::vector<size_t>& columns, const Schema& schema);
// Reads all columns so.
std::string SelectValues(std::string_view rows, const Schema& schema);

// Every table in a plan.
Result<std::vector<TableName>> TablesInPlan(PostgresConnection& connection,
                                            std::string_view select);

}  // namespace sluice::catalog
