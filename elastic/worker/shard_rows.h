#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/worker/feature_reader.h"
#include "elastic/worker/read_watch.h"
#include "elastic/worker/shard_columns.h"
#include "elastic/worker/spilled_shards.h"

namespace sluice::elastic {

// Loads shards of one dataset from its database, a piece at a time, so that one thread can train on
// a shard while the next one is loaded (a reader that sleeps slows the server down). Rows are kept
// for later epochs: in memory if all fit, else on the disk. Not thread-safe,
// but rows_read() and waiting() may be called while another thread loads.
class ShardLoader {
 public:
  struct Options {
    bool all_validation = false;  // a dataset of validation rows only
    // The training rows are judged, too: they have FeatureBatch::label_numbers.
    bool judge_training = false;
    bool keep_rows = false;  // later epochs will read the same shards
    bool checksum = false;   // other processes may read the same shards
    // The most bytes of rows that may be kept: this process has no more memory.
    int64_t most_kept = std::numeric_limits<int64_t>::max();
    // Where rows are kept that memory has no room for; none: they are read again.
    std::optional<SpilledShards::Options> spill;
    ReadWatch* watch = nullptr;  // notified of each read; must outlive the loader
    // How long to retry when the database cannot be reached, has no connection left or blocks reads
    // by a lock.
    double patience_seconds = 3;
    PhaseClock* clock = nullptr;  // of this thread; must outlive the loader. Null: none
  };
  // `transform` and `source` must outlive it.
  static Result<std::unique_ptr<ShardLoader>> Make(catalog::DataSource& source,
                                                   const catalog::DatasetSpec& spec,
                                                   const models::FeatureTransform& transform,
                                                   const SplitRule& split, const Options& options);
  ~ShardLoader();

  // Begins to load a shard; the database is queried when Pump is called. One at a time.
  Status Start(ShardId shard);
  // Reads about `rows` further rows. True when the shard is complete. While the database is
  // unavailable (`waiting`) it returns after a moment without reading; then the shard begins anew.
  Result<bool> Pump(size_t rows);
  void HearStop(std::stop_token stop) { stop_ = std::move(stop); }  // ends waits (57014)
  bool waiting() const { return waiting_; }
  // The started shard is one that was kept in memory: Pump reads nothing.
  bool kept() const { return found_ != nullptr; }
  // See FeatureReader.
  PhaseClock* SetClock(PhaseClock* clock) {
    reader_->SetClock(clock);
    return std::exchange(clock_of_, clock);
  }
  // The shard that Pump has completed, or that was kept.
  const ShardRows& complete() const { return *found_; }
  std::shared_ptr<const ShardRows> Finish();
  // The shard's rows are not needed in memory any more.
  void Forget(ShardId shard) { kept_.erase(shard); }
  // Abandons the shard that is being loaded.
  void Abandon();
  bool loading() const { return loading_; }

  // The validation rows of a shard: kept from its training, or read again.
  Result<std::shared_ptr<const ShardRows>> Validation(ShardId shard);
  // ShardRows::checksum of the shard as it is now, or as it was read by this loader.
  Result<uint64_t> Checksum(ShardId shard);
  int64_t rows_read() const { return rows_read_; }
  // Spent in reading the last shard that was started; 0: it was kept. Not beside another thread
  // that loads.
  double reading_seconds() const { return reading_seconds_; }

 private:
  ShardLoader(const catalog::DatasetSpec& spec, const Options& options);
  Result<bool> Read(size_t rows);
  Result<bool> ReadPiece(size_t rows);
  bool ReadSpilled();
  Result<bool> WaitOrGiveUp(const Status& why);
  void Keep();
  void KeepValidation();
  Result<std::shared_ptr<const ShardRows>> ReadWhole(ShardId shard);

  const catalog::DatasetSpec& spec_;
  const Options options_;
  std::unique_ptr<FeatureReader> reader_;
  ShardId shard_;
  bool loading_ = false;
  std::shared_ptr<ShardRows> rows_;
  std::shared_ptr<const ShardRows> found_;
  std::atomic<int64_t> rows_read_ = 0;
  PhaseClock* clock_of_;
  SteadyClock clock_;
  std::stop_token stop_;
  std::optional<TimePoint> waiting_since_;
  std::atomic<bool> waiting_ = false;  // waiting_since_ has a value
  std::chrono::milliseconds pause_{0};

  double reading_seconds_ = 0;

  std::optional<bool> keep_all_;  // decided with the first shard
  std::unordered_map<ShardId, std::shared_ptr<const ShardRows>> kept_;
  std::unordered_map<ShardId, std::shared_ptr<const ShardRows>> kept_validation_;
  size_t kept_validation_bytes_ = 0;
  std::unique_ptr<SpilledShards> spilled_;  // null: none are spilled
};

}  // namespace sluice::elastic
