#include "executor/dataset_scan.h"

#include <fmt/core.h>

#include "catalog/column_description.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"

namespace sluice::executor {

Result<std::unique_ptr<DatasetScan>> DatasetScan::Open(catalog::DataSource& source,
                                                       std::string_view select,
                                                       int64_t rows_per_shard) {
  catalog::DatasetOptions options;
  if (rows_per_shard > 0) {
    options.rows_per_shard = rows_per_shard;
  }
  ASSIGN_OR_RETURN(auto dataset, source.OpenDataset(select, options));
  return std::unique_ptr<DatasetScan>(new DatasetScan(source, std::move(dataset)));
}

DatasetScan::DatasetScan(catalog::DataSource& source, std::unique_ptr<catalog::Dataset> dataset)
    : source_(source), dataset_(std::move(dataset)) {
  for (const catalog::ColumnDescription& column : dataset_->spec().columns()) {
    schema_.columns.push_back(catalog::ColumnOf(column));
  }
}

DatasetScan::~DatasetScan() = default;

Result<size_t> DatasetScan::Column(std::string_view name) const {
  if (const auto found = schema_.Find(name)) {
    return *found;
  }
  Status status = ColumnNotFound(fmt::format("the select has no column '{}'", name));
  if (const auto near = NearestName(name, schema_.Names())) {
    status = std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return status;
}

const std::string& DatasetScan::fingerprint() const {
  return dataset_->spec().fingerprint();
}

Status DatasetScan::ForEach(const std::vector<size_t>& columns,
                            const catalog::CopiedColumns& copied, const Visitor& visit,
                            std::stop_token stop) {
  const catalog::DatasetSpec& spec = dataset_->spec();
  ASSIGN_OR_RETURN(const auto reader, source_.OpenReader(spec));
  RowBatch batch;
  for (int shard = 0; shard < spec.shards_size(); ++shard) {
    ASSIGN_OR_RETURN(const auto stream, reader->Read(spec.shards(shard), columns, copied));
    int64_t row = 0;
    while (true) {
      if (stop.stop_requested()) {
        return Cancelled("the statement was cancelled");
      }
      RETURN_IF_ERROR(stream->Next(rows_per_batch_, &batch));
      if (batch.rows == 0) {
        break;
      }
      RETURN_IF_ERROR(visit(batch, shard, row));
      row += static_cast<int64_t>(batch.rows);
    }
  }
  return OkStatus();
}

}  // namespace sluice::executor
