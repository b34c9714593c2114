#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/lease.h"

namespace sluice::executor {

// Resumes the jobs of a namespace that the cluster's controller has suspended and nobody can resume
// any more, since it was removed: its Lease has had no holder for kPatienceSeconds. A controller
// that comes back just then decides anew. Where the Lease may not be read nothing is done. One
// thread.
class AbandonedGrants {
 public:
  static constexpr int kPatienceSeconds = 45;
  AbandonedGrants(k8s::ApiClient& client, std::string namespace_name);

  // To be called now and then.
  Status Look(const std::stop_token& stop);

 private:
  k8s::ApiClient& client_;
  const std::string namespace_;
  k8s::LeaseClaim controller_;
  std::optional<TimePoint> free_since_;
};

}  // namespace sluice::executor
