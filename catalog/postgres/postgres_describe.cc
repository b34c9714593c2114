#include <string>
#include <utility>

#include "catalog/postgres/postgres_connection_internal.h"

// What a connection asks about a select before it runs: its columns, and the server's plan.
namespace sluice::catalog {
namespace {
constexpr std::string_view kExplain = "EXPLAIN (FORMAT JSON, VERBOSE) ";
}  // namespace

Result<PostgresResult> PostgresConnection::DescribeColumns(std::string_view sql) {
  if (const auto known = described_.find(sql); known != described_.end()) {
    return PostgresResult(PQcopyResult(known->second.get(), PG_COPYRES_ATTRS));
  }
  // The planner does not read it yet, but it may have to wait for a lock.
  const std::string text(sql);
  ASSIGN_OR_RETURN(
      std::vector<PostgresResult> answers,
      AskTogether({[&] { return PQsendPrepare(handle_, "", text.c_str(), 0, nullptr); },
                   [&] { return PQsendDescribePrepared(handle_, ""); }},
                  text));
  KeepDescription(sql, *answers.back());
  return std::move(answers.back());
}

Result<PostgresResult> PostgresConnection::Explain(std::string_view select, bool describe) {
  const std::string text(select);
  const std::string explain = std::string(kExplain) + text;
  std::vector<std::function<int()>> requests = {[&] {
    return PQsendQueryParams(handle_, explain.c_str(), 0, nullptr, nullptr, nullptr, nullptr, 0);
  }};
  if (describe) {
    requests.emplace_back([&] { return PQsendPrepare(handle_, "", text.c_str(), 0, nullptr); });
    requests.emplace_back([&] { return PQsendDescribePrepared(handle_, ""); });
  }
  ASSIGN_OR_RETURN(std::vector<PostgresResult> answers,
                   AskTogether(requests, explain, kExplain.size()));
  if (describe) {
    KeepDescription(select, *answers.back());
  }
  return std::move(answers.front());
}

void PostgresConnection::KeepDescription(std::string_view sql, const PGresult& described) {
  if (reading_ && PQnparams(&described) == 0) {  // a copy has no parameters
    described_.emplace(sql, PQcopyResult(&described, PG_COPYRES_ATTRS));
  }
}

Result<std::vector<PostgresResult>> PostgresConnection::AskTogether(
    const std::vector<std::function<int()>>& requests, std::string_view sql, size_t user_text) {
  if (sql.find('\0') != std::string_view::npos) {
    return SyntaxError("a statement cannot hold a NULL byte");
  }
  RETURN_IF_ERROR(CheckStop());
  if (PQenterPipelineMode(handle_) == 0) {
    return ErrorOf(nullptr, sql, user_text);
  }
  bool sent = true;
  for (const std::function<int()>& request : requests) {
    sent = sent && request() != 0;
  }
  sent = PQpipelineSync(handle_) != 0 && sent;
  std::vector<PostgresResult> answers;
  Status status = sent ? OkStatus() : ErrorOf(nullptr, sql, user_text);
  // A null ends each answer; what is behind an error is not done.
  for (size_t ended = 0; ended <= requests.size() && PQstatus(handle_) == CONNECTION_OK;) {
    PostgresResult answer = Await();
    const ExecStatusType code = PQresultStatus(answer.get());
    if (answer == nullptr) {
      ++ended;
    } else if (code == PGRES_PIPELINE_SYNC) {
      break;
    } else if (code == PGRES_TUPLES_OK || code == PGRES_COMMAND_OK) {
      answers.push_back(std::move(answer));
    } else if (status.ok()) {
      status = ErrorOf(answer.get(), sql, user_text);
    }
  }
  if (PQexitPipelineMode(handle_) == 0 && PQstatus(handle_) == CONNECTION_OK) {
    GiveUp();
  }
  RETURN_IF_ERROR(status);
  if (answers.size() < requests.size()) {
    return ConnectionLost();
  }
  return answers;
}

}  // namespace sluice::catalog
