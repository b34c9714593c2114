#include "executor/pods/abandoned_grants.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "k8s/api_verbs.h"
#include "k8s/controller.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

AbandonedGrants::AbandonedGrants(k8s::ApiClient& client, std::string namespace_name)
    : client_(client),
      namespace_(std::move(namespace_name)),
      controller_(client_, {.namespace_name = std::string(k8s::kControllerNamespace),
                            .name = k8s::kControllerLease,
                            .holder = ""}) {}

Status AbandonedGrants::Look(const std::stop_token& stop) {
  const k8s::Listing jobs = k8s::ListObjects(client_, {k8s::kTrainingJobs, namespace_, ""}, stop);
  RETURN_IF_ERROR(jobs.status);
  std::vector<std::string> suspended;
  for (const k8s::Object& object : jobs.objects) {
    const auto status = k8s::ParseTrainingJobStatus(object.json);
    if (status.ok() && k8s::SuspendedByGrant(*status)) {
      suspended.push_back(object.name);
    }
  }
  if (suspended.empty()) {
    free_since_.reset();
    return OkStatus();
  }
  const Result<k8s::LeaseClaim::View> view = controller_.Look(stop);
  if (view.status().code() == Code::kPermissionDenied) {
    return OkStatus();
  }
  RETURN_IF_ERROR(view.status());
  if (!view->holder.empty() && !view->expired) {
    free_since_.reset();
    return OkStatus();
  }
  const TimePoint now = client_.clock().Now();
  free_since_ = free_since_.value_or(now);
  if (SecondsBetween(*free_since_, now) < kPatienceSeconds) {
    return OkStatus();
  }
  Status status;
  for (const std::string& name : suspended) {
    log::Info("trainingjob={} resumes: the controller that suspended it is gone", name);
    const k8s::ObjectAnswer patched =
        k8s::PatchObject(client_, k8s::kTrainingJobs, namespace_, name, "status",
                         k8s::GrantPatch(std::nullopt), stop);
    if (patched.fault != k8s::Fault::kNotFound) {
      status.Add(patched.status);
    }
  }
  free_since_.reset();
  return status;
}

}  // namespace sluice::executor
