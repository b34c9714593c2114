#pragma once

#include <map>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "k8s/api_client.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

// The Secrets that the pods of a fleet mount: one for all processes of the same role and
// configuration, which stays until its owner is deleted. Not thread-safe.
class SharedSecrets {
 public:
  // The Secret of such a process, as JSON; its name is SecretName(process).
  static Result<std::string> Build(const PodShape& shape, PodIdentity identity,
                                   const elastic::ProcessSpec& process);

  // Creates those of `secrets` (JSON by name) that are not known to exist; returns the answers
  // about those that cannot be created, by name. What existed less than ten seconds ago is taken
  // to exist: whoever deletes a Secret by hand delays the pods that start then, until CreateAgain.
  std::map<std::string, ObjectAnswer> Create(ApiClient& client, const std::string& namespace_name,
                                             const std::map<std::string, std::string>& secrets,
                                             const std::stop_token& stop);

  // Those of pods that somebody else has made.
  void Know(const std::map<std::string, std::string>& secrets);

  // To be called while a pod starts and this is due, which is every ten seconds: creates again
  // those that it knows and that somebody has deleted.
  void CreateAgain(ApiClient& client, const std::string& namespace_name,
                   const std::stop_token& stop);
  bool MayBeMissing(TimePoint now) const;

 private:
  struct Secret {
    std::string json;
    TimePoint seen{};
  };
  std::map<std::string, Secret> secrets_;  // by name
  TimePoint created_again_{};
};

}  // namespace sluice::k8s
