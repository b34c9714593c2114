#include "server/statements/statement_scope.h"

#include "catalog/data_source.h"
#include "executor/executor.h"
#include "server/statements/session.h"

namespace sluice::server {

Result<std::unique_ptr<StatementScope>> StatementScope::Begin(std::string_view statement, Span span,
                                                              Session& session,
                                                              executor::ResultSink& sink) {
  Status begun = session.source().BeginStatement(statement, session.stop());
  if (!begun.ok()) {
    return std::move(begun).At(span);
  }
  return std::unique_ptr<StatementScope>(new StatementScope(session, sink));
}

StatementScope::~StatementScope() {
  TellNotices();
  session_.source().EndStatement();
}

void StatementScope::TellNotices() {
  for (const std::string& notice : session_.source().TakeNotices()) {
    sink_.Notice(notice);
  }
}

}  // namespace sluice::server
