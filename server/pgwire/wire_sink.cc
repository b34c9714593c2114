#include "server/pgwire/wire_sink.h"

#include <algorithm>
#include <array>
#include <utility>

#include "server/pgwire/values.h"
#include "server/statements/progress_text.h"

namespace sluice::server::pgwire {
namespace {

// Rows are sent in chunks of this many bytes.
constexpr size_t kChunkBytes = size_t{64} << 10;

// Whether the column's binary form is made by the server, since it is not known here.
bool IsSentByServer(const ColumnInfo& column) {
  return column.wire.has_value() && !column.wire->send.empty() && !HasBinaryForm(column.wire->oid);
}

Status ClientGone() {
  return Cancelled("the client is gone");
}

}  // namespace

Result<std::vector<WireColumn>> WireColumns(const Schema& schema,
                                            const std::vector<uint16_t>& formats) {
  if (formats.size() > 1 && formats.size() != schema.columns.size()) {
    return InvalidArgument("bind message has " + std::to_string(formats.size()) +
                           " result formats but query has " +
                           std::to_string(schema.columns.size()) + " columns")
        .SqlState("08P01");
  }
  std::vector<WireColumn> columns;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    WireColumn column;
    column.name = schema.columns[i].name;
    column.type = ColumnTypeOf(schema.columns[i], catalog::Dialect::kPostgres);
    column.format = formats.empty() ? uint16_t{0} : formats[formats.size() == 1 ? 0 : i];
    if (column.format == 1 && !IsSentByServer(schema.columns[i])) {
      RETURN_IF_ERROR(CheckBinaryForm(column.type, schema.columns[i]));
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

WireSink::WireSink(std::shared_ptr<ClientLine> line, Options options)
    : line_(std::move(line)),
      options_(std::move(options)),
      rows_left_(options_.max_rows == 0 ? -1 : int64_t{options_.max_rows}) {}

Status WireSink::Send(std::string bytes) {
  return bytes.empty() || line_->Send(std::move(bytes)) ? OkStatus() : ClientGone();
}

std::vector<bool> WireSink::InBinary(const Schema& schema) {
  const Result<std::vector<WireColumn>> columns = WireColumns(schema, options_.result_formats);
  std::vector<bool> binary;
  for (size_t i = 0; columns.ok() && i < columns->size(); ++i) {
    binary.push_back((*columns)[i].format == 1 && IsSentByServer(schema.columns[i]));
  }
  return binary;
}

Status WireSink::Header(const Schema& schema) {
  ASSIGN_OR_RETURN(columns_, WireColumns(schema, options_.result_formats));
  for (size_t i = 0; options_.encoding.has_value() && i < columns_.size(); ++i) {
    if (columns_[i].format == 1) {  // the server's form is in UTF-8
      RETURN_IF_ERROR(CheckBinaryForm(columns_[i].type, schema.columns[i]));
    }
  }
  const auto same = [](const WireColumn& a, const WireColumn& b) {
    return a.name == b.name && a.type.oid == b.type.oid;
  };
  if (!options_.described.empty() &&
      !std::equal(columns_.begin(), columns_.end(), options_.described.begin(),
                  options_.described.end(), same)) {  // drivers know PostgreSQL's own words
    return Unimplemented("cached plan must not change result type");
  }
  rows_ = 0;
  std::string bytes;
  if (options_.describe_rows) {
    AppendRowDescription(bytes, columns_);
  }
  return Send(std::move(bytes));
}

Status WireSink::Rows(const RowBatch& batch) {
  std::string bytes;
  for (size_t row = 0; row < batch.rows; ++row) {
    if (rows_left_ == 0) {
      RETURN_IF_ERROR(Send(std::exchange(bytes, {})));
      const int64_t more = line_->Suspend();
      if (more < 0) {
        return ClientGone();
      }
      rows_left_ = more == 0 ? -1 : more;
    }
    RETURN_IF_ERROR(AppendDataRow(bytes, batch, row, columns_, options_.encoding));
    ++rows_;
    rows_left_ -= rows_left_ > 0 ? 1 : 0;
    if (bytes.size() >= kChunkBytes) {
      RETURN_IF_ERROR(Send(std::exchange(bytes, {})));
    }
  }
  return Send(std::move(bytes));
}

void WireSink::Notice(const std::string& message) {
  // The database's notices begin with their severity.
  constexpr std::array<std::string_view, 4> kSeverities = {"WARNING", "NOTICE", "INFO", "LOG"};
  std::string_view text = message;
  std::string_view severity = "NOTICE";
  for (const std::string_view said : kSeverities) {
    if (text.starts_with(said) && text.substr(said.size()).starts_with(": ")) {
      severity = said;
      text.remove_prefix(said.size() + 2);
    }
  }
  if (quiet_ && severity != "WARNING") {
    return;
  }
  std::string bytes;
  AppendNotice(bytes, severity, severity == "WARNING" ? "01000" : "00000", text);
  line_->Tell(std::move(bytes));
}

void WireSink::TellProgress(std::optional<std::chrono::milliseconds> every, bool quiet) {
  progress_every_ = every;
  quiet_ = quiet;
}

void WireSink::Progress(const elastic::Progress& progress) {
  const auto now = std::chrono::steady_clock::now();
  if (!progress_every_.has_value() || now - last_progress_ < *progress_every_) {
    return;
  }
  last_progress_ = now;
  Notice(FormatProgress(progress));
}

void WireSink::Done(const std::string& tag) {
  // Clients take the number of rows from the tag, and know SELECT's.
  const bool rows_of_prediction = !columns_.empty() && tag.starts_with("PREDICT");
  std::string bytes;
  AppendCommandComplete(bytes, rows_of_prediction ? "SELECT " + std::to_string(rows_) : tag);
  static_cast<void>(line_->Send(std::move(bytes)));  // the client is gone: nothing to report
}

}  // namespace sluice::server::pgwire
