#include "executor/pods/kept_secrets.h"

#include "base/log.h"
#include "executor/local/job_process.pb.h"
#include "executor/pods/job_objects.h"
#include "executor/pods/pod_job.pb.h"
#include "k8s/api_verbs.h"

namespace sluice::executor {
namespace {

// Between two attempts to read a Secret that may not have been created yet.
constexpr double kReadSeconds = 2;
// A kubelet tries to mount a Secret again about as often.
constexpr double kRestoreSeconds = 10;

}  // namespace

void KeptSecrets::Know(const std::string& uid, std::string json) {
  const MutexLock lock(mutex_);
  known_[uid] = std::move(json);
}

void KeptSecrets::Look(const std::map<std::string, Job>& jobs, const std::stop_token& stop) {
  std::map<std::string, std::string> unknown;
  {
    const MutexLock lock(mutex_);
    std::erase_if(known_, [&](const auto& each) { return !jobs.contains(each.first); });
    for (const auto& [uid, job] : jobs) {
      if (!known_.contains(uid) && !job.secret.empty()) {
        unknown.emplace(uid, job.secret);
      }
    }
  }
  std::erase_if(asked_, [&](const auto& each) { return !unknown.contains(each.first); });
  for (const auto& [uid, name] : unknown) {
    const TimePoint now = client_.clock().Now();
    const auto asked = asked_.find(uid);
    if (asked != asked_.end() && SecondsBetween(asked->second, now) < kReadSeconds) {
      continue;
    }
    asked_[uid] = now;
    PodJobConfig config;
    JobSecrets secrets;
    if (ReadJobSecret(client_, namespace_, name, config, secrets, stop).ok()) {
      if (Result<std::string> json = MasterSecretJson(namespace_, name, config, secrets);
          json.ok()) {
        Know(uid, *std::move(json));
      }
    }
  }
}

void KeptSecrets::RestoreStarting(const std::map<std::string, Job>& jobs,
                                  const std::stop_token& stop) {
  const TimePoint now = client_.clock().Now();
  if (SecondsBetween(restored_, now) < kRestoreSeconds) {
    return;
  }
  restored_ = now;
  for (const auto& [uid, job] : jobs) {
    if (job.starts) {
      Restore(uid, stop);
    }
  }
}

bool KeptSecrets::Restore(const std::string& uid, const std::stop_token& stop) {
  std::string json;
  {
    const MutexLock lock(mutex_);
    const auto known = known_.find(uid);
    if (known == known_.end()) {
      return false;
    }
    json = known->second;
  }
  const k8s::ObjectAnswer made =
      k8s::CreateMissing(client_, {{k8s::kSecrets, namespace_, json}}, stop).at(0);
  if (!made.ok() && !stop.stop_requested()) {
    log::Warn("kubernetes the Secret of a job's master may be missing error={}",
              made.status.message());
  }
  return made.ok();
}

}  // namespace sluice::executor
