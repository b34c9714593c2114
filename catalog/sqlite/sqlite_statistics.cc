#include <fmt/core.h>

#include <cmath>

#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite/sqlite_cut_internal.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/statistics_builder.h"

namespace sluice::catalog {
namespace {

Status AddRows(SqliteConnection& connection, const std::string& sql, const Schema& schema,
               StatisticsBuilder* builder) {
  ASSIGN_OR_RETURN(const auto stream,
                   OpenSqliteStream(connection, sql, schema, schema.columns.size(),
                                    CopiedColumns::Purpose::kShow));
  RowBatch batch;
  do {
    RETURN_IF_ERROR(stream->Next(kStatisticsBatchRows, &batch));
    builder->Add(batch);
  } while (batch.rows > 0);
  return OkStatus();
}

// Rows from many places of a large table.
Result<SelectStatistics> Sampled(SqliteConnection& connection, const RowidCut& cut,
                                 const RowDensity& density, int64_t sample_rows,
                                 const Schema& schema, const StatisticsOptions& options) {
  StatisticsBuilder builder(schema, options);
  for (const auto& [begin, end] : SpreadRanges(density, kStatisticsSampleRanges, sample_rows)) {
    RETURN_IF_ERROR(AddRows(
        connection, WithBounds(cut.shard_select, fmt::format("{}", begin), fmt::format("{}", end)),
        schema, &builder));
  }
  return builder.Finish(std::llround(density.rows()), false);
}

}  // namespace

Result<SelectStatistics> SqliteStatistics(SqliteDatabase& database, std::string_view select,
                                          const Schema& schema, const StatisticsOptions& options) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
  const std::string trimmed(TrimStatement(select, Dialect::kSqlite));
  const int64_t limit = ExactRowLimit(schema, options);
  ASSIGN_OR_RETURN(const auto cut, FindRowidCut(*connection, trimmed, schema.columns.size()));
  if (cut.has_value()) {
    ASSIGN_OR_RETURN(const auto density, ProbeRowids(*connection, *cut));
    // Not worth reading `limit` rows when there are certainly more.
    if (density.has_value() && density->rows() > 2 * static_cast<double>(limit)) {
      return Sampled(*connection, *cut, *density,
                     std::min(kStatisticsSampleRows, std::max<int64_t>(limit, 1)), schema, options);
    }
  }
  StatisticsBuilder builder(schema, options);
  RETURN_IF_ERROR(AddRows(*connection,
                          fmt::format("SELECT * FROM (\n{}\n) LIMIT {}", trimmed, limit + 1),
                          schema, &builder));
  if (builder.rows() <= limit) {
    return builder.Finish(builder.rows(), true);
  }
  ASSIGN_OR_RETURN(const int64_t rows,
                   connection->QueryInteger(fmt::format("SELECT count(*) FROM (\n{}\n)", trimmed)));
  return builder.Finish(rows, false);
}

}  // namespace sluice::catalog
