#include <chrono>
#include <utility>
#include <vector>

#include "base/log.h"
#include "executor/pods/job_keeper.h"
#include "executor/pods/master_creation.h"
#include "executor/pods/pod_job.h"
#include "k8s/api_verbs.h"

// What a keeper does for the masters of its jobs.
namespace sluice::executor {
namespace {

// A job's Secret is created after its Service. If it is still missing after this long, the process
// that was creating the job was stopped in between.
constexpr double kSecretSeconds = 20;

}  // namespace

void JobKeeper::LookAtSecrets(bool leads, const std::stop_token& stop) {
  std::map<std::string, KeptSecrets::Job> jobs;
  {
    const MutexLock lock(mutex_);
    for (const auto& [uid, kept] : jobs_) {
      jobs[uid] = {kept.job().secret, kept.starts()};
    }
  }
  secrets_.Look(jobs, stop);
  if (leads) {
    secrets_.RestoreStarting(jobs, stop);
  }
}

void JobKeeper::LookAtLeases(const std::stop_token& stop) {
  std::map<std::string, SilentMasters::Running> running;
  {
    const MutexLock lock(mutex_);
    for (const auto& [uid, kept] : jobs_) {
      if (kept.runs()) {
        running[uid] = {MasterPodName(kept.job().name, kept.newest()), kept.newest()};
      }
    }
  }
  for (const std::string& uid : silent_.Look(running, stop)) {
    const MutexLock lock(mutex_);
    const auto kept = jobs_.find(uid);
    if (kept != jobs_.end()) {
      kept->second.OnSilent(running.at(uid).number, client_.clock().Now());
    }
  }
}

void JobKeeper::MakeMaster(const std::string& uid, const std::stop_token& stop) {
  Job job;
  int64_t number = 0;
  k8s::PodShape shape = shape_;
  {
    const MutexLock lock(mutex_);
    const KeptJob& kept = jobs_.at(uid);
    job = kept.job();
    number = kept.newest();
    shape.avoided_nodes = kept.avoided(client_.clock().Now());
  }
  const MasterCreation made = CreateMaster(client_, std::move(shape), job, number, stop);
  const bool restored = !made.has_secret && secrets_.Restore(uid, stop);
  const TimePoint now = client_.clock().Now();
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(uid);
  if (found == jobs_.end() || found->second.newest() != number || stop.stop_requested()) {
    return;
  }
  KeptJob& kept = found->second;
  if (made.status.ok()) {
    without_secret_.erase(uid);
    kept.OnMade(now);
    return;
  }
  if (restored) {
    log::Warn("job={} its Secret was deleted and is made again", job.number);
    kept.OnNotMade(now);
    return;
  }
  if (!made.has_secret) {
    const TimePoint since = without_secret_.emplace(uid, now).first->second;
    if (SecondsBetween(since, now) < kSecretSeconds) {
      kept.OnNotMade(now + std::chrono::milliseconds(200));
      return;
    }
  }
  kept.OnRefused(made.fault, made.status, now);
}

void JobKeeper::Clear(const std::string& uid, const std::stop_token& stop) {
  std::vector<k8s::Deletion> deletions;
  {
    const MutexLock lock(mutex_);
    KeptJob& kept = jobs_.at(uid);
    for (const auto& [number, pod_uid] : kept.pods()) {
      deletions.push_back(
          {k8s::kPods, shape_.namespace_name, MasterPodName(kept.job().name, number), pod_uid, 1});
    }
    kept.OnClearing(client_.clock().Now() +
                    std::chrono::seconds(1));  // the watch reports their deletion
  }
  for (const k8s::ApiAnswer& answer : k8s::DeleteAll(client_, deletions, stop)) {
    if (!answer.ok() && !stop.stop_requested()) {
      log::Warn("kubernetes a suspended job keeps a master's pod: {}", answer.status.message());
    }
  }
}

}  // namespace sluice::executor
