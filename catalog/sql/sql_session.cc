#include "catalog/sql/sql_session.h"

#include "base/log.h"

namespace sluice::catalog {

Result<std::unique_ptr<SqlTransaction>> SqlTransaction::Begin(SqlSession& session, Dialect dialect,
                                                              bool writes) {
  const bool immediate = writes && dialect == Dialect::kSqlite;
  const Result<SqlRows> begun = session.Query(immediate ? "BEGIN IMMEDIATE" : "BEGIN", {});
  if (!begun.ok()) {
    return begun.status();
  }
  return std::unique_ptr<SqlTransaction>(new SqlTransaction(session));
}

SqlTransaction::~SqlTransaction() {
  if (!open_) {
    return;
  }
  const Result<SqlRows> rolled_back = session_.Query("ROLLBACK", {});
  if (!rolled_back.ok()) {
    // The pool closes a connection that is still inside a transaction.
    log::Debug("rollback failed error=\"{}\"", rolled_back.status().message());
  }
}

Status SqlTransaction::Commit() {
  open_ = false;
  const Result<SqlRows> committed = session_.Query("COMMIT", {});
  if (!committed.ok()) {
    open_ = true;
  }
  return committed.status();
}

int64_t IntegerCell(const Value& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) {
    return *integer;
  }
  if (const auto* flag = std::get_if<bool>(&cell)) {
    return *flag ? 1 : 0;
  }
  const double number = DoubleCell(cell);
  constexpr double kEnd = 0x1p63;  // the first number behind the largest integer
  return number >= -kEnd && number < kEnd ? static_cast<int64_t>(number) : 0;
}

double DoubleCell(const Value& cell) {
  if (const auto* number = std::get_if<double>(&cell)) {
    return *number;
  }
  const auto* integer = std::get_if<int64_t>(&cell);
  return integer == nullptr ? 0 : static_cast<double>(*integer);
}

std::string TextCell(const Value& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? "" : *text;
}

}  // namespace sluice::catalog
