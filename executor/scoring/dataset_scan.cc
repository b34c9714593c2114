#include "executor/scoring/dataset_scan.h"

#include <chrono>
#include <utility>

#include "catalog/column_description.h"
#include "catalog/dataset.pb.h"

namespace sluice::executor {
namespace {

// Another session that waits for an exclusive lock waits for the dataset, too: no reader that waits
// behind it would ever go on.
constexpr std::chrono::seconds kLockWait{2};

}  // namespace

Result<std::unique_ptr<DatasetScan>> DatasetScan::Open(catalog::DataSource& source,
                                                       std::string_view select,
                                                       catalog::DatasetOptions options) {
  if (options.rows_per_shard <= 0) {
    options.rows_per_shard = catalog::DatasetOptions().rows_per_shard;
  }
  ASSIGN_OR_RETURN(auto dataset, source.OpenDataset(select, options));
  return std::unique_ptr<DatasetScan>(new DatasetScan(source, std::move(dataset)));
}

DatasetScan::DatasetScan(catalog::DataSource& source, std::unique_ptr<catalog::Dataset> dataset)
    : source_(source), dataset_(std::move(dataset)), schema_(catalog::SchemaOf(dataset_->spec())) {
  auto not_ahead = std::make_unique<catalog::DatasetSpec>(dataset_->spec());
  not_ahead->set_read_ahead(false);
  not_ahead_ = std::move(not_ahead);
}

DatasetScan::~DatasetScan() = default;

const std::string& DatasetScan::snapshot() const {
  return dataset_->spec().fingerprint();
}

int DatasetScan::shards() const {
  return dataset_->spec().shards_size();
}

int64_t DatasetScan::estimated_rows() const {
  return dataset_->spec().estimated_rows();
}

Result<std::unique_ptr<elastic::FeatureReader>> DatasetScan::MakeReader(
    const models::FeatureTransform& transform, elastic::FeatureReader::Options options,
    bool ahead) const {
  options.lock_wait = kLockWait;
  return elastic::FeatureReader::Make(source_, ahead ? dataset_->spec() : *not_ahead_, transform,
                                      std::move(options));
}

Status DatasetScan::ForEach(const models::FeatureTransform& transform,
                            const elastic::FeatureReader::Options& options, const Visitor& visit,
                            const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const auto reader, MakeReader(transform, options, true));
  for (int shard = 0; shard < shards(); ++shard) {
    RETURN_IF_ERROR(reader->Open(elastic::ShardId(shard)));
    for (;;) {
      if (stop.stop_requested()) {
        return Cancelled("the statement was cancelled");
      }
      const Result<bool> more = reader->Next(rows_per_batch_);
      rows_read_ = reader->rows_read();
      RETURN_IF_ERROR(more.status());
      if (!*more) {
        break;
      }
      RETURN_IF_ERROR(visit(*reader));
    }
  }
  return OkStatus();
}

}  // namespace sluice::executor
