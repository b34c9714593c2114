#include "k8s/training_job_change.h"

#include <optional>

#include "k8s/api_verbs.h"
#include "k8s/training_job.h"

namespace sluice::k8s {
namespace {

// For an object that others keep writing.
constexpr int kMostTries = 10;

}  // namespace

Result<bool> ChangeTrainingJobStatus(ApiClient& client, const std::string& namespace_name,
                                     const std::string& name, const std::string& uid,
                                     const StatusEdit& edit, const std::stop_token& stop) {
  ObjectAnswer answer;
  for (int i = 0; i < kMostTries; ++i) {
    answer = GetObject(client, kTrainingJobs, namespace_name, name, stop);
    if (answer.fault == Fault::kNotFound ||
        (answer.ok() && (answer.object.uid != uid || answer.object.leaving))) {
      return false;
    }
    RETURN_IF_ERROR(answer.status);
    ASSIGN_OR_RETURN(const TrainingJobStatus before, ParseTrainingJobStatus(answer.object.json));
    TrainingJobStatus after = before;
    edit(answer.object, after);
    const std::optional<std::string> patch =
        StatusPatch(before, after, answer.object.resource_version);
    if (!patch) {
      return true;
    }
    answer = PatchObject(client, kTrainingJobs, namespace_name, name, "status", *patch, stop);
    if (answer.fault != Fault::kConflict && answer.fault != Fault::kNotFound) {
      break;
    }
  }
  RETURN_IF_ERROR(answer.status);
  return true;
}

}  // namespace sluice::k8s
