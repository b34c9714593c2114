#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/postgres_connection_internal.h"
#include "catalog/postgres_types_internal.h"

namespace sluice::catalog {

// The server that a PostgreSQL data source stands for. Thread-safe.
class PostgresDatabase final : public SqlDatabase {
 public:
  explicit PostgresDatabase(PostgresAddress address);

  const std::string& url() const { return address_.url; }
  const std::string& password() const { return address_.password; }
  PostgresPool& pool() { return pool_; }

  Dialect dialect() const override { return Dialect::kPostgres; }
  Result<std::unique_ptr<SqlSession>> TakeSession() override;

 private:
  PostgresAddress address_;
  PostgresPool pool_;
};

// What a transaction that reads shards begins with: rows come in the order of the table, and every
// shard by a scan of its own blocks. Takes the exported snapshot when one is given.
std::string BeginReading(std::string_view snapshot);

// The rows of `sql`, whose columns are those of `schema`, decoded straight from the wire. The
// connection serves nothing else until the stream is gone; a stream that is left before its end
// cancels the statement, and the transaction around it is lost. `connection` outlives the stream.
Result<std::unique_ptr<RowStream>> OpenPostgresStream(PostgresConnection& connection,
                                                      std::string_view sql, Schema schema);

// The same through libpq, for connections with TLS, where the socket alone is not enough.
Result<std::unique_ptr<RowStream>> OpenLibpqStream(PostgresConnection& connection,
                                                   std::string_view sql, Schema schema);

Result<std::unique_ptr<Dataset>> OpenPostgresDataset(PostgresDatabase& database,
                                                     std::string_view select,
                                                     const DatasetOptions& options);
Result<CutEstimate> EstimatePostgresCut(PostgresDatabase& database, std::string_view select,
                                        const DatasetOptions& options);
Result<std::unique_ptr<ShardReader>> OpenPostgresReader(PostgresDatabase& database,
                                                        const DatasetSpec& spec);
Result<SelectStatistics> PostgresStatistics(PostgresDatabase& database, std::string_view select,
                                            const Schema& schema, const StatisticsOptions& options);
Result<std::unique_ptr<TableWriter>> CreatePostgresTable(PostgresDatabase& database,
                                                         std::string_view table,
                                                         const Schema& schema);
Status AppendPostgresRows(PostgresDatabase& database, std::string_view table, const Schema& schema,
                          const RowBatch& batch);
// Runs one statement on `connection`.
Result<ExecuteResult> ExecuteOnPostgres(PostgresConnection& connection, std::string_view sql,
                                        RowReceiver* receiver, std::stop_token stop);

}  // namespace sluice::catalog
