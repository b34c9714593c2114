#include "tests/k8s/garbage_collection.h"

#include <set>
#include <string>

#include "k8s/api_verbs.h"
#include "k8s/json_internal.h"
#include "k8s/training_job.h"

namespace sluice::k8s {

using rapidjson::Document;
using rapidjson::Value;

void CollectGarbage(ApiClient& client, const std::vector<Object>& pods,
                    const std::vector<Object>& services, const std::stop_token& stop) {
  std::set<std::string> owners;
  for (const Object& service : services) {
    owners.insert(service.uid);
  }
  const auto add_jobs = [&] {
    const Listing jobs = ListObjects(client, {kTrainingJobs, "", ""}, stop);
    for (const Object& job : jobs.objects) {
      owners.insert(job.uid);
    }
    return jobs.ok();
  };
  if (!add_jobs()) {
    return;
  }
  std::vector<Deletion> deletions;
  const auto look = [&](const Resource& resource, const std::vector<Object>& objects) {
    for (const Object& object : objects) {
      const Document json = ParseJsonObject(object.json, "an object").value();
      for (const Value& owner : ArrayIn(json, {"metadata", "ownerReferences"})) {
        if (!owners.contains(std::string(TextIn(owner, {"uid"}))) && !object.leaving) {
          deletions.push_back({resource, object.namespace_name, object.name, object.uid, 1});
        }
      }
    }
  };
  look(kPods, pods);
  look(kServices, services);
  const Listing secrets = ListObjects(client, {kSecrets, "", ""}, stop);
  // The pod is newer than the list of Services: if its owner is not in it, list again.
  const Listing again = ListObjects(client, {kServices, "", ""}, stop);
  for (const Object& service : again.objects) {
    owners.insert(service.uid);
  }
  if (!add_jobs()) {
    return;
  }
  look(kSecrets, secrets.objects);
  DeleteAll(client, deletions, stop);
}

}  // namespace sluice::k8s
