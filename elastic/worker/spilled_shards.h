#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/worker/shard_columns.h"
#include "elastic/worker/spill_file.h"

namespace sluice::elastic {

// Shards that memory has no room for, on a local disk in the form that models use: later epochs
// read them there, without the database, decoding and transforming. What cannot be written or read
// again comes from the database: nothing here fails a training. One thread at a time.
class SpilledShards {
 public:
  struct Options {
    SpillFile::Options file;
    // Gives up where the disk turns out to be slower than the database.
    bool judges = true;
    // Called once, with the reason, when no further shards are kept.
    std::function<void(const std::string&)> on_end;
  };
  explicit SpilledShards(Options options);
  ~SpilledShards();

  // `database_seconds`: what it took to read the shard. Each shard is kept once.
  void Keep(ShardId shard, const ShardRows& rows, double database_seconds);
  bool Has(ShardId shard) const { return kept_.contains(shard); }
  // The shard will be read soon.
  void Expect(ShardId shard) const;
  // null: it is not kept, or is damaged.
  std::shared_ptr<ShardRows> Read(ShardId shard);
  // Without the training rows.
  std::shared_ptr<ShardRows> ReadValidation(ShardId shard);
  // ShardRows::checksum.
  std::optional<uint64_t> Checksum(ShardId shard) const;

 private:
  // A FeatureBatch in the file.
  struct Block {
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint32_t crc = 0;
  };
  struct Shard {
    Block train, validation;
    int64_t rows_read = 0;
    uint64_t checksum = 0;
    double database_seconds = 0;
  };
  // What the same bytes took, there and here.
  struct Comparison {
    int64_t bytes = 0;
    double database_seconds = 0, seconds = 0;
    bool Loses() const;
  };
  std::shared_ptr<ShardRows> Read(ShardId shard, bool train);
  Result<Block> Write(const models::FeatureBatch& rows);
  Status Load(const Block& block, models::FeatureBatch* rows) const;
  void End(const std::string& why);

  const Options options_;
  const SteadyClock clock_;
  std::unique_ptr<SpillFile> file_;
  bool ended_ = false;
  Comparison writing_, reading_;
  std::unordered_map<ShardId, Shard> kept_;
};

}  // namespace sluice::elastic
