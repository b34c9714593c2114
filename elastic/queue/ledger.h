#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"

namespace sluice::elastic {

// What has been trained, compared with what there is: rows by epoch and by shard. Pure; not
// thread-safe. 16 bytes a shard.
class Ledger {
 public:
  struct Totals {
    int64_t rows = 0;  // committed
    int64_t rows_read = 0;
    int64_t rows_retried = 0;
    double loss = 0;  // weighted sum, and the sum of the weights
    double weight = 0;
  };
  // Batches that were given up because code fails on them.
  struct Skipped {
    Epoch epoch = Epoch::First();
    ShardId shard;
    BatchIndex first_batch;
    BatchIndex last_batch;
    int64_t rows = -1;  // -1: unknown, since no worker could read the shard
  };

  explicit Ledger(int64_t shards);

  void Add(const Totals& news);
  void NextEpoch() {
    rows_per_epoch_.push_back(0);
    missing_per_epoch_.push_back(0);
  }
  // An error: the shard does not have the same rows as before. `checksum` 0: unknown.
  Status CheckRows(ShardId shard, int64_t rows) const;
  Status CheckChecksum(ShardId shard, uint64_t checksum) const;
  // The shard's rows have been read only to be compared.
  Status Compare(ShardId shard, uint64_t checksum) const;
  void SawChecksum(ShardId shard, uint64_t checksum);
  // What is known of each shard: its training rows (-1: nothing), and the checksum of all its rows
  // (0: nothing; or none of any shard).
  struct Known {
    std::vector<int64_t> rows = {};
    std::vector<uint64_t> checksums = {};
  };
  Known known() const { return {shard_rows_, checksums_}; }
  // A job resumes from a checkpoint: the rows must be as they were then. Precondition: it is known
  // of as many shards.
  void Expect(const Known& known);
  // A job resumes from a checkpoint, perhaps from another database: none of its rows have been read
  // since.
  void ForgetReads() { read_.clear(); }
  // Shards whose rows are known, and have not been read since the job began or resumed.
  std::vector<ShardId> Unread() const;
  void ShardDone(ShardId shard, int64_t rows) { shard_rows_[shard.index()] = rows; }
  // `committed`: rows of the shard that were nevertheless trained in this epoch.
  void Skip(const Skipped& range, int64_t committed);

  const Totals& totals() const { return totals_; }
  const std::vector<int64_t>& rows_per_epoch() const { return rows_per_epoch_; }
  const std::vector<Skipped>& skipped() const { return skipped_; }
  int64_t rows_skipped() const;  // as far as they could be counted
  // Training rows of the snapshot: known once an epoch is done.
  int64_t RowsOfSnapshot() const;
  int64_t ShardRows(ShardId shard) const { return shard_rows_[shard.index()]; }
  // Fails unless every epoch had every row once, except those that were skipped and named.
  Status Check() const;
  // Over all shards, independent of the order in which they were read. 0: unknown.
  uint64_t Checksum() const;

 private:
  friend class QueueCodec;
  Totals totals_;
  std::vector<int64_t> rows_per_epoch_;
  // Rows that an epoch must lack: known rows of skipped shards, minus those trained.
  std::vector<int64_t> missing_per_epoch_;
  std::vector<int64_t> shard_rows_;  // -1: not known yet
  std::vector<uint64_t> checksums_;  // empty until there is one; 0: not known
  std::vector<bool> read_;           // as checksums_, or shorter: those that have been read
  std::vector<Skipped> skipped_;
};

}  // namespace sluice::elastic
