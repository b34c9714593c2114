#include <utility>

#include "base/mutex.h"
#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_spooled_internal.h"
#include "catalog/sql/sql_text.h"

namespace sluice::catalog {

PostgresDatabase::PostgresDatabase(PostgresAddress address)
    : address_(std::move(address)),
      pool_([this](const std::stop_token& stop) {
        return PostgresConnection::Connect(address_, stop, ConnectionUse::kInternal);
      }),
      users_pool_([this](const std::stop_token& stop) {
        return PostgresConnection::Connect(address_, stop, ConnectionUse::kUserStatements);
      }) {}

void PostgresDatabase::BeginStatement(SessionSettings settings, std::stop_token stop) {
  MutexLock lock(mutex_);
  settings_ = std::move(settings);
  through_session_.clear();
  few_rows_.reset();
  stop_ = std::move(stop);
}

void PostgresDatabase::HearStop(std::stop_token stop) {
  MutexLock lock(mutex_);
  stop_ = std::move(stop);
}

SessionSettings PostgresDatabase::settings() {
  MutexLock lock(mutex_);
  return settings_;
}

std::stop_token PostgresDatabase::stop() {
  MutexLock lock(mutex_);
  return stop_;
}

void PostgresDatabase::EndStatement() {
  BeginStatement({}, {});
  spools_.clear();
  described_.clear();
  if (borrowed_ != nullptr) {
    if (const auto session = borrowed_->Take(); session.ok()) {
      (*session)->EndReading();
    }
  }
  borrowed_.reset();
}

Result<PostgresPool::Lease> PostgresDatabase::TakeForStatement() {
  return through_session().empty() ? TakeAs(settings()) : TakeBorrowed();
}

Result<PostgresPool::Lease> PostgresDatabase::TakeForWriting() {
  if (borrowed_ != nullptr) {
    ASSIGN_OR_RETURN(PostgresPool::Lease session, TakeBorrowed());
    if (session->InTransaction()) {
      return session;
    }
  }
  return TakeAs(settings());
}

Status PostgresDatabase::BorrowSession(const SessionLink& link, const std::stop_token& stop) {
  borrowed_ = std::make_unique<PostgresPool>(
      [link, used = false](
          const std::stop_token& ends) mutable -> Result<std::unique_ptr<PostgresConnection>> {
        if (std::exchange(used, true)) {
          return Internal("the session's connection is in use already");
        }
        return PostgresConnection::Borrow(link, ends);
      });
  return borrowed_->Take(stop).status();
}

Result<PostgresPool::Lease> PostgresDatabase::TakeBorrowed() {
  const std::stop_token stop = this->stop();
  ASSIGN_OR_RETURN(PostgresPool::Lease session, borrowed_->Take(stop));
  session->Serve(stop, &notices_);
  return session;
}

void PostgresDatabase::ReadThroughSession(std::string reason) {
  MutexLock lock(mutex_);
  if (through_session_.empty()) {
    through_session_ = std::move(reason);
    notices_.Add("NOTICE: the rows are read through this session: " + through_session_);
  }
}

void PostgresDatabase::ReadFewThroughSession(int64_t rows) {
  MutexLock lock(mutex_);
  through_session_ = "it has few rows";
  few_rows_ = rows;
}

std::optional<int64_t> PostgresDatabase::few_rows() {
  MutexLock lock(mutex_);
  return few_rows_;
}

std::string PostgresDatabase::through_session() {
  MutexLock lock(mutex_);
  return through_session_;
}

Result<Schema> PostgresDatabase::Describe(PostgresConnection& connection, std::string_view select) {
  const std::string_view trimmed = TrimStatement(select, Dialect::kPostgres);
  const auto known = described_.find(trimmed);
  if (connection.reading() && known != described_.end()) {
    return known->second;
  }
  ASSIGN_OR_RETURN(Schema schema, DescribePostgresSelect(connection, select));
  if (connection.reading()) {
    described_.emplace(trimmed, schema);
  }
  return schema;
}

Result<std::shared_ptr<const SpooledSelect>> PostgresDatabase::Spooled(
    std::string_view select, const DatasetOptions& options) {
  const std::string trimmed(TrimStatement(select, Dialect::kPostgres));
  const auto known = spools_.find(trimmed);
  if (known != spools_.end() &&
      (!options.copies.has_value() || (known->second->copies == options.copies &&
                                       known->second->binary_copies == options.binary_copies))) {
    return known->second;
  }
  ASSIGN_OR_RETURN(const PostgresPool::Lease session, TakeBorrowed());
  ASSIGN_OR_RETURN(Schema schema, Describe(*session, trimmed));
  ASSIGN_OR_RETURN(auto spooled,
                   SpoolPostgresSelect(*session, trimmed, std::move(schema), options));
  spools_[trimmed] = spooled;
  return spooled;
}

Result<PostgresPool::Lease> PostgresDatabase::TakeFor(const DatasetSpec& spec) {
  return TakeAs(SessionOf(spec));
}

Result<PostgresPool::Lease> PostgresDatabase::TakeAs(const SessionSettings& settings) {
  const std::stop_token stop = this->stop();
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, users_pool_.Take(stop));
  connection->Serve(stop, &notices_);
  RETURN_IF_ERROR(ReplaySession(*connection, settings));
  return connection;
}

}  // namespace sluice::catalog
