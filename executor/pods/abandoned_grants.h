#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/lease.h"

namespace sluice::executor {

// Resumes the jobs of a namespace that a controller has suspended and nobody can resume any more,
// since it was removed: its Lease, in the same namespace, has had no holder for kPatienceSeconds.
// Only the holder of that Lease writes grants: this takes it while it removes them. Where the
// controller's Lease is in another namespace, nothing is done. One thread.
class AbandonedGrants {
 public:
  static constexpr int kPatienceSeconds = 45;
  // `holder`: unique among all processes ever.
  AbandonedGrants(k8s::ApiClient& client, std::string namespace_name, std::string holder);

  // To be called now and then.
  Status Look(const std::stop_token& stop);

 private:
  k8s::ApiClient& client_;
  const std::string namespace_;
  k8s::LeaseClaim claim_;
  std::optional<TimePoint> free_since_;
};

}  // namespace sluice::executor
