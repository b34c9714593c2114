#include "elastic/worker/shard_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "catalog/dataset.pb.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/worker/row_selection.h"

namespace sluice::elastic {
namespace {

// Later epochs read the rows from memory if the whole dataset fits in this; otherwise none of it is
// kept there, so that memory does not grow with the table.
constexpr double kKeptBytes = 256.0 * (1 << 20);
// Validation rows kept for the evaluation at the end of the epoch; the rest is read again.
constexpr size_t kKeptValidationBytes = 64U << 20;
// Rows read from the database at a time: few enough to stay in the cache through transform and
// split.
constexpr size_t kTileRows = 1024;
// A database that restarts, drops a connection or is full is tried again after 0.1 s, 0.2 s ...
constexpr auto kFirstReadWait = std::chrono::milliseconds(100);
constexpr auto kLongestReadWait = std::chrono::milliseconds(800);
// A statement that waits for a lock is withdrawn after this time and sent again, so that none
// remains in the queue after its process has died.
constexpr std::chrono::seconds kReadLockWait{2};

}  // namespace

ShardLoader::ShardLoader(const catalog::DatasetSpec& spec, const Options& options)
    : spec_(spec), options_(options), clock_of_(options.clock) {}

ShardLoader::~ShardLoader() = default;

Result<std::unique_ptr<ShardLoader>> ShardLoader::Make(catalog::DataSource& source,
                                                       const catalog::DatasetSpec& spec,
                                                       const models::FeatureTransform& transform,
                                                       const SplitRule& split,
                                                       const Options& options) {
  std::unique_ptr<ShardLoader> loader(new ShardLoader(spec, options));
  FeatureReader::Options reader;
  reader.split = options.all_validation ? SplitRule() : split;
  reader.watch = options.watch;
  reader.lock_wait = kReadLockWait;
  reader.clock = options.clock;
  ASSIGN_OR_RETURN(loader->reader_, FeatureReader::Make(source, spec, transform, reader));
  return loader;
}

Status ShardLoader::Start(ShardId shard) {
  SLUICE_CHECK(!loading_, "one shard is loaded at a time");
  if (shard < ShardId::First() || shard >= ShardId(spec_.shards_size())) {
    return Internal(fmt::format("no shard {}: the dataset has {}", shard, spec_.shards_size()));
  }
  shard_ = shard;
  loading_ = true;
  found_.reset();
  reading_seconds_ = 0;
  const auto kept = kept_.find(shard);
  if (kept != kept_.end()) {
    found_ = kept->second;
    return Status();
  }
  rows_ = std::make_shared<ShardRows>();
  if (spilled_ != nullptr) {
    spilled_->Expect(shard);
  }
  return Status();
}

Result<bool> ShardLoader::Pump(size_t rows) {
  SLUICE_CHECK(loading_, "Start comes before Pump");
  const PhaseScope transforming(clock_of_, Phase::kTransforming);
  Result<bool> complete = Read(rows);
  const Status status = complete.status();
  if (status.code() == Code::kUnavailable || catalog::IsUnavailableForNow(status)) {
    return WaitOrGiveUp(status);
  }
  if (waiting() && options_.watch != nullptr) {
    options_.watch->WaitFor("");
  }
  waiting_since_.reset();
  waiting_ = false;
  return complete;
}

// Temporary: a restart, a lock, a server that is full.
Result<bool> ShardLoader::WaitOrGiveUp(const Status& why) {
  const TimePoint now = clock_.Now();
  if (!waiting()) {
    waiting_since_ = now;
    waiting_ = true;
    pause_ = kFirstReadWait;
  }
  if (stop_.stop_requested()) {
    return Cancelled("the training was stopped while it waited for its database");
  }
  const double waited = SecondsBetween(*waiting_since_, now);
  if (waited >= options_.patience_seconds) {
    waiting_since_.reset();
    waiting_ = false;
    return Status(why).Because(fmt::format("shard {} could not be read for {:.0f} seconds", shard_,
                                           options_.patience_seconds));
  }
  log::Warn("reading shard {} again: {}", shard_, why.message());
  if (options_.watch != nullptr) {
    const std::string& detail = why.diagnostics().front().detail;
    options_.watch->WaitFor(fmt::format("shard {} cannot be read yet: {}{}", shard_, why.message(),
                                        detail.empty() ? "" : "; " + detail));
  }
  const PhaseScope waiting(clock_of_, Phase::kDatabase);
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongestReadWait);
  reader_->Disconnect();
  rows_ = std::make_shared<ShardRows>();
  reading_seconds_ = 0;
  return false;
}

Result<bool> ShardLoader::Read(size_t rows) {
  if (found_ != nullptr || ReadSpilled()) {
    return true;
  }
  const TimePoint begun = clock_.Now();
  Result<bool> complete = ReadPiece(rows);
  reading_seconds_ += SecondsBetween(begun, clock_.Now());
  if (complete.ok() && *complete) {
    found_ = rows_;
    Keep();
  }
  return complete;
}

bool ShardLoader::ReadSpilled() {
  if (spilled_ == nullptr || reader_->open() || !spilled_->Has(shard_)) {
    return false;
  }
  const PhaseScope reading(clock_of_, Phase::kCache);
  found_ = spilled_->Read(shard_);
  return found_ != nullptr;
}

Result<bool> ShardLoader::ReadPiece(size_t rows) {
  if (!reader_->open()) {
    RETURN_IF_ERROR(reader_->Open(shard_));
  }
  for (size_t read = 0; read < rows; read += reader_->rows()) {
    ASSIGN_OR_RETURN(const bool more, reader_->Next(std::min(rows - read, kTileRows)));
    if (!more) {
      return true;
    }
    if (options_.all_validation) {
      rows_->validation.Append(reader_->features());
    } else {
      reader_->AppendTraining(&rows_->train);
      if (!options_.judge_training) {
        rows_->train.label_numbers.clear();
      }
      reader_->AppendValidation(&rows_->validation);
    }
    rows_->rows_read += static_cast<int64_t>(reader_->rows());
    rows_read_ += static_cast<int64_t>(reader_->rows());
  }
  return false;
}

void ShardLoader::Keep() {
  const size_t bytes = rows_->train.Bytes() + rows_->validation.Bytes();
  if (options_.keep_rows && !keep_all_.has_value() && rows_->rows_read > 0) {
    const double bytes_per_row = static_cast<double>(bytes) / static_cast<double>(rows_->rows_read);
    const double rows = static_cast<double>(
        std::max<int64_t>(spec_.estimated_rows(), rows_->rows_read * spec_.shards_size()));
    keep_all_ =
        bytes_per_row * rows <= std::min(kKeptBytes, static_cast<double>(options_.most_kept));
  }
  if (options_.checksum || (options_.keep_rows && !keep_all_.value_or(false))) {
    rows_->checksum = ChecksumOf(rows_->train) + ChecksumOf(rows_->validation);
  }
  if (keep_all_.value_or(false)) {
    kept_[shard_] = rows_;
    return;
  }
  KeepValidation();
  if (keep_all_.has_value() && options_.spill.has_value()) {
    const PhaseScope writing(clock_of_, Phase::kCache);
    if (spilled_ == nullptr) {
      spilled_ = std::make_unique<SpilledShards>(*options_.spill);
    }
    spilled_->Keep(shard_, *rows_, reading_seconds_);
  }
}

void ShardLoader::KeepValidation() {
  const size_t bytes = rows_->validation.Bytes();
  if (rows_->validation.rows == 0 || kept_validation_.contains(shard_) ||
      kept_validation_bytes_ + bytes >
          std::min<size_t>(kKeptValidationBytes, static_cast<size_t>(options_.most_kept))) {
    return;
  }
  auto validation = std::make_shared<ShardRows>();
  validation->validation = rows_->validation;
  validation->checksum = rows_->checksum;
  kept_validation_bytes_ += bytes;
  kept_validation_[shard_] = std::move(validation);
}

std::shared_ptr<const ShardRows> ShardLoader::Finish() {
  SLUICE_CHECK(loading_ && found_ != nullptr, "only a complete shard is handed out");
  loading_ = false;
  rows_.reset();
  return std::move(found_);
}

void ShardLoader::Abandon() {
  loading_ = false;
  reader_->Close();
  rows_.reset();
  found_.reset();
}

Result<std::shared_ptr<const ShardRows>> ShardLoader::Validation(ShardId shard) {
  for (const auto* kept : {&kept_, &kept_validation_}) {
    const auto found = kept->find(shard);
    if (found != kept->end()) {
      return found->second;
    }
  }
  if (spilled_ != nullptr) {
    const PhaseScope reading(clock_of_, Phase::kCache);
    if (std::shared_ptr<const ShardRows> rows = spilled_->ReadValidation(shard)) {
      return rows;
    }
  }
  return ReadWhole(shard);
}

Result<uint64_t> ShardLoader::Checksum(ShardId shard) {
  if (spilled_ != nullptr) {
    if (const std::optional<uint64_t> checksum = spilled_->Checksum(shard)) {
      return *checksum;
    }
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<const ShardRows> rows, ReadWhole(shard));
  return rows->checksum;
}

Result<std::shared_ptr<const ShardRows>> ShardLoader::ReadWhole(ShardId shard) {
  RETURN_IF_ERROR(Start(shard));
  for (;;) {
    Result<bool> complete = Pump(kTileRows);
    if (!complete.ok()) {
      Abandon();
      return complete.status();
    }
    if (*complete) {
      return Finish();
    }
  }
}

}  // namespace sluice::elastic
