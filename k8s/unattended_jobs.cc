#include "k8s/unattended_jobs.h"

#include <algorithm>
#include <chrono>

#include "k8s/pod_labels.h"
#include "k8s/training_job.h"

namespace sluice::k8s {
namespace {

TimePoint DueAfter(TimePoint now) {
  return now + std::chrono::duration_cast<TimePoint>(
                   std::chrono::duration<double>(UnattendedJobs::kPatienceSeconds));
}

bool IsTold(const TrainingJobStatus& status) {
  return std::any_of(status.conditions.begin(), status.conditions.end(),
                     [](const Condition& each) { return each.reason == kNoGateway; });
}

}  // namespace

bool IsAttended(const Object& training_job, const TrainingJobStatus& status) {
  return training_job.labels.contains(std::string(kJobLabel)) || !ClaimOf(training_job).empty() ||
         status.observed_generation != 0 || status.job || status.master_number > 0 ||
         std::any_of(status.conditions.begin(), status.conditions.end(),
                     [](const Condition& each) { return each.reason != kNoGateway; });
}

void UnattendedJobs::OnTrainingJob(const ObjectChange& change, TimePoint now) {
  const Object& object = change.object;
  const Result<TrainingJobStatus> status = ParseTrainingJobStatus(object.json);
  if (change.kind == ObjectChange::Kind::kGone || object.leaving || !status.ok() ||
      IsAttended(object, *status) || IsTold(*status)) {
    known_.erase(object.uid);
    return;
  }
  known_.try_emplace(object.uid,
                     Known{{object.namespace_name, object.name, object.uid}, DueAfter(now)});
}

std::vector<UnattendedJobs::Job> UnattendedJobs::TakeDue(TimePoint now, size_t most) {
  std::vector<Job> due;
  for (auto& [uid, known] : known_) {
    if (due.size() < most && known.due <= now) {
      due.push_back(known.job);
      known.due = DueAfter(now);
    }
  }
  return due;
}

}  // namespace sluice::k8s
