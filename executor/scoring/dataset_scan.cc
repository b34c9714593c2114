#include "executor/scoring/dataset_scan.h"

#include "catalog/column_description.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"

namespace sluice::executor {

Result<std::unique_ptr<DatasetScan>> DatasetScan::Open(
    catalog::DataSource& source, std::string_view select, int64_t rows_per_shard,
    std::optional<catalog::CopiedColumns::Purpose> copies) {
  catalog::DatasetOptions options;
  options.copies = copies;
  if (rows_per_shard > 0) {
    options.rows_per_shard = rows_per_shard;
  }
  ASSIGN_OR_RETURN(auto dataset, source.OpenDataset(select, options));
  return std::unique_ptr<DatasetScan>(new DatasetScan(source, std::move(dataset)));
}

DatasetScan::DatasetScan(catalog::DataSource& source, std::unique_ptr<catalog::Dataset> dataset)
    : source_(source), dataset_(std::move(dataset)), schema_(catalog::SchemaOf(dataset_->spec())) {}

DatasetScan::~DatasetScan() = default;

Status DatasetScan::ForEach(const models::FeatureTransform& transform,
                            const elastic::FeatureReader::Options& options, const Visitor& visit,
                            const std::stop_token& stop) {
  const catalog::DatasetSpec& spec = dataset_->spec();
  ASSIGN_OR_RETURN(const std::unique_ptr<elastic::FeatureReader> reader,
                   elastic::FeatureReader::Make(source_, spec, transform, options));
  for (int shard = 0; shard < spec.shards_size(); ++shard) {
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
