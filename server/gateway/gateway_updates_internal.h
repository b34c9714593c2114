#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "server/gateway/gateway.pb.h"

namespace sluice::executor {
class ResultSink;
}

namespace sluice::server {

// What a gateway sends, which may be anything, into a sink; and what it asks a session to remember.
// One thread.
class GatewayUpdates {
 public:
  // Fails with what the gateway says went wrong, when it sends what does not fit, and with what the
  // sink says.
  Status Apply(const v1::RunUpdate& update, executor::ResultSink& sink);
  void EndScript() {
    schema_.reset();
    outliving_job_.reset();
  }
  // The running statement is this job, which does not end with the call.
  const std::optional<int64_t>& outliving_job() const { return outliving_job_; }
  // SET statements, to be sent along with the next script.
  const std::vector<std::string>& settings() const { return settings_; }

 private:
  std::vector<std::string> settings_;
  std::optional<Schema> schema_;  // of the running statement, once it is known
  std::optional<int64_t> outliving_job_;
};

}  // namespace sluice::server
