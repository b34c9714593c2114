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

// Passes a gateway's updates, which are not trusted, to a sink, and keeps what the gateway asks the
// session to remember. One thread.
class GatewayUpdates {
 public:
  // Fails with the gateway's error, with the sink's, or when an update does not fit the one before.
  Status Apply(const v1::RunUpdate& update, executor::ResultSink& sink);
  void EndScript() {
    schema_.reset();
    outliving_job_.reset();
  }
  // The running statement is this job, which continues when the call ends.
  const std::optional<int64_t>& outliving_job() const { return outliving_job_; }
  // SET and PREPARE statements to send along with the next script.
  const std::vector<std::string>& settings() const { return settings_; }

 private:
  Status Remember(const std::string& statement);

  std::vector<std::string> settings_;
  std::optional<Schema> schema_;  // of the running statement, once it is known
  std::optional<int64_t> outliving_job_;
};

}  // namespace sluice::server
