#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

class Session;

// From Begin to its end the session's data source reads and writes for one extended statement, as
// the session would (DataSource::BeginStatement), and hears the session's cancel. What the database
// says meanwhile goes to the sink, which outlives it, as the session does.
class StatementScope {
 public:
  // `statement`: its text; `span`: where an error of the beginning points.
  static Result<std::unique_ptr<StatementScope>> Begin(std::string_view statement, Span span,
                                                       Session& session,
                                                       executor::ResultSink& sink);
  ~StatementScope();
  // What the database has said until now.
  void TellNotices();
  StatementScope(const StatementScope&) = delete;
  StatementScope& operator=(const StatementScope&) = delete;

 private:
  StatementScope(Session& session, executor::ResultSink& sink) : session_(session), sink_(sink) {}
  Session& session_;
  executor::ResultSink& sink_;
};

}  // namespace sluice::server
