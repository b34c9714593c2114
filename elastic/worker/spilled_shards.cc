#include "elastic/worker/spilled_shards.h"

#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "elastic/storage/crc32c.h"

namespace sluice::elastic {
namespace {

// Before that much was written, or read, nobody can tell how fast the disk is.
constexpr int64_t kBytesToJudge = int64_t{32} << 20;

double Gigabytes(int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

}  // namespace

SpilledShards::SpilledShards(Options options) : options_(std::move(options)) {}

SpilledShards::~SpilledShards() = default;

bool SpilledShards::Comparison::Loses() const {
  return bytes >= kBytesToJudge && seconds > database_seconds;
}

void SpilledShards::Keep(ShardId shard, const ShardRows& rows, double database_seconds) {
  if (ended_ || Has(shard)) {
    return;
  }
  if (file_ == nullptr) {
    Result<std::unique_ptr<SpillFile>> file = SpillFile::Create(options_.file);
    if (!file.ok()) {
      End(file.status().message());
      return;
    }
    file_ = *std::move(file);
  }
  const TimePoint begun = clock_.Now();
  const Result<Block> train = Write(rows.train);
  const Result<Block> validation = train.ok() ? Write(rows.validation) : train;
  if (!validation.ok()) {
    End(validation.status().message());
    return;
  }
  kept_[shard] = {*train, *validation, rows.rows_read, rows.checksum, database_seconds};
  writing_.bytes += static_cast<int64_t>(train->bytes + validation->bytes);
  writing_.database_seconds += database_seconds;
  writing_.seconds += SecondsBetween(begun, clock_.Now());
  if (options_.judges && writing_.Loses()) {
    End("writing there takes longer than reading the database");
  }
}

void SpilledShards::End(const std::string& why) {
  const std::string text =
      kept_.empty() ? fmt::format("later epochs read the database again: {}", why)
                    : fmt::format(
                          "later epochs read {} shards ({:.2f} GB) from a local file, and "
                          "the others from the database again: {}",
                          kept_.size(), Gigabytes(file_->bytes()), why);
  log::Info("{}", text);
  if (!std::exchange(ended_, true) && options_.on_end != nullptr) {
    options_.on_end(text);
  }
}

Result<SpilledShards::Block> SpilledShards::Write(const models::FeatureBatch& rows) {
  Block block;
  ASSIGN_OR_RETURN(block.offset, WriteColumns(rows, [&](std::span<const std::string_view> pieces) {
                     for (const std::string_view piece : pieces) {
                       block.bytes += piece.size();
                       block.crc = Crc32c(piece, block.crc);
                     }
                     return file_->Append(pieces);
                   }));
  return block;
}

void SpilledShards::Expect(ShardId shard) const {
  const auto found = kept_.find(shard);
  if (found != kept_.end()) {
    file_->Expect(found->second.train.offset, found->second.train.bytes);
  }
}

std::optional<uint64_t> SpilledShards::Checksum(ShardId shard) const {
  const auto found = kept_.find(shard);
  return found == kept_.end() ? std::nullopt : std::optional(found->second.checksum);
}

std::shared_ptr<ShardRows> SpilledShards::Read(ShardId shard) {
  return Read(shard, true);
}

std::shared_ptr<ShardRows> SpilledShards::ReadValidation(ShardId shard) {
  return Read(shard, false);
}

std::shared_ptr<ShardRows> SpilledShards::Read(ShardId shard, bool train) {
  const auto found = kept_.find(shard);
  if (found == kept_.end()) {
    return nullptr;
  }
  const TimePoint begun = clock_.Now();
  const Shard& kept = found->second;
  auto rows = std::make_shared<ShardRows>();
  rows->rows_read = kept.rows_read;
  rows->checksum = kept.checksum;
  Status status = train ? Load(kept.train, &rows->train) : Status();
  if (status.ok()) {
    status = Load(kept.validation, &rows->validation);
  }
  if (!status.ok()) {
    log::Warn("reading shard {} from the database: {}", shard, status.message());
    kept_.erase(found);
    return nullptr;
  }
  if (!train) {
    return rows;
  }
  reading_.bytes += static_cast<int64_t>(kept.train.bytes + kept.validation.bytes);
  reading_.database_seconds += kept.database_seconds;
  reading_.seconds += SecondsBetween(begun, clock_.Now());
  if (options_.judges && reading_.Loses()) {
    kept_.clear();
    End("the disk is slower than the database");
    file_.reset();
  }
  return rows;
}

Status SpilledShards::Load(const Block& block, models::FeatureBatch* rows) const {
  uint64_t at = block.offset;
  uint32_t crc = 0;
  const auto read = [&](std::span<char> piece) -> Status {
    RETURN_IF_ERROR(file_->Read(at, piece));
    at += piece.size();
    crc = Crc32c({piece.data(), piece.size()}, crc);
    return Status();
  };
  RETURN_IF_ERROR(ReadColumns(block.bytes, read, rows));
  return crc == block.crc ? Status() : Internal("its columns are not what was written");
}

}  // namespace sluice::elastic
