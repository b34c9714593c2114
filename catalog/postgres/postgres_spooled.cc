#include "catalog/postgres/postgres_spooled_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "catalog/column_description.h"
#include "catalog/dataset.pb.h"
#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_cut_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/statistics_builder.h"

namespace sluice::catalog {
namespace {

// Rows of a block; a shard has several blocks.
constexpr size_t kBlockRows = 1'000;

// The columns of the file: those of the select, decoded, and then, if they will be copied, all of
// them as text, or in binary form, which the file need not know.
Schema FileSchema(const Schema& schema, bool copies, const std::vector<std::string>& binary = {}) {
  Schema file = schema;
  for (size_t i = 0; copies && i < schema.columns.size(); ++i) {
    ColumnInfo column = schema.columns[i];
    column.type = IsIn(binary, column) ? DataType::kBytes : DataType::kText;
    file.columns.push_back(std::move(column));
  }
  return file;
}

// Decodes from the database's text; a number keeps its text, too.
void Decode(DataType type, size_t rows, RowBatch::Column* column) {
  column->type = type;
  if (type == DataType::kText || type == DataType::kBytes) {
    return;
  }
  column->int64s.resize(rows);
  column->doubles.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    if (column->null[row] != 0) {
      continue;
    }
    std::string text(column->texts[row]);
    DecodeCell(TextFormat(type), text.data(), text.size(), row, column);
  }
  if (type != DataType::kDouble) {
    column->texts.clear();
  }
}

// Gives the copied columns of a spool the types in which they are shown.
class ShownStream final : public RowStream {
 public:
  ShownStream(std::unique_ptr<RowStream> rows, size_t decoded, std::vector<DataType> shown)
      : rows_(std::move(rows)), decoded_(decoded), shown_(std::move(shown)) {}
  Status Next(size_t max_rows, RowBatch* batch) override {
    RETURN_IF_ERROR(rows_->Next(max_rows, batch));
    for (size_t i = 0; i < shown_.size() && batch->rows > 0; ++i) {
      Decode(shown_[i], batch->rows, &batch->columns[decoded_ + i]);
    }
    return OkStatus();
  }
  double waited_seconds() const override { return rows_->waited_seconds(); }

 private:
  const std::unique_ptr<RowStream> rows_;
  const size_t decoded_;
  const std::vector<DataType> shown_;
};

class SpooledReader final : public ShardReader {
 public:
  SpooledReader(Schema schema, std::unique_ptr<SpoolFile> file)
      : schema_(std::move(schema)), file_(std::move(file)) {}

  Result<std::unique_ptr<RowStream>> Read(const ShardRange& shard,
                                          const std::vector<size_t>& columns,
                                          const CopiedColumns& copied) override {
    std::vector<size_t> all = columns;
    std::vector<DataType> shown;
    for (const size_t column : copied.columns) {
      all.push_back(schema_.columns.size() + column);
      const DataType type = ShownType(schema_.columns[column]);
      const bool as_number =
          type == DataType::kBool || type == DataType::kInt64 || type == DataType::kDouble;
      shown.push_back(IsIn(copied.binary, schema_.columns[column]) ? DataType::kBytes
                      : copied.purpose == CopiedColumns::Purpose::kShow && as_number
                          ? type
                          : DataType::kText);
    }
    ASSIGN_OR_RETURN(auto rows, ReadRanges(RangesOf(shard), [this, all = std::move(all)](
                                                                int64_t begin, int64_t end) {
                       return Result<std::unique_ptr<RowStream>>(file_->Read(begin, end, all));
                     }));
    if (shown.empty()) {
      return rows;
    }
    return std::unique_ptr<RowStream>(
        std::make_unique<ShownStream>(std::move(rows), columns.size(), std::move(shown)));
  }

 private:
  const Schema schema_;
  const std::unique_ptr<SpoolFile> file_;
};

class SpooledDataset final : public Dataset {
 public:
  SpooledDataset(std::shared_ptr<const SpooledSelect> select, DatasetSpec spec)
      : select_(std::move(select)), spec_(std::move(spec)) {}
  const DatasetSpec& spec() const override { return spec_; }
  Result<int64_t> CountRows() override { return select_->spool->rows(); }

 private:
  const std::shared_ptr<const SpooledSelect> select_;  // keeps the file
  const DatasetSpec spec_;
};

Status ReadInto(PostgresConnection& session, std::string_view select, const SpooledSelect& spooled,
                Spool* spool) {
  RETURN_IF_ERROR(session.Begin(BeginReadingSession()));
  if (spooled.copies == CopiedColumns::Purpose::kWrite) {
    RETURN_IF_ERROR(CheckReadableAsText(session,
                                        "columns that are copied into a table cannot be "
                                        "read exactly"));
    RETURN_IF_ERROR(session.Run(std::string(kPinnedText)));
  }
  const size_t columns = spooled.schema.columns.size();
  std::vector<size_t> all(columns);
  std::iota(all.begin(), all.end(), 0);
  std::string list = ValuesOf(all, spooled.schema);
  for (size_t i = 0; spooled.copies.has_value() && i < columns; ++i) {
    const bool written = spooled.copies == CopiedColumns::Purpose::kWrite;
    const ColumnInfo& column = spooled.schema.columns[i];
    const std::string name = fmt::format("s.c{}", i);
    list +=
        fmt::format(", {}{}", IsIn(spooled.binary_copies, column) ? BinaryForm(name, column) : name,
                    written ? CastForCopy(column.database_type) : "");
  }
  ASSIGN_OR_RETURN(const auto rows,
                   OpenPostgresStream(session,
                                      fmt::format("SELECT {} FROM (\n{}\n) AS s({})", list, select,
                                                  NumberedColumns(columns)),
                                      {spool->schema(), columns}));
  RowBatch batch;
  do {
    RETURN_IF_ERROR(rows->Next(kBlockRows, &batch));
    RETURN_IF_ERROR(spool->Append(batch));
  } while (batch.rows > 0);
  return spool->Finish();
}

}  // namespace

Result<std::shared_ptr<const SpooledSelect>> SpoolPostgresSelect(PostgresConnection& session,
                                                                 std::string_view select,
                                                                 Schema schema,
                                                                 const DatasetOptions& options) {
  auto spooled = std::make_shared<SpooledSelect>();
  spooled->copies = options.copies;
  spooled->binary_copies = options.binary_copies;
  spooled->schema = std::move(schema);
  ASSIGN_OR_RETURN(spooled->spool,
                   Spool::Create(FileSchema(spooled->schema, options.copies.has_value(),
                                            options.binary_copies)));
  const Status read = ReadInto(session, select, *spooled, spooled->spool.get());
  session.Rollback();
  RETURN_IF_ERROR(read);
  return std::shared_ptr<const SpooledSelect>(std::move(spooled));
}

Result<SelectStatistics> SpooledStatistics(const SpooledSelect& select, const Schema& schema,
                                           const StatisticsOptions& options) {
  const Spool& spool = *select.spool;
  const bool exact = spool.rows() <= ExactRowLimit(schema, options);
  ASSIGN_OR_RETURN(const auto file, SpoolFile::Open(spool.path(), spool.schema()));
  std::vector<size_t> columns(schema.columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i] = i;
  }
  // Some of the blocks, evenly spread.
  const auto blocks = static_cast<int64_t>(spool.block_rows().size());
  const int64_t wanted = std::min(kStatisticsSampleRows, ExactRowLimit(schema, options));
  const int64_t taken =
      exact ? blocks
            : std::clamp<int64_t>(wanted / static_cast<int64_t>(kBlockRows), int64_t{1}, blocks);
  StatisticsBuilder builder(schema, options);
  for (int64_t i = 0; i < taken; ++i) {
    const int64_t block = i * blocks / taken;
    const auto rows = file->Read(block, block + 1, columns);
    RowBatch batch;
    do {
      RETURN_IF_ERROR(rows->Next(kStatisticsBatchRows, &batch));
      builder.Add(batch);
    } while (batch.rows > 0);
  }
  return builder.Finish(spool.rows(), exact);
}

std::unique_ptr<Dataset> MakeSpooledDataset(std::shared_ptr<const SpooledSelect> select,
                                            const std::string& url, const DatasetOptions& options) {
  DatasetSpec spec;
  spec.set_source_url(url);
  spec.set_spool(select->spool->path());
  spec.set_spool_copies(select->copies.has_value() ? 1 : 0);
  spec.set_cut(DatasetSpec::WHOLE);
  spec.set_fingerprint("the session's own rows");
  spec.set_counted_rows(select->spool->rows());
  PutSchema(select->schema, &spec);
  const std::vector<int64_t>& blocks = select->spool->block_rows();
  std::vector<ShardRange> ranges(1);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (ranges.back().estimated_rows() >= RowsPerRange(options)) {
      ranges.emplace_back().set_begin(static_cast<int64_t>(i));
    }
    ranges.back().set_end(static_cast<int64_t>(i + 1));
    ranges.back().set_estimated_rows(ranges.back().estimated_rows() + blocks[i]);
  }
  PutShards(std::move(ranges), options, &spec);
  return std::make_unique<SpooledDataset>(std::move(select), std::move(spec));
}

Result<std::unique_ptr<ShardReader>> OpenSpooledReader(const DatasetSpec& spec) {
  const Schema schema = SchemaOf(spec);
  ASSIGN_OR_RETURN(auto file,
                   SpoolFile::Open(spec.spool(), FileSchema(schema, spec.spool_copies() != 0)));
  return std::unique_ptr<ShardReader>(std::make_unique<SpooledReader>(schema, std::move(file)));
}

}  // namespace sluice::catalog
