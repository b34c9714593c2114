#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/connection_pool.h"
#include "catalog/sql/sql_session.h"

// libpq as C++: connections and results that close themselves, and errors as Status.
namespace sluice::catalog {

class NoticeLog;
struct SessionLink;

// How often whoever waits for the server looks whether the statement was cancelled.
inline constexpr int kStopPollMillis = 50;

struct PostgresClear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, PostgresClear>;

// Where the server is; `password` may be empty.
struct PostgresAddress {
  std::string url;  // without a password
  std::string password;
  bool must_ask = false;  // a server that lets the role in without having asked for it is refused
};

// Whose statements a connection is for.
enum class ConnectionUse {
  kOurs,   // UTC and ISO, so that text means the same everywhere
  kUsers,  // begins with what the server gives the role: its TimeZone, its DateStyle
  // The catalog's: as kOurs, and no search_path, so that nobody's function or operator is found in
  // place of the server's own.
  kCatalog,
};

// One connection; belongs to one thread at a time.
class PostgresConnection final : public SqlSession {
 public:
  static Result<std::unique_ptr<PostgresConnection>> Connect(
      const PostgresAddress& address, const std::stop_token& stop = {},
      ConnectionUse use = ConnectionUse::kOurs);
  // A session's own connection, which somebody else has open: what is done here is done in the
  // session, and it is given back as it was. Serves one statement.
  static Result<std::unique_ptr<PostgresConnection>> Borrow(const SessionLink& link,
                                                            const std::stop_token& stop);
  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  PGconn* handle() const { return handle_; }
  // For the pool: DISCARD ALL is on its way where a user's text has run, so that no lock, setting
  // or prepared statement of it stays; and whether it has arrived. False: not alive, or inside a
  // transaction.
  bool Recycle();
  bool Ready();
  // As far as the server has said anything; for a connection on which nothing runs.
  bool Alive();
  bool InTransaction() const;

  // From now on the user's text runs here: Recycle takes back what it leaves behind; `stop` ends
  // whatever runs or waits (57014), within a second; what the server tells beside errors goes to
  // `notices`, where there is one (it outlives the lease).
  void Serve(std::stop_token stop, NoticeLog* notices);
  // Where notices go from now on; returns where they went.
  NoticeLog* TellTo(NoticeLog* notices) { return std::exchange(notices_, notices); }
  void HearStop(std::stop_token stop) { stop_ = std::move(stop); }
  // For what has to be done although the statement was cancelled.
  void IgnoreStop() { stop_ = std::stop_token(); }
  const std::stop_token& stop() const { return stop_; }
  // Cancelled once `stop` is requested.
  Status CheckStop() const;
  // A NOTICE or WARNING that the wire brought (postgres_stream.cc).
  void Tell(std::string notice) const;
  // Begins a transaction: `sql` is "BEGIN ...", and what follows it behind a semicolon. Inside the
  // open transaction of a borrowed session it is a savepoint of that. Ended by Commit or Rollback.
  Status Begin(const std::string& sql);
  Status Commit();
  // ROLLBACK, if need be; failures are left to Recycle().
  void Rollback();
  // A stream that reads the socket itself (postgres_stream.cc) saw the transaction fail; libpq did
  // not. Ends with Rollback.
  void FailedOnWire() { failed_on_wire_ = true; }
  bool TransactionFailed() const;

  // One statement; spans in errors are relative to `sql` from byte `user_text` on, where the text
  // that the user wrote begins (what stands before is ours).
  Result<PostgresResult> Ask(std::string_view sql, size_t user_text = 0);
  Result<PostgresResult> Ask(std::string_view sql, const std::vector<SqlParameter>& parameters);
  // The columns of a statement as the server describes them; nothing runs.
  Result<PostgresResult> DescribeColumns(std::string_view sql);
  // Several statements of our own, separated by semicolons.
  Status Run(const std::string& sql);
  Result<SqlRows> Query(std::string_view sql, const std::vector<SqlParameter>& parameters) override;

  // What the server says about a statement, or about the connection when it is gone.
  Status ErrorOf(const PGresult* result, std::string_view sql, size_t user_text = 0) const;
  Status ConnectionLost() const;
  // Waits for the next result of what was sent; null when there is none any more. Asks the server
  // to end the statement when `stop` says so.
  PostgresResult Await();
  // Reads whatever is left of a statement's results, so that the connection is idle again. OK, or
  // the errors among them.
  Status Drain();
  // Asks the server to end the statement that runs on this connection. A server that cannot be
  // reached within half a second is given up, and the connection with it.
  void Cancel() const;

 private:
  explicit PostgresConnection(PGconn* handle) : handle_(handle) {}
  Status Finish(const std::stop_token& stop);
  Status TakeHandedOver(const std::stop_token& stop);
  void GiveUp() const;
  // Reads the results of what was sent; the last one, or the error.
  Result<PostgresResult> LastResult(bool sent, std::string_view sql, size_t user_text);

  PGconn* handle_;
  int logged_in_by_ = -1;  // the socket to who has handed the connection over, and cancels for it
  bool borrowed_ = false;
  bool own_transaction_ = false;  // begun here
  bool nested_ = false;           // inside a savepoint of a borrowed session's transaction
  std::string take_back_;         // what undoes its SET LOCALs
  bool failed_on_wire_ = false;
  bool served_ = false;     // a user's text has run since the last reset
  bool resetting_ = false;  // DISCARD ALL was sent, and not answered yet
  bool own_text_ = false;   // what runs is our own: its notices are not for the user
  std::stop_token stop_;
  NoticeLog* notices_ = nullptr;
};

using PostgresPool = ConnectionPool<PostgresConnection>;

// A cell of a text-format result; "" when it is NULL.
std::string_view PostgresText(const PGresult* result, int row, int column);
int64_t PostgresInteger(const PGresult* result, int row, int column);

// What the server says beside errors, as a line for a person: "NOTICE: text (detail; hint)".
std::string PostgresNotice(std::string_view severity, std::string_view message,
                           std::string_view detail, std::string_view hint);

// The error that the fields of a result or of a wire message describe. `position` counts
// characters of `sql` from 1; 0 when there is none.
Status PostgresError(std::string_view sqlstate, std::string message, std::string detail,
                     std::string hint, int64_t position, std::string_view sql, size_t user_text);

}  // namespace sluice::catalog
