#pragma once

#include <libpq-fe.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/connection_pool.h"
#include "catalog/sql_session.h"

// libpq as C++: connections and results that close themselves, and errors as Status.
namespace sluice::catalog {

struct PostgresClear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, PostgresClear>;

// Where the server is; `password` may be empty.
struct PostgresAddress {
  std::string url;  // without a password
  std::string password;
};

// One connection; belongs to one thread at a time.
class PostgresConnection final : public SqlSession {
 public:
  static Result<std::unique_ptr<PostgresConnection>> Connect(const PostgresAddress& address);
  ~PostgresConnection() override;
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  PGconn* handle() const { return handle_; }
  // Alive and not inside a transaction.
  bool Reusable() const;
  bool InTransaction() const;
  // ROLLBACK, if need be; failures are left to Reusable().
  void Rollback();
  // A stream that reads the socket itself (postgres_stream.cc) saw the transaction fail; libpq did
  // not. Ends with Rollback.
  void FailedOnWire() { failed_on_wire_ = true; }
  bool TransactionFailed() const;

  // One statement; spans in errors are relative to `sql` from byte `user_text` on, where the text
  // that the user wrote begins (what stands before is ours).
  Result<PostgresResult> Ask(std::string_view sql, size_t user_text = 0);
  Result<PostgresResult> Ask(std::string_view sql, const std::vector<SqlParameter>& parameters);
  // Several statements of our own, separated by semicolons.
  Status Run(const std::string& sql);
  Result<SqlRows> Query(std::string_view sql, const std::vector<SqlParameter>& parameters) override;

  // What the server says about a statement, or about the connection when it is gone.
  Status ErrorOf(const PGresult* result, std::string_view sql, size_t user_text = 0) const;
  Status ConnectionLost() const;
  // Reads whatever is left of a statement's results, so that the connection is idle again. OK, or
  // the errors among them.
  Status Drain();
  // Asks the server to end the statement that runs on this connection.
  void Cancel() const;

 private:
  explicit PostgresConnection(PGconn* handle) : handle_(handle) {}
  PGconn* handle_;
  bool failed_on_wire_ = false;
};

using PostgresPool = ConnectionPool<PostgresConnection>;

// A cell of a text-format result; "" when it is NULL.
std::string_view PostgresText(const PGresult* result, int row, int column);
int64_t PostgresInteger(const PGresult* result, int row, int column);

// The error that the fields of a result or of a wire message describe. `position` counts
// characters of `sql` from 1; 0 when there is none.
Status PostgresError(std::string_view sqlstate, std::string message, std::string detail,
                     std::string hint, int64_t position, std::string_view sql, size_t user_text);

}  // namespace sluice::catalog
