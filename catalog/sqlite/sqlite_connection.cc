#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "base/log.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sqlite/sqlite_bounded_functions_internal.h"
#include "catalog/sqlite/sqlite_cell_internal.h"
#include "catalog/sqlite/sqlite_connection_internal.h"

namespace sluice::catalog {
namespace {

// Waits between attempts: at first as short as a small transaction.
constexpr int kFirstLooks = 10;
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kPause{20};
// SQLite checks for a stop after this many virtual machine steps, some 10 microseconds.
constexpr int kStepsBetweenChecks = 1'000;
// Reading a memory-mapped page of a file that was truncated raises a signal, which ends the
// process; reading by copy returns an error, and is as fast.
constexpr std::string_view kNoMemoryMap = "PRAGMA mmap_size = 0";
// Sufficient for a write-ahead log to be complete after a power failure.
constexpr std::string_view kEnoughForALog = "PRAGMA synchronous = NORMAL";
// A log that grew while somebody read an older state gets shorter when it begins anew.
constexpr std::string_view kUsualLog = "PRAGMA journal_size_limit = 4096000";

// Functions make a value of others, and sorting keeps some.
constexpr int64_t kValuesInHeap = 4;

std::string_view SqlStateOf(int code, std::string_view message) {
  switch (code & 0xFF) {
    case SQLITE_ERROR:
      break;
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return "42501";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "55P03";
    case SQLITE_NOMEM:
      return "53200";
    case SQLITE_READONLY:
      return "25006";
    case SQLITE_INTERRUPT:
      return "57014";
    case SQLITE_IOERR:
      return "58030";
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "XX001";
    case SQLITE_FULL:
      return "53100";
    case SQLITE_CANTOPEN:
      return "58P01";
    case SQLITE_TOOBIG:
      return "54000";
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
        return "23505";
      }
      return code == SQLITE_CONSTRAINT_NOTNULL      ? "23502"
             : code == SQLITE_CONSTRAINT_FOREIGNKEY ? "23503"
             : code == SQLITE_CONSTRAINT_CHECK      ? "23514"
                                                    : "23000";
    case SQLITE_MISMATCH:
      return "42804";
    default:
      return "XX000";
  }
  const auto says = [&](std::string_view text) {
    return message.find(text) != std::string_view::npos;
  };
  if (says("no such table")) {
    return "42P01";
  }
  if (says("no such column")) {
    return "42703";
  }
  if (says("no such type")) {
    return "42704";
  }
  if (says("ambiguous column")) {
    return "42702";
  }
  if (says("no such function") || says("wrong number of arguments")) {
    return "42883";
  }
  if (says("syntax error") || says("incomplete input") || says("unrecognized token")) {
    return "42601";
  }
  if (says("already exists")) {
    return "42P07";
  }
  if (says("too many")) {
    return "54000";
  }
  return "42000";
}

// The place of SQLite's error offset in the statement, as a span of one token.
Span ErrorSpan(sqlite3* handle, std::string_view sql) {
  const int64_t offset = sqlite3_error_offset(handle);
  if (offset < 0 || std::cmp_greater_equal(offset, sql.size())) {
    return {};
  }
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kSqlite)) {
    if (std::cmp_less_equal(token.begin, offset) && std::cmp_less(offset, token.end)) {
      return {static_cast<int64_t>(token.begin), static_cast<int64_t>(token.end)};
    }
  }
  return {offset, offset + 1};
}

Status Bind(sqlite3_stmt* statement, int index, const SqlParameter& parameter) {
  int code = SQLITE_OK;
  if (const auto* integer = std::get_if<int64_t>(&parameter)) {
    code = sqlite3_bind_int64(statement, index, *integer);
  } else if (const auto* number = std::get_if<double>(&parameter)) {
    code = sqlite3_bind_double(statement, index, *number);
  } else if (const auto* text = std::get_if<std::string>(&parameter)) {
    code = sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  } else if (const auto* bytes = std::get_if<SqlBytes>(&parameter)) {
    // A null pointer would bind NULL.
    code = sqlite3_bind_blob64(statement, index, bytes->bytes.empty() ? "" : bytes->bytes.data(),
                               bytes->bytes.size(), SQLITE_STATIC);
  } else {
    code = sqlite3_bind_null(statement, index);
  }
  if (code == SQLITE_OK) {
    return OkStatus();
  }
  return DatabaseError(SqlStateOf(code, ""),
                       fmt::format("cannot bind parameter {}: {}", index, sqlite3_errstr(code)));
}

// From the file's header.
bool HasWriteAheadLog(const std::string& path) {
  constexpr size_t kReadVersion = 19;
  constexpr char kLogged = 2;
  std::array<char, kReadVersion + 1> header = {};
  std::ifstream file(path, std::ios::binary);
  return file.read(header.data(), header.size()) && header[kReadVersion] == kLogged;
}

}  // namespace

Value SqliteCell(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_NULL:
      return std::monostate{};
    default:
      break;
  }
  return std::string(CellBytes(statement, column));
}

Result<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const SqliteLocation& location,
                                                                 Access access) {
  const std::string name = location.in_memory() ? "the in-memory database" : location.path;
  const int how = access == Access::kReadOnly ? SQLITE_OPEN_READONLY
                                              : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (access == Access::kReadWrite && !location.in_memory()) {
    // SQLite would let everybody read a new file; it gives its log the same rights. Through no
    // descriptor: closing one would release the locks of another connection. An error here, such as
    // that the file is there, is one of opening it, or none.
    constexpr mode_t kNotForOthers = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP;  // less the umask
    [[maybe_unused]] const int made = mknod(location.path.c_str(), S_IFREG | kNotForOthers, 0);
  }
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(location.uri.c_str(), &handle,
                                   how | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, nullptr);
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(handle));
  if (code != SQLITE_OK) {
    return DatabaseError(
        "08001", fmt::format("cannot open SQLite database {}: {}", name,
                             handle == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(handle)));
  }
  sqlite3_extended_result_codes(handle, 1);
  if (const int64_t heap = sqlite3_hard_heap_limit64(-1); heap > 0) {
    const int64_t most = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, -1);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH,
                  static_cast<int>(std::min(most, heap / kValuesInHeap)));
  }
  sqlite3_busy_handler(handle, Wait, connection.get());
  connection->Watch();
  BoundFunctions(handle);
  // SQLite calls what is at an address that is given to this function: no text may call it, on
  // whatever connection it is read.
  for (const int arguments : {1, 2}) {
    const auto refuse = [](sqlite3_context* context, int, sqlite3_value**) {
      sqlite3_result_error(context, "fts3_tokenizer is off", -1);
    };
    sqlite3_create_function_v2(handle, "fts3_tokenizer", arguments, SQLITE_UTF8, nullptr, refuse,
                               nullptr, nullptr, nullptr);
  }
  // The first read of the file shows whether it is a database at all.
  Status read = connection->QueryInteger("SELECT count(*) FROM sqlite_schema").status();
  if (!read.ok()) {
    const bool logged = (read.sqlstate() == "58P01" || read.sqlstate() == "25006") &&
                        HasWriteAheadLog(location.path);
    return std::move(read)
        .Because(fmt::format("cannot open SQLite database {}", name))
        .Hint(logged ? "it has a write-ahead log, which SQLite keeps in files beside it: let the "
                       "folder be writable, or set PRAGMA journal_mode = DELETE in a copy"
                     : "");
  }
  RETURN_IF_ERROR(connection->Run(kNoMemoryMap));
  if (access == Access::kReadWrite && !location.in_memory()) {
    ASSIGN_OR_RETURN(const bool logs, connection->IsWriteAheadLog());
    RETURN_IF_ERROR(logs ? connection->SetUpLog() : OkStatus());
  }
  RETURN_IF_ERROR(connection->Run("PRAGMA foreign_keys = ON"));
  return connection;
}

void SqliteConnection::SeeNewTables() {
  static_cast<void>(Run("SELECT NULL FROM sqlite_schema LIMIT 0"));
}

int SqliteConnection::Wait(void* connection, int tries) {
  const int waited = tries <= kFirstLooks
                         ? tries
                         : kFirstLooks + (tries - kFirstLooks) * static_cast<int>(kPause.count());
  const auto* self = static_cast<SqliteConnection*>(connection);
  if (self->stop_.stop_requested() || waited >= self->patience_.count()) {
    return 0;
  }
  std::this_thread::sleep_for(tries < kFirstLooks ? kFirstPause : kPause);
  return 1;
}

void SqliteConnection::HearStop(std::stop_token stop) {
  stop_ = std::move(stop);
  if (!stop_.stop_possible()) {
    sqlite3_progress_handler(handle_, 0, nullptr, nullptr);
    return;
  }
  sqlite3_progress_handler(
      handle_, kStepsBetweenChecks,
      [](void* self) {
        return static_cast<SqliteConnection*>(self)->stop_.stop_requested() ? 1 : 0;
      },
      this);
}

void SqliteConnection::EndTransaction() {
  HearStop(std::stop_token());
  if (!Idle()) {
    const Status ended = Run("ROLLBACK");
    if (!ended.ok()) {
      log::Debug("rollback failed error=\"{}\"", ended.message());
    }
  }
}

SqliteConnection::~SqliteConnection() {
  sqlite3_close_v2(handle_);
}

Status SqliteConnection::UseWriteAheadLog() {
  const Status logged = Run("PRAGMA journal_mode = WAL");
  if (logged.ok()) {
    return SetUpLog();
  }
  return logged.sqlstate() == "25006" || logged.sqlstate() == "55P03" ? OkStatus() : logged;
}

Status SqliteConnection::SetUpLog() {
  RETURN_IF_ERROR(Run(kEnoughForALog));
  return Run(kUsualLog);
}

Result<bool> SqliteConnection::IsWriteAheadLog() {
  // A connection notices that another one has changed the mode when it next reads the file.
  RETURN_IF_ERROR(Query("SELECT 1 FROM sqlite_schema LIMIT 1", {}).status());
  ASSIGN_OR_RETURN(const SqlRows rows, Query("PRAGMA journal_mode", {}));
  return !rows.empty() && TextCell(rows[0][0]) == "wal";
}

Status SqliteConnection::Run(std::string_view sql) {
  return Query(sql, {}).status();
}

Result<SqlRows> SqliteConnection::Query(std::string_view sql,
                                        const std::vector<SqlParameter>& parameters) {
  ASSIGN_OR_RETURN(const SqliteStatement statement, Prepare(sql));
  for (size_t i = 0; i < parameters.size(); ++i) {
    // Parameters are named $1, $2 ... in both databases; those that the statement does not use are
    // skipped.
    const int index =
        sqlite3_bind_parameter_index(statement.get(), fmt::format("${}", i + 1).c_str());
    if (index > 0) {
      RETURN_IF_ERROR(Bind(statement.get(), index, parameters[i]));
    }
  }
  SqlRows rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    std::vector<Value>& row = rows.emplace_back();
    for (int i = 0; i < sqlite3_column_count(statement.get()); ++i) {
      row.push_back(SqliteCell(statement.get(), i));
    }
  }
  if (code != SQLITE_DONE) {
    return LastError(sql);
  }
  return rows;
}

Result<int64_t> SqliteConnection::QueryInteger(std::string_view sql) {
  ASSIGN_OR_RETURN(const SqlRows rows, Query(sql, {}));
  return rows.empty() ? int64_t{0} : IntegerCell(rows[0].at(0));
}

Status SqliteConnection::LastError(std::string_view sql) const {
  const int code = sqlite3_extended_errcode(handle_);
  const std::string message = sqlite3_errmsg(handle_);
  const std::string_view sqlstate = SqlStateOf(code, message);
  if (stop_.stop_requested() &&
      (sqlstate == "57014" || sqlstate == "55P03" || sqlstate == "53200")) {
    return Cancelled("the statement was cancelled");
  }
  if (code == SQLITE_AUTH && !refused_.ok()) {
    return refused_;
  }
  Status status = DatabaseError(sqlstate, message).At(ErrorSpan(handle_, sql));
  if (sqlstate == "55P03") {
    status = std::move(status).Hint(
        "another connection, or an open transaction of this session, holds the write lock: "
        "COMMIT or ROLLBACK it");
  } else if (sqlstate == "25006") {
    status = std::move(status).Hint(
        "the gateway's user may not write the database's file, or its folder");
  } else if (sqlstate == "54000") {
    status = std::move(status).Hint(fmt::format(
        "the most is {} bytes, by the memory that the gateway may take (--memory-limit)",
        sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, -1)));
  }
  return status;
}

}  // namespace sluice::catalog
