#include "elastic/worker/shard_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/queue/shard_order.h"
#include "elastic/worker/row_selection.h"

namespace sluice::elastic {
namespace {

// Later epochs read the rows from memory when the whole dataset fits in this; otherwise none of it
// is kept, so that memory does not grow with the table.
constexpr double kKeptBytes = 256.0 * (1 << 20);
// Validation rows kept for the evaluation at the end of the epoch; what is beyond is read again.
constexpr size_t kKeptValidationBytes = 64U << 20;
// Rows asked of the database at a time: a tile that stays in the cache through transform and split.
constexpr size_t kTileRows = 1024;
// A database that restarts, drops a connection or is full is asked again, after 0.1 s, 0.2 s ...
constexpr auto kFirstReadWait = std::chrono::milliseconds(100);
constexpr auto kLongestReadWait = std::chrono::milliseconds(800);
// A statement that waits for a lock is taken back after so long and asked again: nobody stands in
// the queue for longer than he lives.
constexpr std::chrono::seconds kReadLockWait{2};

}  // namespace

ShardLoader::ShardLoader(catalog::DataSource& source, const catalog::DatasetSpec& spec,
                         const models::FeatureTransform& transform, const SplitRule& split,
                         const Options& options)
    : source_(source),
      spec_(spec),
      transform_(transform),
      split_(split),
      places_(PlacesOf(spec)),
      options_(options) {}

ShardLoader::~ShardLoader() = default;

Result<std::unique_ptr<ShardLoader>> ShardLoader::Make(catalog::DataSource& source,
                                                       const catalog::DatasetSpec& spec,
                                                       const models::FeatureTransform& transform,
                                                       const SplitRule& split,
                                                       const Options& options) {
  std::unique_ptr<ShardLoader> loader(new ShardLoader(source, spec, transform, split, options));
  RETURN_IF_ERROR(loader->FindColumns());
  return loader;
}

Status ShardLoader::FindColumns() {
  Schema schema;
  for (const catalog::ColumnDescription& column : spec_.columns()) {
    schema.columns.push_back(
        {column.name(), static_cast<DataType>(column.type()), column.database_type()});
  }
  const auto find = [&](const std::string& name) -> Result<size_t> {
    const std::optional<size_t> index = schema.Find(name);
    if (index.has_value()) {
      return *index;
    }
    Status status = NotFound(fmt::format("no column '{}' in the rows to train on", name));
    const std::optional<std::string> nearest = NearestName(name, schema.Names());
    if (nearest.has_value()) {
      return std::move(status).Hint(fmt::format("did you mean '{}'?", *nearest));
    }
    return status;
  };
  for (const std::string& name : transform_.ColumnNames(true)) {
    ASSIGN_OR_RETURN(const size_t index, find(name));
    columns_.push_back(index);
  }
  if (options_.all_validation || split_.column().empty()) {
    return Status();
  }
  ASSIGN_OR_RETURN(const size_t index, find(split_.column()));
  const auto wanted = std::find(columns_.begin(), columns_.end(), index);
  split_column_ = static_cast<size_t>(wanted - columns_.begin());
  if (wanted == columns_.end()) {
    columns_.push_back(index);
    split_column_is_extra_ = true;
  }
  return Status();
}

Status ShardLoader::Start(ShardId shard) {
  SLUICE_CHECK(!loading_, "one shard is loaded at a time");
  if (shard < ShardId::First() || shard >= ShardId(spec_.shards_size())) {
    return Internal(fmt::format("no shard {}: the dataset has {}", shard, spec_.shards_size()));
  }
  shard_ = shard;
  loading_ = true;
  found_.reset();
  const auto kept = kept_.find(shard);
  if (kept != kept_.end()) {
    found_ = kept->second;
    return Status();
  }
  rows_ = std::make_shared<ShardRows>();
  return Status();
}

Status ShardLoader::OpenStream() {
  stream_.reset();
  const ReadWatch::Read read(options_.watch);
  if (reader_ == nullptr) {
    ASSIGN_OR_RETURN(reader_, source_.OpenReader(spec_));
    reader_->WaitForLocks(kReadLockWait);
  }
  ASSIGN_OR_RETURN(stream_,
                   reader_->Read(spec_.shards(static_cast<int>(shard_.index())), columns_));
  return Status();
}

Result<bool> ShardLoader::Pump(size_t rows) {
  SLUICE_CHECK(loading_, "Start comes before Pump");
  Result<bool> complete = Read(rows);
  const Status status = complete.status();
  if (status.code() == Code::kUnavailable || catalog::IsUnavailableForNow(status)) {
    return WaitOrGiveUp(status);
  }
  if (waiting() && options_.watch != nullptr) {
    options_.watch->WaitFor("");
  }
  waiting_since_.reset();
  return complete;
}

// Nobody's mistake: a restart, a lock, a server that is full.
Result<bool> ShardLoader::WaitOrGiveUp(const Status& why) {
  const TimePoint now = clock_.Now();
  if (!waiting()) {
    waiting_since_ = now;
    pause_ = kFirstReadWait;
  }
  if (stop_.stop_requested()) {
    return Cancelled("the training was stopped while its database was waited for");
  }
  const double waited = SecondsBetween(*waiting_since_, now);
  if (waited >= options_.patience_seconds) {
    waiting_since_.reset();
    return Status(why).Because(fmt::format("shard {} could not be read for {:.0f} seconds", shard_,
                                           options_.patience_seconds));
  }
  log::Warn("reading shard {} again: {}", shard_, why.message());
  if (options_.watch != nullptr) {
    const std::string& detail = why.diagnostics().front().detail;
    options_.watch->WaitFor(fmt::format("shard {} cannot be read yet: {}{}", shard_, why.message(),
                                        detail.empty() ? "" : "; " + detail));
  }
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongestReadWait);
  reader_.reset();
  rows_ = std::make_shared<ShardRows>();
  return false;
}

Status ShardLoader::NextTile() {
  const ReadWatch::Read read(options_.watch);
  return stream_->Next(kTileRows, &batch_);
}

Result<bool> ShardLoader::Read(size_t rows) {
  if (found_ != nullptr) {
    return true;
  }
  if (stream_ == nullptr) {
    RETURN_IF_ERROR(OpenStream());
  }
  for (size_t read = 0; read < rows;) {
    const Status status = NextTile();
    if (!status.ok()) {
      stream_.reset();
      return status;
    }
    if (batch_.rows == 0) {
      stream_.reset();
      found_ = rows_;
      Keep();
      return true;
    }
    read += batch_.rows;
    RETURN_IF_ERROR(Add(static_cast<size_t>(rows_->rows_read)));
    rows_->rows_read += static_cast<int64_t>(batch_.rows);
    rows_read_ += static_cast<int64_t>(batch_.rows);
  }
  return false;
}

Status ShardLoader::Add(size_t first_row) {
  train_rows_.clear();
  validation_rows_.clear();
  const bool splits = split_.splits() && !options_.all_validation;
  if (splits) {
    const RowBatch::Column* column =
        split_column_.has_value() ? &batch_.columns[*split_column_] : nullptr;
    const int64_t first = places_[shard_.index()] + static_cast<int64_t>(first_row);
    for (size_t row = 0; row < batch_.rows; ++row) {
      const bool validation = split_.IsValidation(first + static_cast<int64_t>(row), column, row);
      (validation ? validation_rows_ : train_rows_).push_back(static_cast<uint32_t>(row));
    }
  }
  if (split_column_is_extra_) {
    RowBatch::Column extra = std::move(batch_.columns.back());
    batch_.columns.pop_back();
    const Status status = transform_.Apply(batch_, true, &tile_);
    batch_.columns.push_back(std::move(extra));
    RETURN_IF_ERROR(status);
  } else {
    RETURN_IF_ERROR(transform_.Apply(batch_, true, &tile_));
  }
  if (options_.all_validation) {
    rows_->validation.Append(tile_);
  } else if (validation_rows_.empty()) {
    rows_->train.Append(tile_);
  } else {
    if (!train_rows_.empty()) {
      GatherRows(tile_, train_rows_, &part_);
      rows_->train.Append(part_);
    }
    GatherRows(tile_, validation_rows_, &part_);
    rows_->validation.Append(part_);
  }
  return Status();
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
  const size_t validation_bytes = rows_->validation.Bytes();
  if (rows_->validation.rows == 0 || kept_validation_.contains(shard_) ||
      kept_validation_bytes_ + validation_bytes >
          std::min<size_t>(kKeptValidationBytes, static_cast<size_t>(options_.most_kept))) {
    return;
  }
  auto validation = std::make_shared<ShardRows>();
  validation->validation = rows_->validation;
  validation->checksum = rows_->checksum;
  kept_validation_bytes_ += validation_bytes;
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
  stream_.reset();
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
  return ReadWhole(shard);
}

Result<uint64_t> ShardLoader::Checksum(ShardId shard) {
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
