#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "base/letter_case.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

constexpr size_t kPostgresBatchRows = 1'000;
// How often a running statement checks whether it was cancelled.
constexpr int kPollMillis = 50;

// Refuses COPY, too.
class NoReceiver final : public RowReceiver {
 public:
  Status Header(const Schema& /*schema*/) override { return OkStatus(); }
  Status Rows(const RowBatch& /*batch*/) override { return OkStatus(); }
};

// Whether a rule may return rows in place of the statement, which the server drops in the extended
// protocol; the simple one would run several statements.
bool MayMeetRule(std::string_view sql) {
  constexpr size_t kBeginning = 1'000;  // comments, perhaps, and a word
  constexpr std::array<std::string_view, 4> kWords = {"INSERT", "UPDATE", "DELETE", "WITH"};
  const auto tokens = TokenizeSql(sql.substr(0, kBeginning), Dialect::kPostgres);
  if (tokens.empty() || std::none_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
        return SameIgnoringCase(sql.substr(tokens[0].begin, tokens[0].end - tokens[0].begin), word);
      })) {
    return false;
  }
  if (sql.find(';') == std::string_view::npos) {
    return true;
  }
  const auto all = TokenizeSql(sql, Dialect::kPostgres);
  return std::none_of(all.begin(), all.end(),
                      [sql](const SqlToken& token) { return sql[token.begin] == ';'; });
}

// Reads the results of one statement row by row.
class StatementRun {
 public:
  StatementRun(PostgresConnection& connection, PostgresTypeNames& type_names, std::string_view sql,
               RowReceiver* receiver, std::stop_token stop)
      : connection_(connection),
        type_names_(type_names),
        sql_(sql),
        receiver_(receiver == nullptr ? none_ : *receiver),
        stop_(std::move(stop)) {
    notices_before_ = connection_.SendNoticesTo(&notices_);
  }

  ~StatementRun() {
    if (!finished_) {
      connection_.Cancel();
      connection_.Drain().ok();  // the cancellation itself is no error
    }
    ReportNotices(notices_.TakeLast());
    connection_.SendNoticesTo(notices_before_);
  }
  StatementRun(const StatementRun&) = delete;
  StatementRun& operator=(const StatementRun&) = delete;

  Result<ExecuteResult> Run() {
    PGconn* handle = connection_.handle();
    const int sent = MayMeetRule(sql_) ? PQsendQuery(handle, sql_.c_str())
                                       : PQsendQueryParams(handle, sql_.c_str(), 0, nullptr,
                                                           nullptr, nullptr, nullptr, 0);
    if (sent == 0 || PQsetSingleRowMode(handle) == 0) {
      finished_ = true;
      return connection_.ErrorOf(nullptr, sql_);
    }
    Status failure;
    while (true) {
      ASSIGN_OR_RETURN(PostgresResult result, NextResult());
      if (result == nullptr) {
        finished_ = true;
        break;
      }
      const Status taken = Take(std::move(result));
      if (!taken.ok() && from_receiver_) {
        return taken;  // the destructor ends the statement
      }
      if (!taken.ok()) {
        failure = taken;
      }
    }
    if (!failure.ok()) {
      return stop_.stop_requested() && (failure.sqlstate() == "57014" || IsConnectionLost(failure))
                 ? Cancelled("the statement was cancelled")
                 : failure;
    }
    return result_;
  }

 private:
  // Waits for the next result; asks the server to stop when `stop` is requested.
  Result<PostgresResult> NextResult() {
    PGconn* handle = connection_.handle();
    while (PQisBusy(handle) != 0) {
      RETURN_IF_ERROR(Await());
    }
    if (stop_.stop_requested() && !std::exchange(cancelled_, true)) {
      connection_.Cancel();  // rows arrive so fast that the code never waits
    }
    return PostgresResult(PQgetResult(handle));
  }

  // Waits a moment for what the server sends.
  Status Await() {
    PGconn* handle = connection_.handle();
    if (stop_.stop_requested() && !std::exchange(cancelled_, true)) {
      connection_.Cancel();
    }
    pollfd waiting = {PQsocket(handle), POLLIN, 0};
    poll(&waiting, 1, cancelled_ || !stop_.stop_possible() ? -1 : kPollMillis);
    if (waiting.revents != 0 && PQconsumeInput(handle) == 0) {
      finished_ = true;
      return stop_.stop_requested() ? Cancelled("the statement was cancelled")
                                    : connection_.ConnectionLost();
    }
    ReportNotices(notices_.Take());
    return OkStatus();
  }

  Status Take(PostgresResult result) {
    switch (PQresultStatus(result.get())) {
      case PGRES_SINGLE_TUPLE:
        return FromReceiver(AddRow(std::move(result)));
      case PGRES_TUPLES_OK:
        if (!has_header_) {
          RETURN_IF_ERROR(FromReceiver(SendHeader(result.get())));
        }
        RETURN_IF_ERROR(FromReceiver(Flush()));
        has_header_ = false;  // a rule may return several sets
        Finish(result.get());
        return OkStatus();
      case PGRES_COMMAND_OK:
      case PGRES_EMPTY_QUERY:
        Finish(result.get());
        return OkStatus();
      case PGRES_COPY_IN:
        return SendCopy();
      case PGRES_COPY_OUT:
        return TakeCopy();
      default:
        return connection_.ErrorOf(result.get(), sql_);
    }
  }

  Result<std::string> NextToCopy() {
    Result<std::string> piece = receiver_.NextToCopy();
    if (stop_.stop_requested()) {  // what was read may be cut off
      return Cancelled("the statement was cancelled");
    }
    return piece;
  }

  Status SendCopy() {
    while (true) {
      const Result<std::string> piece = NextToCopy();
      if (!piece.ok()) {
        // Not by a cancel request: one that arrives before the server listens for data makes it
        // answer our end of data with a second "ready", which the next statement would read.
        connection_.Drain().ok();  // giving it up is no error
        finished_ = true;
        return FromReceiver(piece.status());
      }
      const bool sent = piece->empty() ? PQputCopyEnd(connection_.handle(), nullptr) == 1
                                       : PQputCopyData(connection_.handle(), piece->data(),
                                                       static_cast<int>(piece->size())) == 1;
      if (!sent) {
        finished_ = true;
        return FromReceiver(connection_.ConnectionLost());
      }
      if (piece->empty()) {
        return OkStatus();
      }
    }
  }

  Status TakeCopy() {
    while (true) {
      char* text = nullptr;
      const int size = PQgetCopyData(connection_.handle(), &text, 1);
      const std::unique_ptr<char, void (*)(void*)> owner(text, PQfreemem);
      if (size < 0) {
        return OkStatus();  // the next result says how it ended
      }
      if (size == 0) {
        RETURN_IF_ERROR(Await());
      } else {
        const std::string_view piece(text, static_cast<size_t>(size));
        RETURN_IF_ERROR(FromReceiver(receiver_.Copied(piece)));
      }
    }
  }

  void ReportNotices(const std::vector<std::string>& notices) {
    for (const std::string& notice : notices) {
      if (notices_before_ != nullptr) {
        notices_before_->Add(notice);
      } else {
        receiver_.Notice(notice);
      }
    }
  }

  // Marks that we gave up the statement, not the server.
  Status FromReceiver(Status status) {
    from_receiver_ = from_receiver_ || !status.ok();
    return status;
  }

  Status SendHeader(const PGresult* result) {
    has_header_ = true;
    schema_ = {};
    for (int i = 0; i < PQnfields(result); ++i) {
      ColumnInfo& column = schema_.columns.emplace_back();
      column.name = PQfname(result, i);
      column.type = TypeOfOid(PQftype(result, i));
      column.database_type = type_names_.Name(PQftype(result, i), PQfmod(result, i));
      column.type = ShownType(column);
    }
    ResetBatch();
    return receiver_.Header(schema_);
  }

  Status AddRow(PostgresResult result) {
    if (!has_header_) {
      RETURN_IF_ERROR(SendHeader(result.get()));
    }
    const size_t row = batch_.rows;
    for (size_t i = 0; i < schema_.columns.size(); ++i) {
      RowBatch::Column& column = batch_.columns[i];
      const int field = static_cast<int>(i);
      column.null[row] = static_cast<uint8_t>(PQgetisnull(result.get(), 0, field));
      if (column.null[row] == 0) {
        ShowCell(PQgetvalue(result.get(), 0, field),
                 static_cast<size_t>(PQgetlength(result.get(), 0, field)), row, &column);
      }
    }
    held_bytes_ += PQresultMemorySize(result.get());
    held_.push_back(std::move(result));
    ++batch_.rows;
    return batch_.rows == kPostgresBatchRows || held_bytes_ >= kBatchBytes ? Flush() : OkStatus();
  }

  Status Flush() {
    Status status;
    if (batch_.rows > 0) {
      status = receiver_.Rows(batch_);
    }
    ResetBatch();
    held_.clear();
    held_bytes_ = 0;
    return status;
  }

  void ResetBatch() {
    batch_.Reset(schema_, kPostgresBatchRows);
    for (RowBatch::Column& column : batch_.columns) {
      PrepareShown(kPostgresBatchRows, &column);
    }
  }

  void Finish(PGresult* result) {
    result_.tag = PQcmdStatus(result);
    const std::string_view affected = PQcmdTuples(result);
    int64_t rows = -1;
    const auto parsed = std::from_chars(affected.data(), affected.data() + affected.size(), rows);
    result_.rows_affected = parsed.ec == std::errc() ? rows : -1;
  }

  PostgresConnection& connection_;
  PostgresTypeNames& type_names_;
  const std::string sql_;
  NoReceiver none_;
  RowReceiver& receiver_;
  std::stop_token stop_;
  NoticeLog notices_{NoticeLog::Repeated::kEach};
  NoticeLog* notices_before_ = nullptr;  // the enclosing statement's
  Schema schema_;
  RowBatch batch_;
  std::vector<PostgresResult> held_;  // own the texts of the batch
  size_t held_bytes_ = 0;
  ExecuteResult result_;
  bool has_header_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
  bool from_receiver_ = false;
};

}  // namespace

Result<ExecuteResult> ExecuteOnPostgres(PostgresConnection& connection,
                                        PostgresTypeNames& type_names, std::string_view sql,
                                        RowReceiver* receiver, std::stop_token stop) {
  if (sql.find('\0') != std::string_view::npos) {
    return SyntaxError("a statement cannot hold a NULL byte");
  }
  if (stop.stop_requested()) {
    return Cancelled("the statement was cancelled");
  }
  StatementRun run(connection, type_names, sql, receiver, std::move(stop));
  return run.Run();
}

}  // namespace sluice::catalog
