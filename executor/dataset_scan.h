#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::catalog {
class DataSource;
class Dataset;
struct CopiedColumns;
}  // namespace sluice::catalog

namespace sluice::executor {

// Reads the named columns of a SELECT, shard after shard, in this thread, from one snapshot. The
// whole table never is in memory.
class DatasetScan {
 public:
  // Rows asked of the database at a time: large enough to amortise a call, small enough for the
  // cache.
  static constexpr size_t kRowsPerBatch = 4096;

  static Result<std::unique_ptr<DatasetScan>> Open(catalog::DataSource& source,
                                                   std::string_view select, int64_t rows_per_shard);
  ~DatasetScan();

  const Schema& schema() const { return schema_; }
  // Position of a column in schema(); NotFound (42703) when the SELECT does not have it.
  Result<size_t> Column(std::string_view name) const;
  // For rows that become wide on their way: at most so many at a time.
  void set_rows_per_batch(size_t rows) { rows_per_batch_ = rows; }
  // Calls `visit` with every batch (columns in the order given, then the copied ones) and the shard
  // and the row inside the shard that it starts at. Stops with Cancelled when `stop` is requested.
  using Visitor = std::function<Status(RowBatch& batch, int64_t shard, int64_t first_row)>;
  Status ForEach(const std::vector<size_t>& columns, const catalog::CopiedColumns& copied,
                 const Visitor& visit, std::stop_token stop);
  const std::string& fingerprint() const;

 private:
  DatasetScan(catalog::DataSource& source, std::unique_ptr<catalog::Dataset> dataset);
  catalog::DataSource& source_;
  std::unique_ptr<catalog::Dataset> dataset_;
  Schema schema_;
  size_t rows_per_batch_ = kRowsPerBatch;
};

}  // namespace sluice::executor
