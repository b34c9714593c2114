#pragma once

#include <cstdint>
#include <stop_token>

#include "base/status.h"
#include "executor/pods/kept_job.h"
#include "k8s/api_client.h"
#include "k8s/pod_spec.h"

namespace sluice::executor {

struct MasterCreation {
  k8s::Fault fault = k8s::Fault::kNone;
  Status status;
  bool has_secret = true;  // false: what the master would mount does not exist
};

// Directs the job's Service to master `number`, so that no process is led to an earlier one any
// more, then creates that master's pod. `shape`: where it runs; the job's Secret says what it looks
// like.
MasterCreation CreateMaster(k8s::ApiClient& client, k8s::PodShape shape, const KeptJob::Job& job,
                            int64_t number, const std::stop_token& stop);

}  // namespace sluice::executor
