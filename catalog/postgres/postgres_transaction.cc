#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "catalog/postgres/postgres_connection_internal.h"

// The transactions of a connection, which may be a borrowed session's.
namespace sluice::catalog {

bool PostgresConnection::InTransaction() const {
  const PGTransactionStatusType status = PQtransactionStatus(handle_);
  return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

bool PostgresConnection::TransactionFailed() const {
  return failed_on_wire_ || PQtransactionStatus(handle_) == PQTRANS_INERROR;
}

Result<PostgresResult> PostgresConnection::BeginReading(const std::string& sql) {
  RETURN_IF_ERROR(CheckStop());
  own_text_ = true;
  Result<PostgresResult> asked = LastResult(PQsendQuery(handle_, sql.c_str()) != 0, "", 0);
  own_text_ = false;
  reading_ = own_transaction_ = InTransaction();
  if (!asked.ok()) {
    EndReading();
  }
  return asked;
}

void PostgresConnection::EndReading() {
  described_.clear();
  if (std::exchange(reading_, false)) {
    Rollback();
  }
}

Status PostgresConnection::Begin(const std::string& sql) {
  if (reading_ && !TransactionFailed()) {
    return OkStatus();
  }
  EndReading();
  if (!borrowed_ || !InTransaction()) {
    own_transaction_ = true;
    return Run(sql);
  }
  // Settings that may be SET LOCAL below, and would last until the transaction's end.
  constexpr std::string_view kSettings =
      "SELECT pg_catalog.string_agg(pg_catalog.format('pg_catalog.set_config(%L, %L, true)', n,"
      " pg_catalog.current_setting(n)), ', ') FROM (VALUES ('role'), ('session_authorization'),"
      " ('search_path'), ('DateStyle'), ('IntervalStyle'), ('extra_float_digits'),"
      " ('bytea_output'), ('xmloption'), ('array_nulls'), ('lock_timeout'),"
      " ('statement_timeout')) AS v(n)";
  ASSIGN_OR_RETURN(const PostgresResult settings, Ask(kSettings));
  take_back_ = "SELECT " + std::string(PostgresText(settings.get(), 0, 0));
  const size_t end = std::min(sql.find(';'), sql.size());
  const bool read_only = sql.find("READ ONLY") < end;
  nested_ = true;
  return Run(fmt::format("SAVEPOINT sluice_statement{}{}",
                         read_only ? "; SET LOCAL transaction_read_only = on" : "",
                         std::string_view(sql).substr(end)));
}

Status PostgresConnection::Commit() {
  if (!nested_) {
    own_transaction_ = false;
    return Run("COMMIT");
  }
  RETURN_IF_ERROR(Run(take_back_ + "; RELEASE SAVEPOINT sluice_statement"));
  nested_ = false;
  return OkStatus();
}

void PostgresConnection::Rollback() {
  if (reading_) {
    if (TransactionFailed()) {
      EndReading();
    }
    return;
  }
  failed_on_wire_ = false;
  if (!InTransaction() || (borrowed_ && !nested_ && !own_transaction_)) {
    return;
  }
  const std::stop_token stop = std::exchange(stop_, std::stop_token());
  const Status ended = Run(nested_ ? "ROLLBACK TO SAVEPOINT sluice_statement;"
                                     " RELEASE SAVEPOINT sluice_statement"
                                   : "ROLLBACK");
  nested_ = false;
  own_transaction_ = false;
  stop_ = stop;
  if (!ended.ok()) {
    log::Debug("rollback failed error=\"{}\"", ended.message());
  }
}

}  // namespace sluice::catalog
