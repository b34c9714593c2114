#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "catalog/sql/sql_text.h"

// The interface between the stores of models and jobs and a database, so that each store is written
// once.
namespace sluice::catalog {

struct SqlBytes {
  std::string_view bytes;
};

// A value bound to $1, $2, ... ; std::monostate is NULL.
using SqlParameter = std::variant<std::monostate, int64_t, double, std::string, SqlBytes>;
using SqlRows = std::vector<std::vector<Value>>;

// One connection, given back to its pool when destroyed. Not thread-safe.
class SqlSession {
 public:
  virtual ~SqlSession() = default;
  // Runs one statement; the rows it returns, if any.
  virtual Result<SqlRows> Query(std::string_view sql,
                                const std::vector<SqlParameter>& parameters) = 0;
};

class SqlDatabase {
 public:
  virtual ~SqlDatabase() = default;
  virtual Dialect dialect() const = 0;
  virtual Result<std::unique_ptr<SqlSession>> TakeSession() = 0;
  // A session with the view of a newly opened connection. A file that was deleted, replaced,
  // truncated or overwritten under our connections is refused (58P01, 58030, XX001).
  virtual Result<std::unique_ptr<SqlSession>> OpenAnew() { return TakeSession(); }
};

// BEGIN ... COMMIT around a scope; rolls back when it is left without Commit.
class SqlTransaction {
 public:
  // `writes`: takes the write lock at once, so that SQLite never has to upgrade a read lock.
  static Result<std::unique_ptr<SqlTransaction>> Begin(SqlSession& session, Dialect dialect,
                                                       bool writes);
  ~SqlTransaction();
  Status Commit();

 private:
  explicit SqlTransaction(SqlSession& session) : session_(session) {}
  SqlSession& session_;
  bool open_ = true;
};

// The cell as a number; 0 if it is NULL, or a number outside the range of integers.
int64_t IntegerCell(const Value& cell);
double DoubleCell(const Value& cell);
// The cell as text; "" when it is NULL.
std::string TextCell(const Value& cell);

}  // namespace sluice::catalog
