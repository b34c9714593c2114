#include <endian.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_wire_internal.h"

namespace sluice::catalog {
namespace {

Status BadCell(const ColumnInfo& column, int64_t row_number) {
  return Internal(fmt::format("column '{}' ({}): the cell of row {} is not in the format asked for",
                              column.name, column.database_type, row_number));
}

// A text needs no conversion.
CellFormat ShownFormat(DataType type) {
  return type == DataType::kText ? CellFormat::kText : CellFormat::kShown;
}

void ResetBatch(const Schema& schema, size_t decoded, size_t capacity, RowBatch* batch) {
  batch->Reset(schema, capacity);
  for (size_t i = decoded; i < batch->columns.size(); ++i) {
    PrepareShown(capacity, &batch->columns[i]);
  }
}

// Reads the answers to one Parse/Bind/Execute/Sync from the socket of an idle libpq connection.
class WireRowStream final : public RowStream {
 public:
  WireRowStream(PostgresConnection& connection, std::string_view sql, Schema schema, size_t decoded)
      : connection_(connection),
        sql_(sql),
        schema_(std::move(schema)),
        decoded_(decoded),
        reader_(PQsocket(connection.handle())) {
    for (size_t i = 0; i < schema_.columns.size(); ++i) {
      formats_.push_back(i < decoded_ ? StreamFormat(schema_.columns[i])
                                      : ShownFormat(schema_.columns[i].type));
    }
    if (connection_.stop().stop_possible()) {
      reader_.OnWait([this] {
        if (connection_.stop().stop_requested()) {
          CancelOnce();
        }
      });
    }
  }

  Status Start(const std::vector<std::vector<std::string>>& runs) {
    return SendAll(PQsocket(connection_.handle()), QueryMessages(sql_, formats_, runs));
  }

  ~WireRowStream() override {
    if (at_end_) {
      return;
    }
    // The rest is not needed, but libpq may be used again only after ReadyForQuery.
    CancelOnce();
    WireReader::Message message;
    while (!at_end_) {
      reader_.Forget();
      const Status read = reader_.Read(&message);
      if (!read.ok()) {
        log::Debug("abandoned stream error=\"{}\"", read.message());
        return;
      }
      at_end_ = message.type == 'Z';
    }
    connection_.FailedOnWire();
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    ResetBatch(schema_, decoded_, max_rows, batch);
    if (!at_end_) {
      RETURN_IF_ERROR(connection_.CheckStop());
    }
    reader_.Forget();
    const char* base = reader_.base();
    WireReader::Message message;
    size_t bytes = 0;
    while (!at_end_ && batch->rows < max_rows && bytes < kBatchBytes) {
      Status read = reader_.Read(&message);
      if (!read.ok()) {
        at_end_ = true;  // nothing more can come
        return read;
      }
      if (reader_.base() != base) {
        MoveTexts(base, reader_.base(), batch);
        base = reader_.base();
      }
      if (message.type == 'D') [[likely]] {
        RETURN_IF_ERROR(Decode(message, batch));
        bytes += message.size;
      } else if (message.type == 'Z') {
        at_end_ = true;
      } else if (message.type == 'E') {
        error_ = ErrorFromWire(message, sql_);
        if (error_.sqlstate() == "57014" && !connection_.CheckStop().ok()) {
          error_ = connection_.CheckStop();
        }
        connection_.FailedOnWire();
      } else if (message.type == 'N') {
        connection_.OnNotice(NoticeFromWire(message));
      }
      // Other messages (ParseComplete, BindComplete, CommandComplete, settings) need no answer.
    }
    return error_;
  }
  double waited_seconds() const override { return reader_.waited_seconds(); }

 private:
  void CancelOnce() {
    if (!std::exchange(cancelled_, true)) {
      connection_.Cancel();
    }
  }

  Status Decode(const WireReader::Message& message, RowBatch* batch) {
    const size_t row = batch->rows;
    char* at = message.body;
    const char* const end = message.body + message.size;
    uint16_t count = 0;
    if (message.size >= sizeof(count)) {
      std::memcpy(&count, at, sizeof(count));
      at += sizeof(count);
    }
    if (be16toh(count) != formats_.size()) [[unlikely]] {
      return Internal(
          fmt::format("PostgreSQL sent {} columns; expected {}", be16toh(count), formats_.size()));
    }
    for (size_t i = 0; i < formats_.size(); ++i) {
      uint32_t network = 0;
      if (end - at < static_cast<std::ptrdiff_t>(sizeof(network))) [[unlikely]] {
        return Internal("PostgreSQL sent a row that is cut off");
      }
      std::memcpy(&network, at, sizeof(network));
      at += sizeof(network);
      RowBatch::Column& column = batch->columns[i];
      const auto size = static_cast<int32_t>(be32toh(network));
      if (size < 0) {
        column.null[row] = 1;
        continue;
      }
      if (end - at < size) [[unlikely]] {
        return Internal("PostgreSQL sent a row that is cut off");
      }
      column.null[row] = 0;
      if (formats_[i] == CellFormat::kText) {
        column.texts[row] = std::string_view(at, static_cast<size_t>(size));
      } else if (!DecodeCell(formats_[i], at, static_cast<size_t>(size), row, &column))
          [[unlikely]] {
        return BadCell(schema_.columns[i], row_number_ + 1);
      }
      at += size;
    }
    ++batch->rows;
    ++row_number_;
    return OkStatus();
  }

  // The buffer grew in the middle of a batch: move the views with it.
  static void MoveTexts(const char* from, const char* to, RowBatch* batch) {
    for (RowBatch::Column& column : batch->columns) {
      if (column.texts.empty()) {
        continue;
      }
      for (size_t row = 0; row < batch->rows; ++row) {
        if (column.null[row] == 0 && column.texts[row].data() != nullptr) {
          std::string_view& text = column.texts[row];
          text = std::string_view(to + (text.data() - from), text.size());
        }
      }
    }
  }

  PostgresConnection& connection_;
  const std::string sql_;
  const Schema schema_;
  const size_t decoded_;
  std::vector<CellFormat> formats_;
  WireReader reader_;
  int64_t row_number_ = 0;
  Status error_;
  bool cancelled_ = false;
  bool at_end_ = false;
};

// libpq has one result format for all columns, so everything is text.
class LibpqRowStream final : public RowStream {
 public:
  LibpqRowStream(PostgresConnection& connection, std::string_view sql, Schema schema,
                 size_t decoded)
      : connection_(connection), sql_(sql), schema_(std::move(schema)), decoded_(decoded) {
    for (size_t i = 0; i < schema_.columns.size(); ++i) {
      const DataType type = schema_.columns[i].type;
      formats_.push_back(i < decoded_ ? TextFormat(type) : ShownFormat(type));
    }
  }

  Status Start() {
    PGconn* handle = connection_.handle();
    // The text of these depends on the session's settings.
    const auto end = schema_.columns.begin() +
                     static_cast<std::ptrdiff_t>(std::min(decoded_, schema_.columns.size()));
    if (std::any_of(schema_.columns.begin(), end, [](const ColumnInfo& column) {
          return column.type == DataType::kTimestamp || column.type == DataType::kBytes;
        })) {
      RETURN_IF_ERROR(connection_.Run("SET LOCAL DateStyle = ISO; SET LOCAL bytea_output = hex"));
    }
    if (PQsendQueryParams(handle, sql_.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) == 0 ||
        PQsetSingleRowMode(handle) == 0) {
      return connection_.ErrorOf(nullptr, sql_);
    }
    return OkStatus();
  }

  ~LibpqRowStream() override {
    if (!at_end_) {
      connection_.Cancel();
      connection_.Drain().ok();  // the cancellation itself is no error
    }
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    ResetBatch(schema_, decoded_, max_rows, batch);
    held_.clear();
    if (!at_end_) {
      RETURN_IF_ERROR(connection_.CheckStop());
    }
    size_t bytes = 0;
    while (!at_end_ && batch->rows < max_rows && bytes < kBatchBytes) {
      PostgresResult result = connection_.Await();
      if (result == nullptr) {
        at_end_ = true;
        break;
      }
      const ExecStatusType status = PQresultStatus(result.get());
      if (status == PGRES_SINGLE_TUPLE) {
        RETURN_IF_ERROR(Decode(result.get(), batch));
        bytes += PQresultMemorySize(result.get());
        held_.push_back(std::move(result));
      } else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        error_ = connection_.ErrorOf(result.get(), sql_);
      }
    }
    return error_;
  }

 private:
  Status Decode(const PGresult* result, RowBatch* batch) {
    const size_t row = batch->rows;
    for (size_t i = 0; i < schema_.columns.size(); ++i) {
      RowBatch::Column& column = batch->columns[i];
      const int field = static_cast<int>(i);
      column.null[row] = static_cast<uint8_t>(PQgetisnull(result, 0, field));
      if (column.null[row] == 0 &&
          !DecodeCell(formats_[i], PQgetvalue(result, 0, field),
                      static_cast<size_t>(PQgetlength(result, 0, field)), row, &column)) {
        return BadCell(schema_.columns[i], static_cast<int64_t>(row) + 1);
      }
    }
    ++batch->rows;
    return OkStatus();
  }

  PostgresConnection& connection_;
  const std::string sql_;
  const Schema schema_;
  const size_t decoded_;
  std::vector<CellFormat> formats_;
  std::vector<PostgresResult> held_;  // own the texts of the batch
  Status error_;
  bool at_end_ = false;
};

}  // namespace

Result<std::unique_ptr<RowStream>> OpenPostgresStream(PostgresConnection& connection,
                                                      std::string_view sql, Schema schema,
                                                      size_t decoded) {
  PGconn* handle = connection.handle();
  if (PQstatus(handle) != CONNECTION_OK) {
    return connection.ConnectionLost();
  }
  if (PQsslInUse(handle) != 0 || PQgssEncInUse(handle) != 0) {
    return OpenLibpqStream(connection, sql, std::move(schema), decoded);
  }
  return OpenPostgresRuns(connection, sql, {{}}, std::move(schema), decoded);
}

Result<std::unique_ptr<RowStream>> OpenPostgresRuns(
    PostgresConnection& connection, std::string_view sql,
    const std::vector<std::vector<std::string>>& runs, Schema schema, size_t decoded) {
  auto stream = std::make_unique<WireRowStream>(connection, sql, std::move(schema), decoded);
  RETURN_IF_ERROR(stream->Start(runs));
  return std::unique_ptr<RowStream>(std::move(stream));
}

Result<std::unique_ptr<RowStream>> OpenLibpqStream(PostgresConnection& connection,
                                                   std::string_view sql, Schema schema,
                                                   size_t decoded) {
  auto stream = std::make_unique<LibpqRowStream>(connection, sql, std::move(schema), decoded);
  RETURN_IF_ERROR(stream->Start());
  return std::unique_ptr<RowStream>(std::move(stream));
}

}  // namespace sluice::catalog
