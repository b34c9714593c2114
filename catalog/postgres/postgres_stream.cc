#include <endian.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
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

// One column of the statement, and the columns of the batch that take its cells.
struct Field {
  CellFormat format;
  size_t column;
  std::optional<size_t> twin = std::nullopt;  // a further one
  CellFormat twin_format = CellFormat::kText;
};

// `text`: the server sends every cell as text.
std::vector<Field> MakeFields(const StreamColumns& columns, bool text) {
  std::vector<Field> fields;
  for (size_t i = 0; i < columns.schema.columns.size(); ++i) {
    const ColumnInfo& column = columns.schema.columns[i];
    const bool shown = i >= columns.decoded;
    const size_t source = columns.sources.empty() ? i : columns.sources[i];
    if (source == fields.size()) {
      fields.push_back({shown  ? ShownFormat(column.type)
                        : text ? TextFormat(column.type)
                               : StreamFormat(column),
                        i});
      continue;
    }
    SLUICE_CHECK(source < fields.size() && shown && !fields[source].twin,
                 "a cell is decoded once and copied once");
    Field& field = fields[source];
    field.format = TextFormat(columns.schema.columns[field.column].type);
    field.twin = i;
    field.twin_format = ShownFormat(column.type);
  }
  return fields;
}

// Stores a cell that is not NULL in a batch's columns. False: not in the format asked for.
inline bool StoreCell(const Field& field, char* data, size_t size, size_t row, RowBatch* batch) {
  if (field.twin) {
    RowBatch::Column& twin = batch->columns[*field.twin];
    twin.null[row] = 0;
    if (field.twin_format == CellFormat::kText) {
      twin.texts[row] = std::string_view(data, size);
    } else {
      ShowCell(data, size, row, &twin);
    }
  }
  RowBatch::Column& column = batch->columns[field.column];
  column.null[row] = 0;
  if (field.format == CellFormat::kText) {
    column.texts[row] = std::string_view(data, size);
    return true;
  }
  return DecodeCell(field.format, data, size, row, &column);
}

inline void StoreNull(const Field& field, size_t row, RowBatch* batch) {
  batch->columns[field.column].null[row] = 1;
  if (field.twin) {
    batch->columns[*field.twin].null[row] = 1;
  }
}

// Reads the answers to one Parse/Bind/Execute/Sync from the socket of an idle libpq connection.
class WireRowStream final : public RowStream {
 public:
  WireRowStream(PostgresConnection& connection, std::string_view sql, StreamColumns columns)
      : connection_(connection),
        sql_(sql),
        columns_(std::move(columns)),
        fields_(MakeFields(columns_, false)),
        reader_(PQsocket(connection.handle())) {
    HearStop();
  }
  // The answers to what another process has sent.
  WireRowStream(PostgresConnection& connection, LocalSocket from, bool text, StreamColumns columns)
      : connection_(connection),
        columns_(std::move(columns)),
        fields_(MakeFields(columns_, text)),
        from_(std::move(from)),
        reader_(from_.descriptor()) {
    HearStop();
  }

  Status Start(const std::vector<std::vector<std::string>>& runs) {
    return SendAll(PQsocket(connection_.handle()), QueryMessages(sql_, FormatsOf(columns_), runs));
  }

  ~WireRowStream() override {
    if (at_end_ || from_.open()) {
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
    ResetBatch(columns_.schema, columns_.decoded, max_rows, batch);
    if (!at_end_) {
      RETURN_IF_ERROR(connection_.CheckStop());
    }
    reader_.Forget();
    uintptr_t base = AddressOf(reader_.base());
    WireReader::Message message;
    size_t bytes = 0;
    while (!at_end_ && batch->rows < max_rows && bytes < kBatchBytes) {
      Status read = reader_.Read(&message);
      if (!read.ok()) {
        at_end_ = true;  // nothing more can come
        RETURN_IF_ERROR(connection_.CheckStop());
        return read;
      }
      if (AddressOf(reader_.base()) != base) {
        MoveTexts(base, reader_.base(), batch);
        base = AddressOf(reader_.base());
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
        if (!from_.open()) {
          connection_.FailedOnWire();
        }
      } else if (message.type == 'N') {
        connection_.OnNotice(NoticeFromWire(message));
      }
      // Other messages (ParseComplete, BindComplete, CommandComplete, settings) need no answer.
    }
    return error_;
  }
  double waited_seconds() const override { return reader_.waited_seconds(); }

 private:
  void HearStop() {
    if (connection_.stop().stop_possible()) {
      reader_.OnWait([this] {
        if (connection_.stop().stop_requested()) {
          CancelOnce();
        }
      });
    }
  }
  void CancelOnce() {
    if (!std::exchange(cancelled_, true)) {
      from_.open() ? from_.HangUp() : connection_.Cancel(!connection_.stop().stop_requested());
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
    if (be16toh(count) != fields_.size()) [[unlikely]] {
      return Internal(
          fmt::format("PostgreSQL sent {} columns; expected {}", be16toh(count), fields_.size()));
    }
    for (const Field& field : fields_) {
      uint32_t network = 0;
      if (end - at < static_cast<std::ptrdiff_t>(sizeof(network))) [[unlikely]] {
        return Internal("PostgreSQL sent a row that is cut off");
      }
      std::memcpy(&network, at, sizeof(network));
      at += sizeof(network);
      const auto size = static_cast<int32_t>(be32toh(network));
      if (size < 0) {
        StoreNull(field, row, batch);
        continue;
      }
      if (end - at < size) [[unlikely]] {
        return Internal("PostgreSQL sent a row that is cut off");
      }
      if (!StoreCell(field, at, static_cast<size_t>(size), row, batch)) [[unlikely]] {
        return BadCell(columns_.schema.columns[field.column], row_number_ + 1);
      }
      at += size;
    }
    ++batch->rows;
    ++row_number_;
    return OkStatus();
  }

  static uintptr_t AddressOf(const char* byte) { return reinterpret_cast<uintptr_t>(byte); }

  // The buffer grew in the middle of a batch: move the views with it. `from`: where it was, and is
  // no memory any more.
  static void MoveTexts(uintptr_t from, const char* to, RowBatch* batch) {
    for (RowBatch::Column& column : batch->columns) {
      if (column.texts.empty()) {
        continue;
      }
      for (size_t row = 0; row < batch->rows; ++row) {
        if (column.null[row] == 0 && column.texts[row].data() != nullptr) {
          std::string_view& text = column.texts[row];
          text = std::string_view(to + (AddressOf(text.data()) - from), text.size());
        }
      }
    }
  }

  PostgresConnection& connection_;
  const std::string sql_;
  const StreamColumns columns_;
  const std::vector<Field> fields_;
  const LocalSocket from_;  // not open: the connection's own socket is read
  WireReader reader_;
  int64_t row_number_ = 0;
  Status error_;
  bool cancelled_ = false;
  bool at_end_ = false;
};

// libpq has one result format for all columns, so everything is text.
class LibpqRowStream final : public RowStream {
 public:
  LibpqRowStream(PostgresConnection& connection, std::string_view sql, StreamColumns columns)
      : connection_(connection),
        sql_(sql),
        columns_(std::move(columns)),
        fields_(MakeFields(columns_, true)) {}

  Status Start() {
    PGconn* handle = connection_.handle();
    RETURN_IF_ERROR(MakeDecodable(connection_, columns_));
    if (PQsendQueryParams(handle, sql_.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0) == 0 ||
        PQsetSingleRowMode(handle) == 0) {
      return connection_.ErrorOf(nullptr, sql_);
    }
    return OkStatus();
  }

  ~LibpqRowStream() override {
    if (!at_end_) {
      connection_.Cancel(!connection_.stop().stop_requested());
      connection_.Drain().ok();  // the cancellation itself is no error
    }
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    ResetBatch(columns_.schema, columns_.decoded, max_rows, batch);
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
    for (size_t i = 0; i < fields_.size(); ++i) {
      const Field& field = fields_[i];
      const int number = static_cast<int>(i);
      if (PQgetisnull(result, 0, number) != 0) {
        StoreNull(field, row, batch);
      } else if (!StoreCell(field, PQgetvalue(result, 0, number),
                            static_cast<size_t>(PQgetlength(result, 0, number)), row, batch)) {
        return BadCell(columns_.schema.columns[field.column], static_cast<int64_t>(row) + 1);
      }
    }
    ++batch->rows;
    return OkStatus();
  }

  PostgresConnection& connection_;
  const std::string sql_;
  const StreamColumns columns_;
  const std::vector<Field> fields_;
  std::vector<PostgresResult> held_;  // own the texts of the batch
  Status error_;
  bool at_end_ = false;
};

}  // namespace

std::vector<CellFormat> FormatsOf(const StreamColumns& columns) {
  std::vector<CellFormat> formats;
  for (const Field& field : MakeFields(columns, false)) {
    formats.push_back(field.format);
  }
  return formats;
}

// The text of these depends on the session's settings.
Status MakeDecodable(PostgresConnection& connection, const StreamColumns& columns) {
  const std::vector<ColumnInfo>& all = columns.schema.columns;
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(columns.decoded, all.size()));
  return std::any_of(all.begin(), end,
                     [](const ColumnInfo& column) {
                       return column.type == DataType::kTimestamp ||
                              column.type == DataType::kBytes;
                     })
             ? connection.Run("SET LOCAL DateStyle = ISO; SET LOCAL bytea_output = hex")
             : OkStatus();
}

Result<std::unique_ptr<RowStream>> OpenForwardedStream(PostgresConnection& connection,
                                                       LocalSocket from, bool text,
                                                       StreamColumns columns) {
  return std::unique_ptr<RowStream>(
      std::make_unique<WireRowStream>(connection, std::move(from), text, std::move(columns)));
}

Result<std::unique_ptr<RowStream>> OpenPostgresStream(PostgresConnection& connection,
                                                      std::string_view sql, StreamColumns columns) {
  PGconn* handle = connection.handle();
  if (PQstatus(handle) != CONNECTION_OK) {
    return connection.ConnectionLost();
  }
  if (PQsslInUse(handle) != 0 || PQgssEncInUse(handle) != 0) {
    return OpenLibpqStream(connection, sql, std::move(columns));
  }
  return OpenPostgresRuns(connection, sql, {{}}, std::move(columns));
}

Result<std::unique_ptr<RowStream>> OpenPostgresRuns(
    PostgresConnection& connection, std::string_view sql,
    const std::vector<std::vector<std::string>>& runs, StreamColumns columns) {
  auto stream = std::make_unique<WireRowStream>(connection, sql, std::move(columns));
  RETURN_IF_ERROR(stream->Start(runs));
  return std::unique_ptr<RowStream>(std::move(stream));
}

Result<std::unique_ptr<RowStream>> OpenLibpqStream(PostgresConnection& connection,
                                                   std::string_view sql, StreamColumns columns) {
  auto stream = std::make_unique<LibpqRowStream>(connection, sql, std::move(columns));
  RETURN_IF_ERROR(stream->Start());
  return std::unique_ptr<RowStream>(std::move(stream));
}

}  // namespace sluice::catalog
