#include "elastic/queue/ledger.h"

#include <fmt/core.h>

#include <algorithm>

namespace sluice::elastic {
namespace {

Status SourceChanged(std::string message) {
  return Status(Code::kAborted, std::move(message))
      .SqlState("40001")
      .Hint("train on a table that is not written to, or let the job stage the rows first");
}

}  // namespace

Ledger::Ledger(int64_t shards)
    : rows_per_epoch_(1, 0),
      missing_per_epoch_(1, 0),
      shard_rows_(static_cast<size_t>(shards), -1) {}

void Ledger::Add(const Totals& news) {
  rows_per_epoch_.back() += news.rows;
  totals_.rows += news.rows;
  totals_.rows_read += news.rows_read;
  totals_.rows_retried += news.rows_retried;
  totals_.loss += news.loss;
  totals_.weight += news.weight;
}

Status Ledger::CheckRows(ShardId shard, int64_t rows) const {
  const int64_t known = ShardRows(shard);
  if (known < 0 || known == rows) {
    return Status();
  }
  return SourceChanged(
      fmt::format("shard {} had {} training rows in an earlier epoch and has {} in epoch {}: the "
                  "source changed while the job ran",
                  shard, known, rows, rows_per_epoch_.size()));
}

Status Ledger::CheckChecksum(ShardId shard, uint64_t checksum) const {
  return checksum == 0 ? Status() : Compare(shard, checksum);
}

Status Ledger::Compare(ShardId shard, uint64_t checksum) const {
  if (checksums_.empty()) {
    return Status();
  }
  const uint64_t known = checksums_[shard.index()];
  if (known == 0 || known == checksum) {
    return Status();
  }
  return SourceChanged(
      fmt::format("shard {} was read twice and was not the same (checksums {:016x} and {:016x}): "
                  "the source changed while the job ran",
                  shard, known, checksum));
}

void Ledger::SawChecksum(ShardId shard, uint64_t checksum) {
  if (checksum == 0) {
    return;
  }
  if (checksums_.empty()) {
    checksums_.resize(shard_rows_.size(), 0);
  }
  checksums_[shard.index()] = checksum;
  read_.resize(checksums_.size());
  read_[shard.index()] = true;
}

void Ledger::Expect(const Known& known) {
  shard_rows_ = known.rows;
  checksums_ = known.checksums;
  ForgetReads();
}

std::vector<ShardId> Ledger::Unread() const {
  std::vector<ShardId> unread;
  for (size_t shard = 0; shard < checksums_.size(); ++shard) {
    if (checksums_[shard] != 0 && (shard >= read_.size() || !read_[shard])) {
      unread.push_back(ShardId::At(shard));
    }
  }
  return unread;
}

void Ledger::Skip(const Skipped& range, int64_t committed) {
  const int64_t known = ShardRows(range.shard);
  missing_per_epoch_.back() += std::max<int64_t>(known, 0) - committed;
  skipped_.push_back(range);
  if (known >= 0) {
    skipped_.back().rows = known - committed;
  } else if (range.rows >= 0) {
    skipped_.back().rows = range.rows - committed;
  }
}

int64_t Ledger::rows_skipped() const {
  int64_t rows = 0;
  for (const Skipped& range : skipped_) {
    rows += std::max<int64_t>(range.rows, 0);
  }
  return rows;
}

int64_t Ledger::RowsOfSnapshot() const {
  int64_t rows = 0;
  for (int64_t shard : shard_rows_) {
    rows += std::max<int64_t>(shard, 0);
  }
  return rows;
}

Status Ledger::Check() const {
  const int64_t snapshot = RowsOfSnapshot();
  for (size_t epoch = 0; epoch < rows_per_epoch_.size(); ++epoch) {
    if (rows_per_epoch_[epoch] + missing_per_epoch_[epoch] != snapshot) {
      return Internal(fmt::format(
          "the ledger does not add up: {} rows trained in epoch {}, {} in the snapshot",
          rows_per_epoch_[epoch], Epoch::At(epoch), snapshot - missing_per_epoch_[epoch]));
    }
  }
  const auto unknown = std::count(shard_rows_.begin(), shard_rows_.end(), -1);
  if (unknown == 0) {
    return Status();
  }
  std::vector<ShardId> given_up;
  for (const Skipped& range : skipped_) {
    if (ShardRows(range.shard) < 0) {
      given_up.push_back(range.shard);
    }
  }
  std::sort(given_up.begin(), given_up.end());
  given_up.erase(std::unique(given_up.begin(), given_up.end()), given_up.end());
  if (static_cast<size_t>(unknown) != given_up.size()) {
    return Internal("the ledger does not add up: a shard was never committed");
  }
  return Status();
}

uint64_t Ledger::Checksum() const {
  uint64_t sum = 0;
  for (uint64_t shard : checksums_) {
    sum += shard;
  }
  return sum;
}

}  // namespace sluice::elastic
