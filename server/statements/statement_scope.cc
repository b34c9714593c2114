#include "server/statements/statement_scope.h"

#include <utility>

#include "base/sleep.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

// Of a statement that the source has begun.
Status TakeActingRole(Session& session, Span span) {
  Status taken = session.TakeActingRole();
  if (taken.ok()) {
    return taken;
  }
  session.source().EndStatement();
  return std::move(taken).At(span);
}

}  // namespace

Result<std::unique_ptr<StatementScope>> StatementScope::Begin(std::string_view statement, Span span,
                                                              Session& session,
                                                              executor::ResultSink& sink,
                                                              bool reads_once) {
  const auto now = std::chrono::steady_clock::now();
  const auto& own = session.database_session();
  if (!own.has_value()) {
    Status begun = session.source().BeginStatement(statement, session.stop());
    if (!begun.ok()) {
      return std::move(begun).At(span);
    }
    RETURN_IF_ERROR(TakeActingRole(session, span));
    return std::unique_ptr<StatementScope>(new StatementScope(session, sink, now));
  }
  const auto settings = session.source().BeginStatementIn(
      *own, statement, reads_once, Session::NamesOfDatabaseSettings(), session.stop());
  if (!settings.ok()) {
    Status refused = settings.status();
    return std::move(refused).At(span);
  }
  RETURN_IF_ERROR(TakeActingRole(session, span));
  auto scope = std::unique_ptr<StatementScope>(new StatementScope(session, sink, now));
  RETURN_IF_ERROR(session.TakeDatabaseSettings(*settings));
  return scope;
}

StatementLimit::StatementLimit(Session& session, std::chrono::steady_clock::time_point begun)
    : session_stop_(session.stop(), std::function<void()>([this] { stop_.request_stop(); })) {
  const std::chrono::milliseconds limit = session.source().statement_timeout();
  if (limit.count() > 0) {
    timer_ = std::jthread(
        [this, end = begun + limit](const std::stop_token& self) { StopAt(end, self); });
  }
}

void StatementLimit::StopAt(std::chrono::steady_clock::time_point end,
                            const std::stop_token& self) {
  if (SleepFor(end - std::chrono::steady_clock::now(), self) && !stop_.stop_requested()) {
    timed_out_ = true;
    stop_.request_stop();
  }
}

Status StatementLimit::Outcome(Status ended) const {
  if (!timed_out_ || ended.code() != Code::kCancelled) {
    return ended;
  }
  return Cancelled("canceling statement due to statement timeout");
}

StatementScope::StatementScope(Session& session, executor::ResultSink& sink,
                               std::chrono::steady_clock::time_point begun)
    : session_(session), sink_(sink), limit_(session, begun) {
  session_.source().HearStop(limit_.stop());
  session_.catalog().HearStop(limit_.stop());
}

StatementScope::~StatementScope() {
  ReportNotices();
  session_.source().EndStatement();
  session_.catalog().HearStop({});
}

StoppableStatement::StoppableStatement(Session& session,
                                       std::chrono::steady_clock::time_point begun)
    : session_(session), limit_(session, begun) {
  session_.source().HearStop(limit_.stop());
  session_.catalog().HearStop(limit_.stop());
}

StoppableStatement::~StoppableStatement() {
  session_.source().HearStop({});
  session_.catalog().HearStop({});
}

void StatementScope::ReportNotices() {
  for (const std::string& notice : session_.source().TakeNotices()) {
    sink_.Notice(notice);
  }
}

}  // namespace sluice::server
