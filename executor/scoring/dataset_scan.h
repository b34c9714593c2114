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

// The rows of a SELECT as features for a model, from one snapshot. Never holds the whole table in
// memory.
class DatasetScan {
 public:
  // Rows fetched from the database at a time: enough to amortise a call, small enough for the
  // cache.
  static constexpr size_t kRowsPerBatch = 4096;

  // Its rows_per_shard <= 0: the default.
  static Result<std::unique_ptr<DatasetScan>> Open(catalog::DataSource& source,
                                                   std::string_view select,
                                                   catalog::DatasetOptions options);
  ~DatasetScan();

  const Schema& schema() const { return schema_; }
  // Lowers the number of rows per batch, for rows that become wide in processing.
  void set_rows_per_batch(size_t rows) { rows_per_batch_ = rows; }
  // Rows that have come from the database, including unusable ones.
  int64_t rows_read() const { return rows_read_; }
  int shards() const;
  // What the rows are read from, for people: "snapshot 731:731:".
  const std::string& snapshot() const;
  int64_t estimated_rows() const;
  // A reader of the rows, for one thread. It waits a moment for another session's lock (55P03).
  // `ahead`: of a large shard it reads ahead, on a connection more. The scan and the arguments must
  // outlive it.
  Result<std::unique_ptr<elastic::FeatureReader>> MakeReader(
      const models::FeatureTransform& transform, elastic::FeatureReader::Options options,
      bool ahead) const;

  // Reads shard after shard on the calling thread, and calls `visit` after each batch. Ends with
  // Cancelled when `stop` is requested.
  using Visitor = std::function<Status(elastic::FeatureReader& read)>;
  Status ForEach(const models::FeatureTransform& transform,
                 const elastic::FeatureReader::Options& options, const Visitor& visit,
                 const std::stop_token& stop);

 private:
  DatasetScan(catalog::DataSource& source, std::unique_ptr<catalog::Dataset> dataset);
  catalog::DataSource& source_;
  std::unique_ptr<catalog::Dataset> dataset_;
  std::unique_ptr<const catalog::DatasetSpec> not_ahead_;  // the dataset's, for such readers
  Schema schema_;
  size_t rows_per_batch_ = kRowsPerBatch;
  int64_t rows_read_ = 0;
};

}  // namespace sluice::executor
