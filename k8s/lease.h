#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

// A position, recorded in a Lease object, that one of several processes holds at a time. Whether
// its holder is alive is judged by our own clock, from when the object was last seen to change,
// never by the times in it. The owner calls Round regularly (every quarter of the duration). One
// thread.
class LeaseClaim {
 public:
  struct Place {
    std::string namespace_name;
    std::string name;
    std::string holder;  // our identity, unique among all processes ever
    int duration_seconds = 8;
    Owner owner = {};  // with which the Lease is deleted, if this object creates it
  };
  struct View {
    bool ours = false;
    std::string holder;    // empty: free
    bool expired = false;  // the holder has not renewed it for its duration
  };

  LeaseClaim(ApiClient& client, Place place);

  // Renews the lease if it is ours, takes it if it is free or has expired. Losing the race for it
  // is no error.
  Result<View> Round(const std::stop_token& stop);
  // Only looks.
  Result<View> Look(const std::stop_token& stop);
  // Whether it is still ours, as far as that is known without a call: the holder must stop acting
  // as such when it is not.
  bool Held() const;
  // Hands it over at once, if it is ours.
  Status Release(const std::stop_token& stop);
  // The same for the end of a process, which it must not hold up: given up after this time.
  Status ReleaseWithin(std::chrono::milliseconds time);

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
