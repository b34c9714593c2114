#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/status.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// When a statement has to end: when the session's stop is requested, and when the session's
// statement_timeout, counted from `begun`, is over.
class StatementLimit {
 public:
  StatementLimit(Session& session, std::chrono::steady_clock::time_point begun);
  std::stop_token stop() const { return stop_.get_token(); }
  // Returns `ended`, or the timeout error if the time was over.
  Status Outcome(Status ended) const;
  StatementLimit(const StatementLimit&) = delete;
  StatementLimit& operator=(const StatementLimit&) = delete;

 private:
  void StopAt(std::chrono::steady_clock::time_point end, const std::stop_token& self);

  std::stop_source stop_;
  std::atomic<bool> timed_out_ = false;
  std::stop_callback<std::function<void()>> session_stop_;
  std::jthread timer_;  // last: stops before the members that it uses are destroyed
};

// From Begin to its end, the session's data source reads and writes for one extended statement as
// the session would (DataSource::BeginStatement), within the statement's limit. Notices from the
// database go to the sink, which outlives it, as the session does.
class StatementScope {
 public:
  // `statement`: its text; `span`: where an error of Begin points. `reads_once`: see
  // DataSource::BeginStatementIn.
  static Result<std::unique_ptr<StatementScope>> Begin(std::string_view statement, Span span,
                                                       Session& session, executor::ResultSink& sink,
                                                       bool reads_once = false);
  ~StatementScope();
  // Passes the database's notices so far to the sink.
  void ReportNotices();
  std::stop_token stop() const { return limit_.stop(); }
  Status Outcome(Status ended) const { return limit_.Outcome(std::move(ended)); }
  StatementScope(const StatementScope&) = delete;
  StatementScope& operator=(const StatementScope&) = delete;

 private:
  StatementScope(Session& session, executor::ResultSink& sink,
                 std::chrono::steady_clock::time_point begun);

  Session& session_;
  executor::ResultSink& sink_;
  const StatementLimit limit_;
};

// A statement about models and jobs, which reads nothing through the session. Its limit ends its
// waits. To be made once the session's role is known (Session::TakeActingRoleOfSession).
class StoppableStatement {
 public:
  StoppableStatement(Session& session, std::chrono::steady_clock::time_point begun);
  ~StoppableStatement();
  std::stop_token stop() const { return limit_.stop(); }
  Status Outcome(Status ended) const { return limit_.Outcome(std::move(ended)); }
  StoppableStatement(const StoppableStatement&) = delete;
  StoppableStatement& operator=(const StoppableStatement&) = delete;

 private:
  Session& session_;
  const StatementLimit limit_;
};

}  // namespace sluice::server
