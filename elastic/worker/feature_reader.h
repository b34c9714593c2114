#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/profile.h"
#include "base/row_batch.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/worker/split.h"
#include "models/features/feature_transform.h"

namespace sluice::catalog {
class DataSource;
class DatasetSpec;
class RowStream;
class ShardReader;
struct CopiedColumns;
}  // namespace sluice::catalog

namespace sluice::elastic {

class ReadWatch;

// Turns the rows of a dataset's shards into features and labels, a piece at a time, and decides
// which of them are validation rows. All training and scoring reads rows through this class. Not
// thread-safe.
class FeatureReader {
 public:
  struct Options {
    bool with_label = true;
    // The transform's columns by their names in this dataset; empty: the transform's own names.
    std::vector<std::string> names = {};
    SplitRule split = {};
    // Further columns, passed through; must outlive the reader. Null: none.
    const catalog::CopiedColumns* copied = nullptr;
    ReadWatch* watch = nullptr;  // notified of each read; must outlive the reader
    // How long a read may wait for another session's lock (55P03); 0: until it is free.
    std::chrono::milliseconds lock_wait{0};
    PhaseClock* clock = nullptr;  // of this thread; must outlive the reader. Null: none
  };
  // `source`, `spec` and `transform` must outlive it. NotFound (42703): a column does not exist.
  // Does not query the database before Open.
  static Result<std::unique_ptr<FeatureReader>> Make(catalog::DataSource& source,
                                                     const catalog::DatasetSpec& spec,
                                                     const models::FeatureTransform& transform,
                                                     Options options);
  ~FeatureReader();

  // Makes the connection and takes the locks that Open would otherwise wait for.
  Status Prepare();
  // Begins a shard at its first row. The rest of a previous shard is skipped.
  Status Open(ShardId shard);
  bool open() const { return stream_ != nullptr; }
  // Reads at most `rows` further rows of the shard. False: there are none, and the shard is closed,
  // as after an error.
  Result<bool> Next(size_t rows);
  // From now on the time of another thread is counted; returns the clock before.
  PhaseClock* SetClock(PhaseClock* clock) { return std::exchange(clock_, clock); }
  void Close();       // the shard
  void Disconnect();  // and the connection: the next Open makes a new one

  // Rows read from the database since construction.
  int64_t rows_read() const { return rows_read_; }
  // The rows of the last Next.
  size_t rows() const { return batch_.rows; }
  const models::FeatureBatch& features() const { return features_; }
  // The `i`th of the transform's columns, as it was read.
  const RowBatch::Column& column(size_t i) const { return batch_.columns[i]; }
  models::FeatureBatch& features() { return features_; }
  void AppendTraining(models::FeatureBatch* to);
  void AppendValidation(models::FeatureBatch* to);
  // The `i`th of the copied columns. May be swapped for another one, whose memory is reused.
  RowBatch::Column& copied(size_t i) { return batch_.columns[read_.size() + i]; }

 private:
  FeatureReader(catalog::DataSource& source, const catalog::DatasetSpec& spec,
                const models::FeatureTransform& transform, Options options);
  Status FindColumns();
  Status Connect();
  Status ReadBatch(size_t rows);
  void Split();
  Status Transform();

  catalog::DataSource& source_;
  const catalog::DatasetSpec& spec_;
  const models::FeatureTransform& transform_;
  const Options options_;
  PhaseClock* clock_;
  const std::vector<int64_t> places_;  // by shard: of its first row in the dataset
  std::vector<size_t> read_;  // of the dataset's columns: the transform's, then the split's
  size_t wanted_ = 0;         // number of the transform's columns
  std::vector<size_t> split_columns_;  // positions in read_

  std::unique_ptr<catalog::ShardReader> reader_;
  std::unique_ptr<catalog::RowStream> stream_;
  RowPlaces at_;  // of the next row in the dataset
  int64_t rows_read_ = 0;
  RowBatch batch_;
  std::vector<RowBatch::Column> others_;  // columns of batch_ that the transform does not use
  models::FeatureBatch features_, part_;
  std::vector<uint32_t> training_, validation_;  // rows of the piece, if some are for validation
};

}  // namespace sluice::elastic
