#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/log.h"
#include "catalog/notice_log.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_messages_internal.h"
#include "catalog/postgres/postgres_types_internal.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::catalog {
namespace {

// A reachable server accepts a request in milliseconds.
constexpr std::chrono::milliseconds kCancelWait{500};
constexpr std::chrono::milliseconds kBusyServerWait{10'000};

std::string Field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? "" : text;
}

}  // namespace

PostgresConnection::~PostgresConnection() {
  PQfinish(handle_);
  if (logged_in_by_ >= 0) {
    close(logged_in_by_);
  }
}

bool PostgresConnection::Recycle() {
  stop_ = std::stop_token();
  notices_ = nullptr;
  if (borrowed_) {
    return PQstatus(handle_) == CONNECTION_OK;
  }
  if (PQstatus(handle_) != CONNECTION_OK || PQtransactionStatus(handle_) != PQTRANS_IDLE) {
    return false;
  }
  // The next user reads the answer, so nothing waits for it here.
  resetting_ = std::exchange(served_, false) && PQsendQuery(handle_, "DISCARD ALL") != 0;
  return true;
}

bool PostgresConnection::Ready() {
  if (std::exchange(resetting_, false) && !Drain().ok()) {
    return false;
  }
  return Alive() && (borrowed_ || PQtransactionStatus(handle_) == PQTRANS_IDLE);
}

// A server that closed an idle connection (a pooler's time-out, an administrator, a restart) has
// announced it; libpq notices only when it reads.
bool PostgresConnection::Alive() {
  constexpr int kMaxReads = 8;
  for (int i = 0; i < kMaxReads && PQstatus(handle_) == CONNECTION_OK; ++i) {
    pollfd waiting = {PQsocket(handle_), POLLIN, 0};
    if (poll(&waiting, 1, 0) <= 0) {
      return true;
    }
    if (PQconsumeInput(handle_) == 0) {
      return false;
    }
    static_cast<void>(PQisBusy(handle_));  // reads what has arrived
  }
  return PQstatus(handle_) == CONNECTION_OK;
}

void PostgresConnection::Serve(std::stop_token stop, NoticeLog* notices) {
  served_ = true;
  stop_ = std::move(stop);
  notices_ = notices;
}

Status PostgresConnection::CheckStop() const {
  return stop_.stop_requested() ? Cancelled("the statement was cancelled") : OkStatus();
}

void PostgresConnection::OnNotice(std::string notice) const {
  if (notices_ == nullptr || own_text_) {
    log::Debug("postgresql {}", notice);
  } else {
    notices_->Add(std::move(notice));
  }
}

Result<PostgresResult> PostgresConnection::Ask(std::string_view sql, size_t user_text) {
  if (sql.find('\0') != std::string_view::npos) {
    return SyntaxError("a statement cannot hold a NULL byte");
  }
  RETURN_IF_ERROR(CheckStop());
  return LastResult(PQsendQueryParams(handle_, std::string(sql).c_str(), 0, nullptr, nullptr,
                                      nullptr, nullptr, 0) != 0,
                    sql, user_text);
}

PostgresResult PostgresConnection::Await() {
  // A cancel request that reaches the server before the statement has no effect, so it is repeated.
  constexpr std::chrono::seconds kRepeat{1};
  constexpr int kMaxRequests = 5;  // then the server accepts requests but ends nothing
  auto next_request = std::chrono::steady_clock::time_point::min();
  int requests = 0;
  while (PQisBusy(handle_) != 0) {
    if (stop_.stop_requested() && std::chrono::steady_clock::now() >= next_request) {
      if (requests++ == kMaxRequests) {
        GiveUp();
      }
      Cancel();
      next_request = std::chrono::steady_clock::now() + kRepeat;
    }
    pollfd waiting = {PQsocket(handle_), POLLIN, 0};
    poll(&waiting, 1, stop_.stop_possible() ? kStopPollMillis : -1);
    if (waiting.revents != 0 && PQconsumeInput(handle_) == 0) {
      break;  // the next result reports that the connection is gone
    }
  }
  return PostgresResult(PQgetResult(handle_));
}

Result<PostgresResult> PostgresConnection::LastResult(bool sent, std::string_view sql,
                                                      size_t user_text) {
  PostgresResult last;
  while (sent) {
    PostgresResult result = Await();
    if (result == nullptr) {
      break;
    }
    last = std::move(result);
    const ExecStatusType status = PQresultStatus(last.get());
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH ||
        PQstatus(handle_) != CONNECTION_OK) {
      break;
    }
  }
  const ExecStatusType status = PQresultStatus(last.get());
  if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
    return ErrorOf(last.get(), sql, user_text);
  }
  return last;
}

Result<PostgresResult> PostgresConnection::Ask(std::string_view sql,
                                               const std::vector<SqlParameter>& parameters) {
  constexpr Oid kBigint = 20;
  constexpr Oid kDoublePrecision = 701;
  constexpr Oid kBytea = 17;
  constexpr Oid kInferType = 0;
  std::vector<Oid> types;
  std::vector<std::string> texts(parameters.size());
  std::vector<const char*> values;
  std::vector<int> lengths;
  std::vector<int> formats;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const SqlParameter& parameter = parameters[i];
    Oid type = kInferType;
    const char* value = nullptr;
    int length = 0;
    int format = 0;
    if (const auto* integer = std::get_if<int64_t>(&parameter)) {
      type = kBigint;
      texts[i] = fmt::format("{}", *integer);
      value = texts[i].c_str();
    } else if (const auto* number = std::get_if<double>(&parameter)) {
      type = kDoublePrecision;
      texts[i] = FormatDouble(*number);
      value = texts[i].c_str();
    } else if (const auto* text = std::get_if<std::string>(&parameter)) {
      value = text->c_str();
      if (text->find('\0') != std::string::npos) {
        return InvalidArgument("PostgreSQL cannot store text with a NULL byte").SqlState("22021");
      }
    } else if (const auto* bytes = std::get_if<SqlBytes>(&parameter)) {
      type = kBytea;
      value = bytes->bytes.empty() ? "" : bytes->bytes.data();
      length = static_cast<int>(bytes->bytes.size());
      format = 1;
    }
    types.push_back(type);
    values.push_back(value);
    lengths.push_back(length);
    formats.push_back(format);
  }
  RETURN_IF_ERROR(CheckStop());
  const std::string statement(sql);
  const int count = static_cast<int>(parameters.size());
  ASSIGN_OR_RETURN(const std::string prepared, PreparedName(statement, types));
  const int sent = prepared.empty()
                       ? PQsendQueryParams(handle_, statement.c_str(), count, types.data(),
                                           values.data(), lengths.data(), formats.data(), 0)
                       : PQsendQueryPrepared(handle_, prepared.c_str(), count, values.data(),
                                             lengths.data(), formats.data(), 0);
  return LastResult(sent != 0, sql, 0);
}

Result<std::string> PostgresConnection::PreparedName(const std::string& sql,
                                                     const std::vector<Oid>& types) {
  constexpr size_t kMost = 64;  // a text with a list of values may never come again
  if (!prepares_ || !sql.starts_with("SELECT")) {
    return std::string();
  }
  const auto seen = selects_.find(sql);
  if (seen == selects_.end()) {
    if (selects_.size() < kMost) {
      selects_.emplace(sql, "");
    }
    return std::string();
  }
  if (seen->second.empty()) {
    std::string name = fmt::format("select_{}", ++prepared_);
    RETURN_IF_ERROR(LastResult(PQsendPrepare(handle_, name.c_str(), sql.c_str(),
                                             static_cast<int>(types.size()), types.data()) != 0,
                               sql, 0)
                        .status());
    seen->second = std::move(name);
  }
  return seen->second;
}

Status PostgresConnection::Run(const std::string& sql) {
  RETURN_IF_ERROR(CheckStop());
  own_text_ = true;
  Status status = LastResult(PQsendQuery(handle_, sql.c_str()) != 0, "", 0).status();
  own_text_ = false;
  return status;
}

Result<SqlRows> PostgresConnection::Query(std::string_view sql,
                                          const std::vector<SqlParameter>& parameters) {
  ASSIGN_OR_RETURN(const PostgresResult result, Ask(sql, parameters));
  SqlRows rows(static_cast<size_t>(PQntuples(result.get())));
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int i = 0; i < PQnfields(result.get()); ++i) {
      rows[row].push_back(CellFromText(result.get(), static_cast<int>(row), i));
    }
  }
  return rows;
}

Status PostgresConnection::ErrorOf(const PGresult* result, std::string_view sql,
                                   size_t user_text) const {
  const std::string sqlstate = Field(result, PG_DIAG_SQLSTATE);
  if (sqlstate.empty()) {
    if (PQstatus(handle_) == CONNECTION_BAD) {
      return ConnectionLost();
    }
    return DatabaseError("XX000", fmt::format("PostgreSQL: {}", PQerrorMessage(handle_)));
  }
  if (sqlstate == "57014") {
    RETURN_IF_ERROR(CheckStop());
  }
  const std::string position = Field(result, PG_DIAG_STATEMENT_POSITION);
  int64_t character = 0;
  std::from_chars(position.data(), position.data() + position.size(), character);
  return PostgresError(sqlstate, Field(result, PG_DIAG_MESSAGE_PRIMARY),
                       Field(result, PG_DIAG_MESSAGE_DETAIL), Field(result, PG_DIAG_MESSAGE_HINT),
                       character, sql, user_text);
}

Status PostgresConnection::ConnectionLost() const {
  RETURN_IF_ERROR(CheckStop());
  const char* host = PQhost(handle_);
  const char* port = PQport(handle_);
  return DatabaseError("08006", fmt::format("the connection to PostgreSQL at {}:{} was lost",
                                            host == nullptr || *host == '\0' ? "localhost" : host,
                                            port == nullptr ? "" : port));
}

Status PostgresConnection::Drain() {
  Status status;
  while (const PostgresResult result = Await()) {
    const ExecStatusType code = PQresultStatus(result.get());
    if (code == PGRES_COPY_OUT || code == PGRES_COPY_BOTH) {
      // libpq returns this result again until the data are read.
      char* row = nullptr;
      while (PQgetCopyData(handle_, &row, 0) > 0) {
        PQfreemem(row);
      }
    } else if (code == PGRES_COPY_IN) {
      PQputCopyEnd(handle_, "given up");
    } else if (code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK && code != PGRES_SINGLE_TUPLE) {
      status.Add(ErrorOf(result.get(), ""));
    }
    if (PQstatus(handle_) != CONNECTION_OK) {
      break;
    }
  }
  return status;
}

void PostgresConnection::Cancel(bool keeps_connection) const {
  PGcancel* cancel = PQgetCancel(handle_);
  if (cancel == nullptr) {
    return;  // the connection is gone, so there is nothing to cancel
  }
  // If the host is gone, libpq waits for minutes and cannot be interrupted: the thread owns all
  // that it needs, and outlives the caller.
  const auto sent = std::make_shared<std::promise<bool>>();
  std::future<bool> answer = sent->get_future();
  std::thread([cancel, sent] {
    char error[256] = "";
    sent->set_value(PQcancel(cancel, error, sizeof(error)) != 0);
    PQfreeCancel(cancel);
  }).detach();
  // A request that arrives later would end another statement.
  if (answer.wait_for(keeps_connection ? kBusyServerWait : kCancelWait) ==
      std::future_status::timeout) {
    GiveUp();
  } else if (!answer.get()) {
    log::Warn("cannot send a cancel request to PostgreSQL");
  }
}

// Later reads from the socket find it closed.
void PostgresConnection::GiveUp() const {
  shutdown(PQsocket(handle_), SHUT_RDWR);
}

std::string_view PostgresText(const PGresult* result, int row, int column) {
  return {PQgetvalue(result, row, column), static_cast<size_t>(PQgetlength(result, row, column))};
}

int64_t PostgresInteger(const PGresult* result, int row, int column) {
  const std::string_view text = PostgresText(result, row, column);
  int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    double real = 0;  // "1e+06" of float columns such as reltuples
    std::from_chars(text.data(), text.data() + text.size(), real);
    number = static_cast<int64_t>(real);
  }
  return number;
}

}  // namespace sluice::catalog
