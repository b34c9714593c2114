#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "executor/executor.h"
#include "parser/ast.h"
#include "server/statements/audit.h"
#include "server/statements/statement_use.h"

namespace sluice::server {

class Session;

// Puts the statements of one script on record, and counts what they send on its way to the client.
// Belongs to one thread.
class AuditedScript final : public executor::ResultSink {
 public:
  AuditedScript(Audit& audit, AuditedClient client, executor::ResultSink& sink)
      : audit_(audit), client_(std::move(client)), sink_(sink) {}

  // 58030: it must not run.
  Status Begins(std::string_view sql, bool plain, Session& session);
  void Ends(const Status& outcome);
  // The script is over. Ends what has not ended; a script that began nothing was refused.
  void Over(const Status& outcome);
  bool has_begun() const { return begun_; }

  std::vector<bool> InBinary(const Schema& schema) override { return sink_.InBinary(schema); }
  Status Header(const Schema& schema) override;
  Status Rows(const RowBatch& batch) override;
  void Notice(const std::string& message) override { sink_.Notice(message); }
  void Progress(const elastic::Progress& progress) override { sink_.Progress(progress); }
  Status Copied(std::string_view text) override { return sink_.Copied(text); }
  void Done(const std::string& tag) override;
  void OutlivesClient(int64_t job) override { sink_.OutlivesClient(job); }

 private:
  Audit& audit_;
  const AuditedClient client_;
  executor::ResultSink& sink_;
  bool begun_ = false;
  // The statement that runs.
  std::optional<int64_t> running_;
  bool plain_ = false;
  catalog::Dialect dialect_ = catalog::Dialect::kPostgres;
  std::string session_role_;
  TimePoint since_{0};
  StatementUse use_;
  const SteadyClock clock_;
};

}  // namespace sluice::server
