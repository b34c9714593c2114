#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/log.h"
#include "catalog/client_login.h"
#include "catalog/data_source.h"
#include "catalog/handed_connection.h"
#include "catalog/key_login.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_messages_internal.h"
#include "catalog/source_url.h"
#include "catalog/sql/search_path.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/store/job_logins.h"

// Opening a connection, and the errors when that fails.
namespace sluice::catalog {
namespace {

constexpr std::chrono::seconds kConnectTimeout{5};

// The server notices within half a minute that this machine is gone, and releases its locks.
constexpr std::string_view kSessionOptions =
    "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3";
// For statements of Sluice's own. What a user's statements may take, and whether they may write, is
// what the administrator has set for the role or the database.
constexpr std::string_view kOwnStatements = " -c statement_timeout=0";
constexpr std::string_view kCatalogWrites = " -c default_transaction_read_only=off";
// Disables the server's limits on long transactions.
constexpr std::string_view kLongTransactions = " -c idle_in_transaction_session_timeout=0";
// Transactions of the catalog are short, and other processes wait for their locks: a job's next
// master needs the row of its term, which the previous one may have locked on a machine that lost
// power.
constexpr std::string_view kShortTransactions =
    " -c idle_in_transaction_session_timeout=6000 -c tcp_user_timeout=10000";
constexpr std::string_view kOurTexts =
    " -c TimeZone=UTC -c DateStyle=ISO -c IntervalStyle=postgres -c bytea_output=hex";

constexpr std::string_view kSearchPath = " -c search_path=";
// The login's own, whatever ALTER ROLE ... SET role says.
constexpr std::string_view kOwnRole = " -c role=none";

// A value of the option -c, which ends at an unescaped space.
std::string OptionText(std::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == ' ' || c == '\\') {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

bool IsLoopback(std::string_view host) {
  return host.empty() || host.front() == '/' || host == "localhost" || host == "::1" ||
         host.starts_with("127.");
}

struct ConnectionSettings {
  std::string host;
  std::string port;
  std::string options;  // from the URL; ours are appended
  std::string password_file;
  bool has_ssl_mode = false;
  std::optional<std::string> search_path = {};  // instead of the login's own
};

// True if PGSSLMODE or a service file configures TLS; libpq knows where to look.
bool EnvironmentHasSslMode() {
  PQconninfoOption* options = PQconndefaults();
  bool chosen = false;
  for (const PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr;
       ++option) {
    chosen = chosen || (std::string_view(option->keyword) == "sslmode" && option->val != nullptr &&
                        std::string_view(option->val) != "prefer");
  }
  PQconninfoFree(options);
  return chosen;
}

Result<ConnectionSettings> ReadSettings(const std::string& url) {
  char* error = nullptr;
  PQconninfoOption* options = PQconninfoParse(url.c_str(), &error);
  if (options == nullptr) {
    std::string message = error == nullptr ? "out of memory" : error;
    PQfreemem(error);
    while (!message.empty() && message.back() == '\n') {
      message.pop_back();
    }
    const std::string shown = WithoutSecrets(url);
    // The quoted part may contain a part of a password.
    if (const size_t quote = message.find('"');
        quote != std::string::npos &&
        shown.find(message.substr(quote + 1, message.rfind('"') - quote - 1)) ==
            std::string::npos) {
      message.resize(message.find_last_not_of(": ", quote - 1) + 1);
    }
    return InvalidArgument(fmt::format("'{}' is not a PostgreSQL URL: {}", shown, message))
        .Hint("expected postgresql://user@host:port/database");
  }
  ConnectionSettings settings;
  for (const PQconninfoOption* option = options; option->keyword != nullptr; ++option) {
    const std::string_view key = option->keyword;
    if (option->val == nullptr) {
      continue;
    }
    if (key == "host" && settings.host.empty()) {
      settings.host = option->val;
    } else if (key == "hostaddr" && *option->val != '\0') {
      settings.host = option->val;  // which is where libpq connects
    } else if (key == "port") {
      settings.port = option->val;
    } else if (key == "sslmode") {
      settings.has_ssl_mode = true;
    } else if (key == "passfile") {
      settings.password_file = option->val;
    } else if (key == "options") {
      settings.options = std::string(option->val) + " ";
    }
  }
  PQconninfoFree(options);
  settings.has_ssl_mode = settings.has_ssl_mode || EnvironmentHasSslMode();
  return settings;
}

PGconn* StartConnection(const PostgresAddress& address, const ConnectionSettings& settings,
                        ConnectionUse use) {
  // Later entries override the URL (the first).
  std::vector<const char*> keys = {"dbname", "fallback_application_name", "client_encoding"};
  std::vector<const char*> values = {address.url.c_str(), "sluice", "UTF8"};
  const auto add = [&](const char* key, const char* value) {
    keys.push_back(key);
    values.push_back(value);
  };
  const std::string password = !address.password.empty()
                                   ? address.password
                                   : PasswordOfUrlIn(settings.password_file, RoleIn(address.url));
  std::string desk;
  std::string token;
  if (IsKeySecret(password)) {
    desk = KeyDeskHost();
    token = KeyDeskToken({password, address.url});
    for (const auto& [key, value] : {std::pair("host", desk.c_str()),
                                     {"hostaddr", ""},
                                     {"port", kKeyDeskPort},
                                     {"password", token.c_str()},
                                     {"sslmode", "disable"},
                                     {"gssencmode", "disable"}}) {
      add(key, value);
    }
  } else if (!password.empty()) {
    add("password", password.c_str());
  }
  if (desk.empty() && !settings.has_ssl_mode && IsLoopback(settings.host)) {
    // Nobody can eavesdrop on the loopback, and rows arrive faster without TLS; a server that
    // insists on it still gets it.
    add("sslmode", "allow");
  }
  // Passed at the start, so that DISCARD ALL restores them.
  std::string options = settings.options + std::string(kSessionOptions);
  if (use != ConnectionUse::kUserStatements) {
    options += kOurTexts;
    options += kOwnStatements;
  }
  if (use == ConnectionUse::kCatalog) {
    options += kSearchPath;
    options += kOwnRole;
    options += kCatalogWrites;
  } else if (settings.search_path.has_value()) {
    options += std::string(kSearchPath) + OptionText(*settings.search_path);
  }
  options += use == ConnectionUse::kCatalog ? kShortTransactions : kLongTransactions;
  add("options", options.c_str());
  // Detects a vanished server within a minute instead of hours.
  add("keepalives_idle", "30");
  add("keepalives_interval", "10");
  add("keepalives_count", "3");
  keys.push_back(nullptr);
  values.push_back(nullptr);
  return PQconnectStartParams(keys.data(), values.data(), 1);
}

// Drives the connection with our own deadline: libpq's connect_timeout starts anew for each address
// of a name.
bool WaitUntilConnected(PGconn* handle, const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + kConnectTimeout;
  PostgresPollingStatusType wanted = PGRES_POLLING_WRITING;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || stop.stop_requested()) {
      return false;
    }
    pollfd waiting = {PQsocket(handle),
                      static_cast<short>(wanted == PGRES_POLLING_READING ? POLLIN : POLLOUT), 0};
    const auto patience = stop.stop_possible() ? std::min<int64_t>(left.count(), kStopPollMillis)
                                               : int64_t{left.count()};
    poll(&waiting, 1, static_cast<int>(patience));
    if (waiting.revents == 0) {
      continue;
    }
    wanted = PQconnectPoll(handle);
    if (wanted == PGRES_POLLING_OK || wanted == PGRES_POLLING_FAILED) {
      return true;
    }
  }
}

// Or until the time is up, or a stop is requested.
void WaitReadable(int socket, const std::stop_token& stop) {
  const auto deadline = std::chrono::steady_clock::now() + kConnectTimeout;
  pollfd waiting = {socket, POLLIN, 0};
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < deadline &&
         poll(&waiting, 1, kStopPollMillis) <= 0) {
  }
}

// "FATAL:  28P01: password authentication failed ...": the SQLSTATE, if the server sent one.
std::string SqlStateIn(std::string_view message) {
  for (const std::string_view severity : {"FATAL:  ", "ERROR:  ", "PANIC:  "}) {
    const size_t at = message.find(severity);
    if (at == std::string_view::npos) {
      continue;
    }
    const std::string_view state = message.substr(at + severity.size(), 5);
    const bool plausible = state.size() == 5 && std::all_of(state.begin(), state.end(), [](char c) {
                             return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z');
                           });
    if (plausible && message.substr(at + severity.size() + 5, 1) == ":") {
      return std::string(state);
    }
  }
  return "";
}

// The last line with content: with several addresses libpq reports one line for each.
std::string ShortReason(std::string_view message, std::string_view sqlstate) {
  if (!sqlstate.empty()) {
    const size_t at = message.find(fmt::format("{}: ", sqlstate));
    message.remove_prefix(at + sqlstate.size() + 2);
    message = message.substr(0, message.find('\n'));
    return std::string(message);
  }
  std::string reason(message);
  while (!reason.empty() && reason.back() == '\n') {
    reason.pop_back();
  }
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const size_t last = reason.rfind("failed: ");
  return last == std::string::npos ? reason : reason.substr(last + 8);
}

// "WARNING: the text (the detail)", as a line for a person.
std::string NoticeText(const PGresult* notice) {
  const auto field = [notice](int code) {
    const char* text = PQresultErrorField(notice, code);
    return std::string_view(text == nullptr ? "" : text);
  };
  return PostgresNotice(field(PG_DIAG_SEVERITY), field(PG_DIAG_MESSAGE_PRIMARY),
                        field(PG_DIAG_MESSAGE_DETAIL), field(PG_DIAG_MESSAGE_HINT));
}

constexpr const char* kTooManyConnections = "53300";

Status ConnectFailure(PGconn* handle, bool in_time) {
  const char* host = PQhost(handle);
  const char* port = PQport(handle);
  const std::string where =
      fmt::format("{}:{}", host == nullptr || *host == '\0' ? "localhost" : host,
                  port == nullptr || *port == '\0' ? "5432" : port);
  if (!in_time) {
    return DatabaseError("08001",
                         fmt::format("cannot connect to PostgreSQL at {}: no answer within "
                                     "{} seconds",
                                     where, kConnectTimeout.count()));
  }
  const std::string message = PQerrorMessage(handle);
  const std::string sqlstate = SqlStateIn(message);
  std::string reason = ShortReason(message, sqlstate);
  if (PQconnectionNeedsPassword(handle) != 0) {
    return DatabaseError("28P01", fmt::format("cannot connect to PostgreSQL at {}: a password is "
                                              "needed",
                                              where))
        .Hint("put it into the URL, PGPASSWORD or ~/.pgpass");
  }
  const bool by_desk = host != nullptr && host == KeyDeskHost();  // which says where
  Status refused = DatabaseError(
      sqlstate.empty() ? "08001" : sqlstate,
      by_desk ? reason : fmt::format("cannot connect to PostgreSQL at {}: {}", where, reason));
  if (sqlstate == kTooManyConnections) {
    return std::move(refused).Hint(
        "a statement of Sluice reads on connections of its own, as the same role: raise the role's "
        "CONNECTION LIMIT or max_connections, or let fewer statements run at once");
  }
  const char* const user = PQuser(handle);
  if (sqlstate == "28000" && user != nullptr && IsOfJob(user)) {
    return std::move(refused).Hint(
        "pg_hba.conf has to let the processes of jobs in: a line for +sluice_jobs, with "
        "scram-sha-256");
  }
  return refused;
}

// The search_path that a login named like an own schema has to begin with, so that RESET and
// DISCARD ALL restore it, too; nullopt: it has that already.
Result<std::optional<std::string>> PathWithoutOwnSchema(PostgresConnection& connection) {
  ASSIGN_OR_RETURN(const PostgresResult rows, connection.Ask(kSearchPathOfLogin));
  if (PQntuples(rows.get()) == 0) {
    return std::optional<std::string>();
  }
  const std::string_view path = PostgresText(rows.get(), 0, 0);
  std::string other = WithoutSchemaOfUser(path);
  return other == path ? std::nullopt : std::optional<std::string>(std::move(other));
}

}  // namespace

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::Borrow(
    const SessionLink& link, const std::stop_token& stop) {
  const char* const keys[] = {"host",     "port",    "user",       "dbname",
                              "password", "sslmode", "gssencmode", nullptr};
  const char* const values[] = {link.host.c_str(),  link.port.c_str(), "session", "session",
                                link.token.c_str(), "disable",         "disable", nullptr};
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(PQconnectStartParams(keys, values, 0)));
  RETURN_IF_ERROR(connection->Finish(stop));
  connection->borrowed_ = true;
  return connection;
}

Result<std::unique_ptr<PostgresConnection>> PostgresConnection::Connect(
    const PostgresAddress& address, const std::stop_token& stop, ConnectionUse use) {
  ASSIGN_OR_RETURN(ConnectionSettings settings, ReadSettings(address.url));
  std::unique_ptr<PostgresConnection> connection(
      new PostgresConnection(StartConnection(address, settings, use)));
  RETURN_IF_ERROR(connection->Finish(stop));
  connection->prepares_ = use == ConnectionUse::kCatalog;
  if (use != ConnectionUse::kCatalog && IsOwnSchema(PQuser(connection->handle()))) {
    ASSIGN_OR_RETURN(settings.search_path, PathWithoutOwnSchema(*connection));
    if (settings.search_path.has_value()) {
      connection.reset(new PostgresConnection(StartConnection(address, settings, use)));
      RETURN_IF_ERROR(connection->Finish(stop));
    }
  }
  if (address.must_ask && PQconnectionUsedPassword(connection->handle()) == 0) {
    // "trust", "peer" or "ident" in its pg_hba.conf: the server believed the user name without a
    // check.
    return DatabaseError("28000",
                         fmt::format("PostgreSQL let role \"{}\" in without asking for the "
                                     "password, so the password was not checked",
                                     PQuser(connection->handle())))
        .Hint(
            "make pg_hba.conf require passwords (scram-sha-256) where this gateway connects from");
  }
  RETURN_IF_ERROR(connection->TakeHandedOver(stop));
  return connection;
}

// If another process has logged in, it hands the connection over so that rows need not pass through
// it. libpq continues with the same descriptor number.
Status PostgresConnection::TakeHandedOver(const std::stop_token& stop) {
  const int socket = PQsocket(handle_);
  sockaddr_storage own = {};
  socklen_t size = sizeof(own);
  if (PQparameterStatus(handle_, kHandsOverParameter) == nullptr ||
      getsockname(socket, reinterpret_cast<sockaddr*>(&own), &size) != 0 ||
      own.ss_family != AF_UNIX) {
    return OkStatus();
  }
  static_cast<void>(send(socket, kHandOverMessage.data(), kHandOverMessage.size(), MSG_NOSIGNAL));
  WaitReadable(socket, stop);
  if (stop.stop_requested()) {
    return Cancelled("the statement was cancelled");
  }
  ASSIGN_OR_RETURN(const int handed, ReceiveDescriptor(socket));
  logged_in_by_ = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  const bool taken = dup3(handed, socket, O_CLOEXEC) == socket;
  close(handed);
  return taken ? OkStatus() : ConnectionLost();
}

// Waits until it is connected.
Status PostgresConnection::Finish(const std::stop_token& stop) {
  PGconn* const handle = handle_;
  if (handle == nullptr) {
    return ResourceExhausted("out of memory while connecting to PostgreSQL").SqlState("53200");
  }
  // Makes the server's message contain its SQLSTATE, to which libpq gives no other access here.
  PQsetErrorVerbosity(handle, PQERRORS_VERBOSE);
  PQsetNoticeReceiver(
      handle,
      [](void* self, const PGresult* notice) {
        static_cast<PostgresConnection*>(self)->OnNotice(NoticeText(notice));
      },
      this);
  const bool in_time = PQstatus(handle) == CONNECTION_BAD || WaitUntilConnected(handle, stop);
  if (!in_time && stop.stop_requested()) {
    return Cancelled("the statement was cancelled");
  }
  if (!in_time || PQstatus(handle) != CONNECTION_OK) {
    return ConnectFailure(handle, in_time);
  }
  return OkStatus();
}

}  // namespace sluice::catalog
