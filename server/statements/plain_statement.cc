#include "server/statements/plain_statement.h"

#include "catalog/data_source.h"
#include "executor/executor.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

class SinkReceiver final : public catalog::RowReceiver {
 public:
  explicit SinkReceiver(executor::ResultSink& sink) : sink_(sink) {}
  Status Header(const Schema& schema) override { return sink_.Header(schema); }
  Status Rows(const RowBatch& batch) override { return sink_.Rows(batch); }
  void Notice(const std::string& message) override { sink_.Notice(message); }

 private:
  executor::ResultSink& sink_;
};

}  // namespace

Status RunPlain(const parser::PlainStatement& statement, Session& session,
                executor::ResultSink& sink) {
  SinkReceiver receiver(sink);
  const auto executed = session.source().Execute(statement.text, &receiver, session.stop());
  if (!executed.ok()) {
    // SQLite's errors often have no place.
    return executed.status().Within(statement.span);
  }
  sink.Done(executed->tag);
  return OkStatus();
}

}  // namespace sluice::server
