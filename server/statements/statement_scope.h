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

// From Begin to its end the session's data source reads and writes for one extended statement, as
// the session would (DataSource::BeginStatement), and hears the session's cancel. What the database
// says meanwhile goes to the sink, which outlives it, as the session does. A session that has
// SET statement_timeout ends it after that time.
class StatementScope {
 public:
  // `statement`: its text; `span`: where an error of the beginning points.
  static Result<std::unique_ptr<StatementScope>> Begin(std::string_view statement, Span span,
                                                       Session& session,
                                                       executor::ResultSink& sink);
  ~StatementScope();
  // What the database has said until now.
  void TellNotices();
  // The session's stop, or the end of the time that the session lets a statement take.
  std::stop_token stop() const { return stop_.get_token(); }
  // `ended`, which says so where the time was over.
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
  std::jthread timer_;  // last: stops before the members it uses go
};

// A statement about models, which reads nothing for the session: whatever it waits for ends with
// the session's stop.
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
