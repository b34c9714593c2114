#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "catalog/postgres/postgres_analyzed_internal.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/statistics_builder.h"

namespace sluice::catalog {
namespace {

// Over a connection with TLS: several ranges per query, to save round trips; but one per query when
// the text of the SELECT itself is long.
constexpr size_t kRangesPerQuery = 16;
constexpr size_t kShortSelect = 4'096;

Status AddRows(RowStream& stream, StatisticsBuilder* builder) {
  RowBatch batch;
  do {
    RETURN_IF_ERROR(stream.Next(kStatisticsBatchRows, &batch));
    builder->Add(batch);
  } while (batch.rows > 0);
  return OkStatus();
}

Status AddRows(PostgresConnection& connection, const std::string& sql, const Schema& schema,
               StatisticsBuilder* builder) {
  ASSIGN_OR_RETURN(const auto stream, OpenPostgresStream(connection, sql, {schema}));
  return AddRows(*stream, builder);
}

using Blocks = std::vector<std::pair<int64_t, int64_t>>;

// The block ranges to look at: disjoint, and at least one block each.
Blocks SampleBlocks(const TidCut& cut, int64_t sample_rows) {
  Blocks ranges;
  int64_t next = 0;
  for (const auto& [begin, end] :
       SpreadRanges(cut.Density(), kStatisticsSampleRanges, sample_rows)) {
    const int64_t first = std::max(next, begin / kTidsPerBlock);
    const int64_t last =
        std::min(cut.blocks, std::max(first + 1, (end + kTidsPerBlock / 2) / kTidsPerBlock));
    if (first < last) {
      ranges.emplace_back(first, last);
      next = last;
    }
  }
  return ranges;
}

// One statement, planned once, for one range after another.
Status AddBlocks(PostgresConnection& connection, const TidCut& cut, const Blocks& ranges,
                 const Schema& schema, StatisticsBuilder* builder) {
  std::vector<std::vector<std::string>> runs;
  for (const auto& [first, last] : ranges) {
    runs.push_back({TidText(first * kTidsPerBlock), TidText(last * kTidsPerBlock)});
  }
  RETURN_IF_ERROR(connection.Run(std::string(kPlanOnce)));
  ASSIGN_OR_RETURN(
      const auto stream,
      OpenPostgresRuns(connection, SelectValues(WithParameters(cut.shard_select), schema), runs,
                       {schema}));
  return AddRows(*stream, builder);
}

// The same by statements that libpq can send.
Status AddBlocksAsText(PostgresConnection& connection, const TidCut& cut, const Blocks& ranges,
                       const Schema& schema, StatisticsBuilder* builder) {
  const size_t ranges_per_query = cut.shard_select.size() < kShortSelect ? kRangesPerQuery : 1;
  std::string query;
  size_t in_query = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto [first, last] = ranges[i];
    query += (query.empty() ? "" : "\nUNION ALL\n") +
             SelectValues(WithBounds(cut.shard_select, TidText(first * kTidsPerBlock),
                                     TidText(last * kTidsPerBlock)),
                          schema);
    if (++in_query == ranges_per_query || i + 1 == ranges.size()) {
      RETURN_IF_ERROR(AddRows(connection, query, schema, builder));
      query.clear();
      in_query = 0;
    }
  }
  return OkStatus();
}

// Rows from blocks all over a large table. The number of rows is that of the blocks read, scaled to
// all blocks: the same for the same table, whenever it was last analysed.
Result<SelectStatistics> Sampled(PostgresConnection& connection, TidCut cut,
                                 std::string_view select, int64_t sample_rows, const Schema& schema,
                                 const StatisticsOptions& options) {
  ASSIGN_OR_RETURN(cut.rows, ProbeTidRows(connection, cut));
  StatisticsBuilder builder(schema, options);
  const Blocks ranges = SampleBlocks(cut, sample_rows);
  int64_t blocks_read = 0;
  for (const auto& [first, last] : ranges) {
    blocks_read += last - first;
  }
  RETURN_IF_ERROR(OnlyText(connection) ? AddBlocksAsText(connection, cut, ranges, schema, &builder)
                                       : AddBlocks(connection, cut, ranges, schema, &builder));
  const double share =
      static_cast<double>(blocks_read) / static_cast<double>(std::max<int64_t>(cut.blocks, 1));
  const double rows = share > 0 ? static_cast<double>(builder.rows()) / share : 0;
  SelectStatistics statistics = builder.Finish(std::llround(rows), false);
  // A condition changes the frequencies of all columns, so ANALYZE's would be wrong.
  if (cut.shape.condition.empty()) {
    RETURN_IF_ERROR(
        AddAnalyzedStatistics(connection, select, cut.table, options.common_values, &statistics));
  }
  return statistics;
}

Result<SelectStatistics> ReadStatistics(PostgresConnection& connection, const SelectPlan& plan,
                                        const std::string& select, const Schema& schema,
                                        const StatisticsOptions& options) {
  const int64_t limit = ExactRowLimit(schema, options);
  // Not worth reading `limit` rows when there are certainly more.
  if (plan.cut.has_value() && plan.rows > 4 * static_cast<double>(limit)) {
    return Sampled(connection, *plan.cut, select, std::min(kStatisticsSampleRows, limit), schema,
                   options);
  }
  StatisticsBuilder builder(schema, options);
  RETURN_IF_ERROR(AddRows(connection,
                          fmt::format("{} LIMIT {}", SelectValues(select, schema), limit + 1),
                          schema, &builder));
  if (builder.rows() <= limit) {
    return builder.Finish(builder.rows(), true);
  }
  if (plan.cut.has_value()) {
    return Sampled(connection, *plan.cut, select, std::min(kStatisticsSampleRows, limit), schema,
                   options);
  }
  return builder.Finish(std::llround(plan.rows), false);
}

}  // namespace

Result<SelectStatistics> PostgresStatistics(PostgresDatabase& database, std::string_view select,
                                            const Schema& schema,
                                            const StatisticsOptions& options) {
  if (!database.through_session().empty()) {
    ASSIGN_OR_RETURN(const auto spooled, database.Spooled(select, DatasetOptions()));
    return SpooledStatistics(*spooled, schema, options);
  }
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.TakeForStatement());
  const std::string trimmed(TrimStatement(select, Dialect::kPostgres));
  ASSIGN_OR_RETURN(const SelectPlan plan,
                   PlanPostgresSelect(*connection, trimmed, schema.columns.size()));
  RETURN_IF_ERROR(connection->Begin(BeginReading("")));
  auto statistics = ReadStatistics(*connection, plan, trimmed, schema, options);
  connection->Rollback();
  return statistics;
}

}  // namespace sluice::catalog
