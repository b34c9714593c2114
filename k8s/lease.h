#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

// A place in a Lease object that one of several processes holds at a time. Whether its holder lives
// is judged by our own clock, from when the object was last seen to change, never by the times in
// it. The owner calls Round every now and then (a quarter of the duration). One thread.
class LeaseClaim {
 public:
  struct Place {
    std::string namespace_name;
    std::string name;
    std::string holder;  // who we are: no other process's, ever
    int duration_seconds = 8;
    Owner owner = {};  // with which the Lease goes, where this makes it
  };
  struct View {
    bool ours = false;
    std::string holder;    // empty: nobody
    bool expired = false;  // the holder has not renewed it for its duration
  };

  LeaseClaim(ApiClient& client, Place place);

  // Renews the lease where it is ours, takes it where it is free or has expired. Losing the race
  // for it is no error.
  Result<View> Round(const std::stop_token& stop);
  // Looks only.
  Result<View> Look(const std::stop_token& stop);
  // Whether it is ours still, as far as that can be said without asking: whoever acts as its holder
  // stops when it is not.
  bool Held() const;
  // Hands it over at once, if it is ours.
  Status Release(const std::stop_token& stop);

 private:
  Result<View> Observe(const std::stop_token& stop, std::optional<Object>& lease);
  Result<View> Write(const Object* lease, const std::string& holder, const std::stop_token& stop);

  ApiClient& client_;
  const Place place_;
  std::string seen_version_;
  TimePoint seen_change_{};
  std::optional<TimePoint> held_until_;
};

}  // namespace sluice::k8s
