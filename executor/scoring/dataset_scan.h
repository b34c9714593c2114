#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string_view>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "elastic/worker/feature_reader.h"

namespace sluice::executor {

// Reads the rows of a SELECT as features for a model, shard after shard, on the calling thread,
// from one snapshot. Never holds the whole table in memory.
class DatasetScan {
 public:
  // Rows fetched from the database at a time: enough to amortise a call, small enough for the
  // cache.
  static constexpr size_t kRowsPerBatch = 4096;

  // `copies`: columns to copy to the output; nullopt: none.
  static Result<std::unique_ptr<DatasetScan>> Open(
      catalog::DataSource& source, std::string_view select, int64_t rows_per_shard,
      std::optional<catalog::CopiedColumns::Purpose> copies = std::nullopt);
  ~DatasetScan();

  const Schema& schema() const { return schema_; }
  // Lowers the number of rows per batch, for rows that become wide in processing.
  void set_rows_per_batch(size_t rows) { rows_per_batch_ = rows; }
  // Rows that have come from the database, including unusable ones.
  int64_t rows_read() const { return rows_read_; }
  // Calls `visit` after each batch. Ends with Cancelled when `stop` is requested.
  using Visitor = std::function<Status(elastic::FeatureReader& read)>;
  Status ForEach(const models::FeatureTransform& transform,
                 const elastic::FeatureReader::Options& options, const Visitor& visit,
                 const std::stop_token& stop);

 private:
  DatasetScan(catalog::DataSource& source, std::unique_ptr<catalog::Dataset> dataset);
  catalog::DataSource& source_;
  std::unique_ptr<catalog::Dataset> dataset_;
  Schema schema_;
  size_t rows_per_batch_ = kRowsPerBatch;
  int64_t rows_read_ = 0;
};

}  // namespace sluice::executor
