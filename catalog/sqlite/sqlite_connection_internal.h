#pragma once

#include <sqlite3.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/status.h"
#include "catalog/sql/sql_session.h"

// A C++ interface to SQLite: connections and statements that close themselves, and errors as
// Status.
namespace sluice::catalog {

struct SqliteFinalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, SqliteFinalize>;

// The location of a database. In-memory ones are in SQLite's memdb VFS, under a name that is unique
// in the process, so that several connections of the process share one.
struct SqliteLocation {
  std::string uri;   // the argument of sqlite3_open_v2
  std::string path;  // for people, and for files next to it; "" in memory
  bool in_memory() const { return path.empty(); }
};

// One connection; belongs to one thread at a time (it is opened without SQLite's own mutex).
class SqliteConnection final : public SqlSession {
 public:
  enum class Access : int { kReadWrite = 1, kReadOnly = 2 };

  static Result<std::unique_ptr<SqliteConnection>> Open(const SqliteLocation& location,
                                                        Access access);
  ~SqliteConnection() override;
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  sqlite3* handle() const { return handle_; }
  // Not inside a transaction.
  bool Idle() const { return sqlite3_get_autocommit(handle_) != 0; }
  // For the pool.
  bool Recycle() {
    HearStop(std::stop_token());
    WaitForLocks(kPatience);
    return Idle();
  }
  bool Ready() const { return Idle(); }

  // `stop` ends whatever runs here, or waits for a lock, from now on (57014).
  void HearStop(std::stop_token stop);
  // How long a statement waits for a lock of another connection until it gives up (55P03).
  static constexpr std::chrono::milliseconds kPatience{10'000};
  void WaitForLocks(std::chrono::milliseconds most) { patience_ = most; }
  // Rolls back what is open, also after a stop, and hears no stop any more.
  void EndTransaction();
  // Whether readers and a writer do not block each other.
  Result<bool> IsWriteAheadLog();
  // Switches the database for all connections. A read-only file, a file system without shared
  // memory and a database used by others keep their journal mode: then datasets are staged.
  Status UseWriteAheadLog();

  // The first statement of `sql`; further text is an error. Spans are relative to `sql`.
  Result<SqliteStatement> Prepare(std::string_view sql);
  // The same for a text that has all its values in it: 42P02 for :a, ? and the like.
  Result<SqliteStatement> PrepareWhole(std::string_view sql);
  // The same for a user's select. A PRAGMA in its place is refused, and not run. `on_touched`, if
  // given, is called for everything that the select touches.
  struct Touched {  // as sqlite3_set_authorizer describes them; null where there is none
    int action;
    const char* first;
    const char* second;
    const char* schema;
    const char* through;  // the innermost trigger or view
  };
  using OnTouched = std::function<void(const Touched&)>;
  Result<SqliteStatement> PrepareSelect(std::string_view select, const OnTouched& on_touched = {});
  // SQLite asks this connection what statements may do, from Open on; to be called when another
  // component (SqliteGuard) has been asked. A trigger of a user's changes no table of Sluice's,
  // whatever fires it.
  void Watch();
  // Runs a statement that returns no rows, or whose rows do not matter.
  Status Run(std::string_view sql);
  // SQLite prepares a statement by the tables that the connection has seen last, and notices only
  // when it runs that another connection has changed or made one anew: too late for who was told
  // its columns. Outside a transaction. An error, such as a lock, is also that of the statement.
  void SeeNewTables();
  Result<SqlRows> Query(std::string_view sql, const std::vector<SqlParameter>& parameters) override;
  // The first cell of the first row as a number; 0 without rows.
  Result<int64_t> QueryInteger(std::string_view sql);

  // The connection's last error.
  Status LastError(std::string_view sql) const;

 private:
  explicit SqliteConnection(sqlite3* handle) : handle_(handle) {}
  Status SetUpLog();
  // Called while a lock is awaited; 0 gives up.
  static int Wait(void* connection, int tries);
  static int Ask(void* connection, int action, const char* first, const char* second,
                 const char* schema, const char* through);

  sqlite3* handle_;
  std::stop_token stop_;
  std::chrono::milliseconds patience_ = kPatience;
  const OnTouched* select_ = nullptr;  // while a user's select is prepared
  Status refused_;                     // why SQLite was told that a statement may not be run
};

// sluice_models and the like, in any case.
bool IsTableOfSluice(std::string_view table);

// The cell in the storage class in which SQLite stored it.
Value SqliteCell(sqlite3_stmt* statement, int column);

}  // namespace sluice::catalog
