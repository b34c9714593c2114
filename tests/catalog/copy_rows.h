#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {

// Rows as shown to clients, and rows copied from a SELECT into a table as by PREDICT.
class CopyTest : public BothDatabases {
 protected:
  bool WritesResults() const override { return true; }
  struct Shown {
    Schema schema;
    Texts cells;
    size_t batches = 0;
    size_t most_bytes = 0;  // of the texts of one batch
  };

  static std::string CellText(const RowBatch::Column& column, size_t row) {
    if (column.null[row] != 0) {
      return "NULL";
    }
    const DataType type = column.TypeAt(row);
    if (type == DataType::kDouble && column.HasShownText(row)) {
      return std::string(column.texts[row]);
    }
    if (type == DataType::kBytes) {
      std::string text = "\\x";
      for (const char c : column.texts[row]) {
        text += fmt::format("{:02x}", static_cast<unsigned char>(c));
      }
      return text;
    }
    return FormatValue(column.ValueAt(row), type);
  }

  static void Add(const RowBatch& batch, Shown* shown) {
    ++shown->batches;
    size_t bytes = 0;
    for (size_t row = 0; row < batch.rows; ++row) {
      std::vector<std::string>& cells = shown->cells.emplace_back();
      for (const RowBatch::Column& column : batch.columns) {
        cells.push_back(CellText(column, row));
        bytes += cells.back().size();
      }
    }
    shown->most_bytes = std::max(shown->most_bytes, bytes);
  }

  // A plain statement.
  Shown Show(std::string_view sql) {
    class Receiver final : public RowReceiver {
     public:
      Status Header(const Schema& schema) override {
        shown.schema = schema;
        return OkStatus();
      }
      Status Rows(const RowBatch& batch) override {
        Add(batch, &shown);
        return OkStatus();
      }
      Shown shown;
    };
    Receiver receiver;
    const auto done = source().Execute(sql, &receiver, {});
    EXPECT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
    return receiver.shown;
  }

  // Reads all rows of a SELECT: the columns `decoded`, then the columns `copied`.
  Shown ReadColumns(std::string_view select, const std::vector<size_t>& decoded,
                    const std::vector<size_t>& copied, CopiedColumns::Purpose purpose) {
    Shown shown;
    const auto read = [&]() -> Status {
      DatasetOptions options;
      options.copies = purpose;
      ASSIGN_OR_RETURN(const auto dataset, source().OpenDataset(select, options));
      const DatasetSpec& spec = dataset->spec();
      ASSIGN_OR_RETURN(const auto reader, source().OpenReader(spec));
      for (int shard = 0; shard < spec.shards_size(); ++shard) {
        ASSIGN_OR_RETURN(const auto stream,
                         reader->Read(spec.shards(shard), decoded, {copied, purpose}));
        RowBatch batch;
        do {
          RETURN_IF_ERROR(stream->Next(1'000, &batch));
          Add(batch, &shown);
        } while (batch.rows > 0);
      }
      return OkStatus();
    };
    const Status status = read();
    EXPECT_TRUE(status.ok()) << status.ToString();
    return shown;
  }

  // All columns of a SELECT, passed through; calls `take` with every batch.
  static Status ReadCopies(DataSource& source, std::string_view select,
                           CopiedColumns::Purpose purpose,
                           const std::function<Status(const Schema&)>& begin,
                           const std::function<Status(const RowBatch&)>& take) {
    DatasetOptions options;
    options.rows_per_shard = 2;
    ASSIGN_OR_RETURN(const auto dataset, source.OpenDataset(select, options));
    const DatasetSpec& spec = dataset->spec();
    ASSIGN_OR_RETURN(Schema schema, source.Describe(select));
    RETURN_IF_ERROR(source.DescribeCopies(select, &schema));
    CopiedColumns copied;
    copied.purpose = purpose;
    for (size_t i = 0; i < schema.columns.size(); ++i) {
      copied.columns.push_back(i);
    }
    RETURN_IF_ERROR(begin(schema));
    ASSIGN_OR_RETURN(const auto reader, source.OpenReader(spec));
    for (int shard = 0; shard < spec.shards_size(); ++shard) {
      ASSIGN_OR_RETURN(const auto stream, reader->Read(spec.shards(shard), {}, copied));
      RowBatch batch;
      do {
        RETURN_IF_ERROR(stream->Next(1'000, &batch));
        RETURN_IF_ERROR(take(batch));
      } while (batch.rows > 0);
    }
    return OkStatus();
  }

  Shown ReadCopied(std::string_view select, CopiedColumns::Purpose purpose) {
    Shown shown;
    const Status status = ReadCopies(
        source(), select, purpose,
        [&](const Schema& schema) {
          shown.schema = schema;
          return OkStatus();
        },
        [&](const RowBatch& batch) {
          Add(batch, &shown);
          return OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return shown;
  }

  Status TryCopy(std::string_view select, const std::string& table, DataSource* from = nullptr) {
    DataSource& source = from == nullptr ? this->source() : *from;
    std::unique_ptr<TableWriter> writer;
    RETURN_IF_ERROR(ReadCopies(
        source, select, CopiedColumns::Purpose::kWrite,
        [&](const Schema& schema) -> Status {
          ResultTable wanted;
          wanted.name.name = table;
          ASSIGN_OR_RETURN(writer, source.OpenWriter(wanted, schema));
          return OkStatus();
        },
        [&](const RowBatch& batch) { return writer->Write(batch); }));
    return writer->Commit({});
  }

  void CopyInto(std::string_view select, const std::string& table, DataSource* from = nullptr) {
    const Status copied = TryCopy(select, table, from);
    ASSERT_TRUE(copied.ok()) << copied.ToString();
  }
};

}  // namespace sluice::catalog
