#include "elastic/worker/feature_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "catalog/column_description.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/worker/read_watch.h"
#include "elastic/worker/row_selection.h"

namespace sluice::elastic {

FeatureReader::FeatureReader(catalog::DataSource& source, const catalog::DatasetSpec& spec,
                             const models::FeatureTransform& transform, Options options)
    : source_(source),
      spec_(spec),
      transform_(transform),
      options_(std::move(options)),
      clock_(options_.clock),
      places_(PlacesOf(spec)) {}

FeatureReader::~FeatureReader() = default;

Result<std::unique_ptr<FeatureReader>> FeatureReader::Make(
    catalog::DataSource& source, const catalog::DatasetSpec& spec,
    const models::FeatureTransform& transform, Options options) {
  std::unique_ptr<FeatureReader> reader(
      new FeatureReader(source, spec, transform, std::move(options)));
  RETURN_IF_ERROR(reader->FindColumns());
  return reader;
}

Status FeatureReader::FindColumns() {
  const Schema schema = catalog::SchemaOf(spec_);
  const std::vector<std::string>& names =
      options_.names.empty() ? transform_.ColumnNames(options_.with_label) : options_.names;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const size_t column, catalog::FindColumn(schema, name));
    read_.push_back(column);
  }
  wanted_ = read_.size();
  for (const std::string& name : options_.split.columns()) {
    ASSIGN_OR_RETURN(const size_t column, catalog::FindColumn(schema, name));
    const auto read = std::find(read_.begin(), read_.end(), column);
    split_columns_.push_back(static_cast<size_t>(read - read_.begin()));
    if (read == read_.end()) {
      read_.push_back(column);
    }
  }
  return Status();
}

Status FeatureReader::Connect() {
  if (reader_ == nullptr) {
    ASSIGN_OR_RETURN(reader_, source_.OpenReader(spec_));
    if (options_.lock_wait.count() > 0) {
      reader_->WaitForLocks(options_.lock_wait);
    }
  }
  return OkStatus();
}

Status FeatureReader::Prepare() {
  RETURN_IF_ERROR(Connect());
  return reader_->Prepare();
}

Status FeatureReader::Open(ShardId shard) {
  if (shard < ShardId::First() || shard >= ShardId(spec_.shards_size())) {
    return Internal(fmt::format("no shard {}: the dataset has {}", shard, spec_.shards_size()));
  }
  stream_.reset();
  const ReadWatch::Read read(options_.watch);
  const PhaseScope waiting(clock_, Phase::kDatabase);
  RETURN_IF_ERROR(Connect());
  const catalog::CopiedColumns none;
  ASSIGN_OR_RETURN(stream_, reader_->Read(spec_.shards(static_cast<int>(shard.index())), read_,
                                          options_.copied == nullptr ? none : *options_.copied));
  at_ = RowPlaces(spec_.shards(static_cast<int>(shard.index())), places_[shard.index()]);
  return Status();
}

Result<bool> FeatureReader::Next(size_t rows) {
  SLUICE_CHECK(open(), "Open comes before Next");
  Status status = ReadBatch(rows);
  if (status.ok() && batch_.rows > 0) {
    rows_read_ += static_cast<int64_t>(batch_.rows);
    const PhaseScope transforming(clock_, Phase::kTransforming);
    Split();
    status = Transform();
  }
  if (!status.ok() || batch_.rows == 0) {
    Close();
  }
  RETURN_IF_ERROR(status);
  return batch_.rows > 0;
}

Status FeatureReader::ReadBatch(size_t rows) {
  const ReadWatch::Read read(options_.watch);
  if (clock_ == nullptr) {
    return stream_->Next(rows, &batch_);
  }
  const PhaseScope decoding(clock_, Phase::kDecoding);
  const double before = stream_->waited_seconds();
  Status status = stream_->Next(rows, &batch_);
  clock_->Move(Phase::kDecoding, Phase::kDatabase, stream_->waited_seconds() - before);
  return status;
}

void FeatureReader::Close() {
  stream_.reset();
}

void FeatureReader::Disconnect() {
  stream_.reset();
  reader_.reset();
}

void FeatureReader::Split() {
  training_.clear();
  validation_.clear();
  if (!options_.split.splits()) {
    return;
  }
  std::vector<const RowBatch::Column*> columns;
  for (const size_t column : split_columns_) {
    columns.push_back(&batch_.columns[column]);
  }
  for (size_t row = 0; row < batch_.rows; ++row) {
    const int64_t place = at_.Next();
    (options_.split.IsValidation(place, columns, row) ? validation_ : training_)
        .push_back(static_cast<uint32_t>(row));
  }
}

// The transform expects exactly its own columns.
Status FeatureReader::Transform() {
  std::vector<RowBatch::Column>& columns = batch_.columns;
  const auto others = columns.begin() + static_cast<std::ptrdiff_t>(wanted_);
  others_.assign(std::make_move_iterator(others), std::make_move_iterator(columns.end()));
  columns.resize(wanted_);
  Status status = transform_.Apply(batch_, options_.with_label, &features_);
  columns.insert(columns.end(), std::make_move_iterator(others_.begin()),
                 std::make_move_iterator(others_.end()));
  return status;
}

void FeatureReader::AppendTraining(models::FeatureBatch* to) {
  if (validation_.empty()) {
    to->Append(features_);
  } else if (!training_.empty()) {
    GatherRows(features_, training_, &part_);
    to->Append(part_);
  }
}

void FeatureReader::AppendValidation(models::FeatureBatch* to) {
  if (!validation_.empty()) {
    GatherRows(features_, validation_, &part_);
    to->Append(part_);
  }
}

}  // namespace sluice::elastic
