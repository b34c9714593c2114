#pragma once

#include <libpq-fe.h>

#include <functional>
#include <map>
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

// A C++ interface to libpq: connections and results that close themselves, and errors as Status.
namespace sluice::catalog {

class NoticeLog;
struct SessionLink;

// How often a thread that waits for the server checks whether the statement was cancelled.
inline constexpr int kStopPollMillis = 50;

struct PostgresClear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, PostgresClear>;

// The server's address; `password` may be empty.
struct PostgresAddress {
  std::string url;  // without a password
  std::string password;
  bool must_ask = false;  // a server that admits the role without a password is refused
};

// The statements for which a connection is used.
enum class ConnectionUse {
  kInternal,        // Sluice's own: UTC and ISO, so that text means the same everywhere
  kUserStatements,  // the user's: with the server's settings for the role (TimeZone, DateStyle)
  // For the catalog: like kInternal, without a search_path, so that no user's function or operator
  // is found instead of the server's own.
  kCatalog,
};

// One connection; belongs to one thread at a time.
class PostgresConnection final : public SqlSession {
 public:
  static Result<std::unique_ptr<PostgresConnection>> Connect(
      const PostgresAddress& address, const std::stop_token& stop = {},
      ConnectionUse use = ConnectionUse::kInternal);
  // A session's own connection, owned by another component: statements run in that session, and its
  // state is restored afterwards. Serves one statement.
  static Result<std::unique_ptr<PostgresConnection>> Borrow(const SessionLink& link,
                                                            const std::stop_token& stop);
  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  PGconn* handle() const { return handle_; }
  // For the pool: sends DISCARD ALL if text of a user has run, so that no lock, setting or prepared
  // statement of it remains; the other function waits for the answer. False: not alive, or inside a
  // transaction.
  bool Recycle();
  bool Ready();
  // As far as the server has reported; for an idle connection.
  bool Alive();
  bool InTransaction() const;

  // From now on text of the user runs here: Recycle undoes its effects; `stop` ends whatever runs
  // or waits (57014), within a second; messages other than errors go to `notices`, if given (which
  // must outlive the lease).
  void Serve(std::stop_token stop, NoticeLog* notices);
  // Where notices go from now on; returns the previous destination.
  NoticeLog* SendNoticesTo(NoticeLog* notices) { return std::exchange(notices_, notices); }
  void HearStop(std::stop_token stop) { stop_ = std::move(stop); }
  // For actions that are necessary although the statement was cancelled.
  void IgnoreStop() { stop_ = std::stop_token(); }
  const std::stop_token& stop() const { return stop_; }
  // Cancelled once `stop` is requested.
  Status CheckStop() const;
  // A NOTICE or WARNING read from the socket (postgres_stream.cc).
  void OnNotice(std::string notice) const;
  // Begins a transaction: `sql` is "BEGIN ...", optionally followed by a semicolon and statements.
  // Inside the open transaction of a borrowed session it becomes a savepoint. Ended by Commit or
  // Rollback.
  // Within a reading (BeginReading) it does nothing.
  Status Begin(const std::string& sql);
  Status Commit();
  // ROLLBACK if necessary; Recycle() deals with failures.
  void Rollback();
  // Begins a transaction of a borrowed session that lasts until EndReading, or until something in
  // it fails, and asks in the same round trip: `sql` is "BEGIN ...; SELECT ...". Within it a text
  // is described once, since its locks keep others from changing what it reads.
  Result<PostgresResult> BeginReading(const std::string& sql);
  void EndReading();
  bool reading() const { return reading_; }
  // A stream that reads the socket itself (postgres_stream.cc) saw the transaction fail, which
  // libpq did not see. Ended by Rollback.
  void FailedOnWire() { failed_on_wire_ = true; }
  bool TransactionFailed() const;

  // One statement; spans in errors are relative to `sql` from byte `user_text` on, where the text
  // of the user begins (text before that is ours).
  Result<PostgresResult> Ask(std::string_view sql, size_t user_text = 0);
  Result<PostgresResult> Ask(std::string_view sql, const std::vector<SqlParameter>& parameters);
  // The columns of a statement as the server describes them; nothing runs.
  Result<PostgresResult> DescribeColumns(std::string_view sql);
  // The server's plan of a select, as JSON; nothing runs. `describe`: asks for its columns in the
  // same round trip, which DescribeColumns knows then, if the connection is reading.
  Result<PostgresResult> Explain(std::string_view select, bool describe = false);
  // Several statements of our own, separated by semicolons.
  Status Run(const std::string& sql);
  // A connection of the catalog prepares a SELECT at its second use, so that the server plans it
  // once.
  Result<SqlRows> Query(std::string_view sql, const std::vector<SqlParameter>& parameters) override;

  // The server's error for a statement, or for the connection if it is gone.
  Status ErrorOf(const PGresult* result, std::string_view sql, size_t user_text = 0) const;
  Status ConnectionLost() const;
  // Waits for the next result of the request; null if there are no more. Asks the server to end the
  // statement when `stop` is requested.
  PostgresResult Await();
  // Reads the remaining results of a statement, so that the connection is idle again. OK, or the
  // errors among them.
  Status Drain();
  // Asks the server to end the statement that runs on this connection. If the server does not
  // answer within half a second, the connection is given up, since somebody waits for the end. With
  // `keeps_connection` nobody does, and a busy server has ten seconds.
  void Cancel(bool keeps_connection = false) const;

 private:
  explicit PostgresConnection(PGconn* handle) : handle_(handle) {}
  Status Finish(const std::stop_token& stop);
  Status TakeHandedOver(const std::stop_token& stop);
  void GiveUp() const;
  // The name under which the statement is prepared; "": it is not.
  Result<std::string> PreparedName(const std::string& sql, const std::vector<Oid>& types);
  // Sends the requests (calls of libpq, whose results are not 0) and reads their answers, in one
  // round trip; returns all of them, or the first error.
  Result<std::vector<PostgresResult>> AskTogether(const std::vector<std::function<int()>>& requests,
                                                  std::string_view sql, size_t user_text = 0);
  void KeepDescription(std::string_view sql, const PGresult& described);
  // Reads the results of the request; returns the last one, or the error.
  Result<PostgresResult> LastResult(bool sent, std::string_view sql, size_t user_text);

  PGconn* handle_;
  int logged_in_by_ =
      -1;  // the socket to the process that handed the connection over, which cancels for it
  bool borrowed_ = false;
  bool own_transaction_ = false;  // begun here
  bool reading_ = false;          // between BeginReading and EndReading
  std::map<std::string, PostgresResult, std::less<>> described_;  // while reading
  bool nested_ = false;    // inside a savepoint of a borrowed session's transaction
  std::string take_back_;  // undoes its SET LOCALs
  bool failed_on_wire_ = false;
  bool prepares_ = false;                       // of the catalog
  std::map<std::string, std::string> selects_;  // that ran here, if it prepares: their names
  int prepared_ = 0;                            // how many of them have one
  bool served_ = false;                         // a user's text has run since the last reset
  bool resetting_ = false;                      // DISCARD ALL was sent and is not answered yet
  bool own_text_ = false;  // our own text is running: its notices are not for the user
  std::stop_token stop_;
  NoticeLog* notices_ = nullptr;
};

using PostgresPool = ConnectionPool<PostgresConnection>;

// A cell of a text-format result; "" when it is NULL.
std::string_view PostgresText(const PGresult* result, int row, int column);
int64_t PostgresInteger(const PGresult* result, int row, int column);

}  // namespace sluice::catalog
