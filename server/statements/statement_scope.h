#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string_view>
#include <thread>

#include "base/status.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// From Begin to its end, the session's data source reads and writes for one extended statement as
// the session would (DataSource::BeginStatement), and reacts to the session's cancel. Notices from
// the database go to the sink, which outlives it, as the session does. If the session has SET
// statement_timeout, the statement ends after that time.
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
  // Requested by the session's stop, or when the session's statement_timeout is over.
  std::stop_token stop() const { return stop_.get_token(); }
  // Returns `ended`, or the timeout error if the time was over.
  Status Outcome(Status ended) const;
  StatementScope(const StatementScope&) = delete;
  StatementScope& operator=(const StatementScope&) = delete;

 private:
  StatementScope(Session& session, executor::ResultSink& sink,
                 std::chrono::steady_clock::time_point begun);
  void StopAt(std::chrono::steady_clock::time_point end, const std::stop_token& self);

  Session& session_;
  executor::ResultSink& sink_;
  std::stop_source stop_;
  std::atomic<bool> timed_out_ = false;
  std::stop_callback<std::function<void()>> session_stop_;
  std::jthread timer_;  // last: stops before the members that it uses are destroyed
};

// A statement about models, which reads nothing through the session: the session's stop ends its
// waits.
class StoppableStatement {
 public:
  explicit StoppableStatement(Session& session);
  ~StoppableStatement();
  StoppableStatement(const StoppableStatement&) = delete;
  StoppableStatement& operator=(const StoppableStatement&) = delete;

 private:
  Session& session_;
};

}  // namespace sluice::server
