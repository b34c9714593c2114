#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"
#include "elastic/transport/status_codec_internal.h"
#include "server/config/terminal.h"
#include "server/gateway/gateway_wire_internal.h"

namespace sluice::server {
namespace {

// gRPC's default limit for a message is 4 MB, and a smaller one shows a client its first rows
// earlier.
constexpr size_t kMessageBytes = 1 << 20;
// Needed because rows without columns have no bytes.
constexpr size_t kMessageRows = 1 << 20;
// More than any database allows in a table or a query.
constexpr int kMaxColumns = 1 << 16;
// Limit for one script: a statement has only a few.
constexpr int kMaxDiagnostics = 1'000;

bool HoldsTexts(DataType type) {
  return type == DataType::kText || type == DataType::kBytes;
}

size_t RowBytes(const RowBatch& batch, size_t row) {
  constexpr size_t kNumberBytes = 8;
  size_t bytes = 0;
  for (const RowBatch::Column& column : batch.columns) {
    bytes += kNumberBytes;
    if (HoldsTexts(column.TypeAt(row)) && column.null[row] == 0) {
      bytes += column.texts[row].size();
    }
  }
  return bytes;
}

// The lists of a v1::Column that are needed for its cells.
struct Lists {
  bool integers = false;
  bool doubles = false;
  bool texts = false;

  void Need(DataType type) {
    doubles |= type == DataType::kDouble;
    texts |= HoldsTexts(type);
    integers |= type != DataType::kDouble && !HoldsTexts(type);
  }
};

void ColumnToWire(const RowBatch::Column& column, size_t begin, size_t end, v1::Column* wire) {
  Lists lists;
  lists.Need(column.type);
  bool nulls = false;
  bool mixed = false;
  for (size_t r = begin; r < end; ++r) {
    const bool null = column.null[r] != 0;
    nulls |= null;
    if (!null) {
      lists.Need(column.TypeAt(r));
      mixed |= column.TypeAt(r) != column.type;
      lists.texts |= column.TypeAt(r) == DataType::kDouble && column.HasShownText(r) &&
                     column.texts[r] != FormatDouble(column.doubles[r]);
    }
  }
  for (size_t r = begin; r < end; ++r) {
    // A NULL cell of a RowBatch holds stale data: send nothing of it.
    const bool null = column.null[r] != 0;
    const DataType type = null ? column.type : column.TypeAt(r);
    if (nulls) {
      wire->mutable_null()->push_back(null ? 1 : 0);
    }
    if (mixed) {
      wire->mutable_types()->push_back(static_cast<char>(type));
    }
    Lists own;
    own.Need(type);
    if (lists.integers) {
      wire->add_integers(null || !own.integers ? 0 : column.int64s[r]);
    }
    if (lists.doubles) {
      wire->add_doubles(null || !own.doubles ? 0 : column.doubles[r]);
    }
    if (lists.texts) {
      const bool has = !null && (own.texts || (own.doubles && column.HasShownText(r)));
      const std::string_view text = has ? column.texts[r] : std::string_view();
      wire->add_texts(text.data(), text.size());
    }
  }
}

Status Malformed(std::string_view what) {
  return Unavailable(fmt::format("the gateway sent {}", what));
}

// True when the message has every cell of the column.
bool Fits(const v1::Column& wire, DataType header, size_t count) {
  const auto fits = [count](size_t size) { return size == 0 || size == count; };
  Lists lists;
  lists.Need(header);
  for (const char type : wire.types()) {
    if (type < v1::BOOLEAN || type > v1::BYTES) {
      return false;
    }
    lists.Need(static_cast<DataType>(type));
  }
  const auto integers = static_cast<size_t>(wire.integers_size());
  const auto doubles = static_cast<size_t>(wire.doubles_size());
  const auto texts = static_cast<size_t>(wire.texts_size());
  return fits(wire.null().size()) && fits(wire.types().size()) && fits(integers) && fits(doubles) &&
         fits(texts) && (!lists.integers || integers == count) &&
         (!lists.doubles || doubles == count) && (!lists.texts || texts == count);
}

}  // namespace

v1::Header HeaderToWire(const Schema& schema) {
  v1::Header header;
  for (const ColumnInfo& column : schema.columns) {
    v1::ColumnDescription* wire = header.add_columns();
    wire->set_name(column.name);
    wire->set_type(static_cast<v1::ColumnType>(column.type));  // the numbers are equal
    wire->set_database_type(column.database_type);
  }
  return header;
}

Result<Schema> HeaderFromWire(const v1::Header& header) {
  if (header.columns_size() > kMaxColumns) {
    return Malformed("a header with too many columns");
  }
  Schema schema;
  for (const v1::ColumnDescription& column : header.columns()) {
    if (column.type() < v1::BOOLEAN || column.type() > v1::BYTES) {
      return Malformed("a column of an unknown type");
    }
    schema.columns.push_back(
        {column.name(), static_cast<DataType>(column.type()), column.database_type()});
  }
  return schema;
}

Status RowsToWire(const RowBatch& batch, const std::function<Status(v1::Rows&&)>& send) {
  for (size_t begin = 0; begin < batch.rows;) {
    size_t end = begin;
    for (size_t bytes = 0; end < batch.rows && bytes < kMessageBytes && end - begin < kMessageRows;
         ++end) {
      bytes += RowBytes(batch, end);
    }
    v1::Rows rows;
    rows.set_count(static_cast<int64_t>(end - begin));
    for (const RowBatch::Column& column : batch.columns) {
      ColumnToWire(column, begin, end, rows.add_columns());
    }
    RETURN_IF_ERROR(send(std::move(rows)));
    begin = end;
  }
  return OkStatus();
}

Status RowsFromWire(const v1::Rows& rows, const Schema& schema, RowBatch* batch) {
  if (rows.count() < 0 || rows.count() > static_cast<int64_t>(kMessageRows) ||
      static_cast<size_t>(rows.columns_size()) != schema.columns.size()) {
    return Malformed("rows that do not fit their header");
  }
  const auto count = static_cast<size_t>(rows.count());
  for (int c = 0; c < rows.columns_size(); ++c) {
    if (!Fits(rows.columns(c), schema.columns[static_cast<size_t>(c)].type, count)) {
      return Malformed("rows that do not fit their header");
    }
  }
  batch->Reset(schema, count);
  batch->rows = count;
  for (size_t c = 0; c < batch->columns.size(); ++c) {
    const v1::Column& wire = rows.columns(static_cast<int>(c));
    RowBatch::Column& column = batch->columns[c];
    std::fill(column.null.begin(), column.null.end(), uint8_t{0});
    std::copy(wire.null().begin(), wire.null().end(), column.null.begin());
    column.int64s.assign(wire.integers().begin(), wire.integers().end());
    column.doubles.assign(wire.doubles().begin(), wire.doubles().end());
    column.texts.assign(wire.texts().begin(), wire.texts().end());
    for (const char type : wire.types()) {
      column.types.push_back(static_cast<DataType>(type));
    }
  }
  return OkStatus();
}

v1::Progress ProgressToWire(const elastic::Progress& progress) {
  v1::Progress wire;
  wire.set_rows_done(progress.rows_done);
  wire.set_rows_total(progress.rows_total);
  wire.set_rows_per_second(progress.rows_per_second);
  wire.set_epoch(progress.epoch.value());
  wire.set_epochs(progress.epochs);
  wire.set_loss(progress.loss);
  for (const auto& [name, value] : progress.metrics) {
    v1::Metric* metric = wire.add_metrics();
    metric->set_name(name);
    metric->set_value(value);
  }
  wire.set_workers(progress.workers);
  wire.set_seconds_left(progress.seconds_left);
  return wire;
}

elastic::Progress ProgressFromWire(const v1::Progress& wire) {
  elastic::Progress progress;
  progress.rows_done = wire.rows_done();
  progress.rows_total = wire.rows_total();
  progress.rows_per_second = wire.rows_per_second();
  progress.epoch = elastic::Epoch(wire.epoch());
  progress.epochs = wire.epochs();
  progress.loss = wire.loss();
  for (const v1::Metric& metric : wire.metrics()) {
    progress.metrics.emplace_back(metric.name(), metric.value());
  }
  progress.workers = wire.workers();
  progress.seconds_left = wire.seconds_left();
  return progress;
}

v1::Error ErrorToWire(const Status& status, std::string_view script) {
  v1::Error error;
  for (Diagnostic diagnostic : status.diagnostics()) {
    diagnostic.message = ValidUtf8(diagnostic.message);
    diagnostic.detail = ValidUtf8(diagnostic.detail);
    diagnostic.hint = ValidUtf8(diagnostic.hint);
    v1::Diagnostic* wire = error.add_diagnostics();
    elastic::WriteDiagnostic(diagnostic, wire);
    if (diagnostic.span.valid()) {
      const LineColumn place = FindLineColumn(script, diagnostic.span.begin);
      wire->set_line(place.line);
      wire->set_column(place.column);
    }
  }
  return error;
}

Status ErrorFromWire(const v1::Error& error) {
  Status status;
  if (error.diagnostics_size() > kMaxDiagnostics) {
    return Malformed("too many errors");
  }
  for (const v1::Diagnostic& wire : error.diagnostics()) {
    status.Add(elastic::ReadDiagnostic(wire));
  }
  return status.ok() ? Malformed("an error without a text") : status;
}

void JobToWire(const catalog::Job& job, v1::Job* wire) {
  wire->set_id(job.id);
  wire->set_state(std::string(catalog::JobStateName(job.state)));
  wire->set_kind(job.kind);
  wire->set_statement(job.statement);
  wire->set_model(job.model);
  wire->set_user(ValidUtf8(job.user));  // of shared catalogs, which have no encoding
  wire->set_started_micros(job.started_micros);
  wire->set_finished_micros(job.finished_micros);
  wire->set_rows_read(job.rows_read);
  wire->set_rows_trained(job.rows_trained);
  wire->set_rows_retried(job.rows_retried);
  wire->set_rows_skipped(job.rows_skipped);
  wire->set_error(ValidUtf8(job.error));
}

}  // namespace sluice::server
