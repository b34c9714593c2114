#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "k8s/api_client.h"
#include "k8s/lease.h"

namespace sluice::executor {

// Which masters no longer renew their Leases (MasterLease), as a keeper sees them. Whether a Lease
// is renewed is judged by our own clock, from one look to the next: while the API server does not
// answer, no master can renew its Lease. Not thread-safe.
class SilentMasters {
 public:
  struct Running {
    std::string pod;  // after which its Lease is named
    int64_t number = 0;
  };
  SilentMasters(k8s::ApiClient& client, std::string namespace_name)
      : client_(client), namespace_(std::move(namespace_name)) {}

  // `running`: the newest masters, by their jobs' uids. The uids of those that are silent. Asks the
  // API once in MasterLease::kRenewSeconds; in between: none.
  std::vector<std::string> Look(const std::map<std::string, Running>& running,
                                const std::stop_token& stop);
  // Starts over, after a time without observation.
  void Forget() { seen_.clear(); }

 private:
  struct Seen {
    int64_t number = 0;
    std::unique_ptr<k8s::LeaseClaim> claim;
    TimePoint answered{};  // the last time that the API answered
  };

  k8s::ApiClient& client_;
  const std::string namespace_;
  std::map<std::string, Seen> seen_;
  TimePoint looked_{};
};

}  // namespace sluice::executor
