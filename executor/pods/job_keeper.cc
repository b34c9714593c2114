#include "executor/pods/job_keeper.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/log.h"
#include "executor/pods/pod_job.h"
#include "k8s/api_verbs.h"
#include "k8s/object.h"
#include "k8s/service_spec.h"

namespace sluice::executor {
namespace {

// Waits are by a clock that may not be the system's.
constexpr auto kKeeperLook = std::chrono::milliseconds(100);
// Handing the Lease back must not hold up the end of the process.
constexpr auto kReleaseTime = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<JobKeeper>> JobKeeper::Start(k8s::ApiClient& client, k8s::PodShape shape,
                                                    std::string holder, GivenUp given_up,
                                                    Troubled troubled,
                                                    const std::stop_token& stop) {
  std::unique_ptr<JobKeeper> keeper(new JobKeeper(client, std::move(shape), std::move(holder),
                                                  std::move(given_up), std::move(troubled)));
  JobKeeper* const self = keeper.get();
  const std::string& where = self->shape_.namespace_name;
  const std::string masters =
      fmt::format("{}={}", k8s::kRoleLabel, elastic::RoleName(elastic::Role::kMaster));
  ASSIGN_OR_RETURN(
      self->masters_,
      k8s::ObjectWatch::Start(
          client, {k8s::kPods, where, masters},
          [self](const k8s::ObjectChange& change) { self->OnMasterPod(change); }, stop));
  ASSIGN_OR_RETURN(self->services_,
                   k8s::ObjectWatch::Start(
                       client, {k8s::kServices, where, std::string(k8s::kJobLabel)},
                       [self](const k8s::ObjectChange& change) { self->OnService(change); }, stop));
  return keeper;
}

void JobKeeper::Begin() {
  thread_ = std::jthread([this](const std::stop_token& ended) { Run(ended); });
  first_pods_thread_ = std::jthread([this](const std::stop_token& ended) { MakeFirstPods(ended); });
}

JobKeeper::JobKeeper(k8s::ApiClient& client, k8s::PodShape shape, std::string holder,
                     GivenUp given_up, Troubled troubled)
    : client_(client),
      shape_(std::move(shape)),
      given_up_(std::move(given_up)),
      troubled_(std::move(troubled)),
      claim_(client, {shape_.namespace_name, kKeeperLease, std::move(holder), kSilenceSeconds, {}}),
      silent_(client, shape_.namespace_name),
      secrets_(client, shape_.namespace_name) {}

void JobKeeper::Rest() {
  for (std::jthread* const thread : {&thread_, &first_pods_thread_}) {
    thread->request_stop();
    if (thread->joinable()) {
      thread->join();
    }
  }
}

JobKeeper::~JobKeeper() {
  Rest();
  masters_.reset();
  services_.reset();
  if (claim_.Held()) {
    const Status released = claim_.ReleaseWithin(kReleaseTime);
    if (!released.ok()) {
      log::Warn("kubernetes lease={} is not handed back: {}", kKeeperLease, released.message());
    }
  }
}

void JobKeeper::Keep(const Job& job, FirstPods first_pods, std::string secret) {
  if (!secret.empty()) {
    secrets_.Know(job.uid, std::move(secret));
  }
  const MutexLock lock(mutex_);
  jobs_[job.uid].Describe(job);
  if (!first_pods.servers.empty() || !first_pods.workers.empty()) {
    first_pods_[job.uid] = std::move(first_pods);
  }
  ++changes_;
  changed_.notify_all();
}

void JobKeeper::GiveUp(const std::string& uid, Status why) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(uid);
  if (found != jobs_.end()) {
    found->second.GiveUp(std::move(why));
    ++changes_;
    changed_.notify_all();
  }
}

void JobKeeper::Forget(const std::string& uid, Status why) {
  GiveUp(uid, std::move(why));
  const MutexLock lock(mutex_);
  if (jobs_.contains(uid)) {
    forgotten_.insert(uid);
  }
}

size_t JobKeeper::jobs() {
  const MutexLock lock(mutex_);
  return jobs_.size();
}

bool JobKeeper::Keeps(const std::string& uid) {
  const MutexLock lock(mutex_);
  return jobs_.contains(uid);
}

bool JobKeeper::leads() {
  const MutexLock lock(mutex_);
  return leads_;
}

std::map<std::string, uint64_t> JobKeeper::watch_restarts() const {
  std::map<std::string, uint64_t> restarts = masters_->restarts();
  for (const auto& [reason, count] : services_->restarts()) {
    restarts[reason] += count;
  }
  return restarts;
}

void JobKeeper::Suspend(const std::string& uid, bool wanted, bool done) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(uid);
  if (found != jobs_.end()) {
    found->second.Suspend(wanted, done);
    ++changes_;
    changed_.notify_all();
  } else if (wanted || done) {
    unknown_jobs_[uid].Suspend(wanted, done);
  }
}

void JobKeeper::OnMasterPod(const k8s::ObjectChange& change) {
  const std::optional<k8s::PodIdentity> identity = k8s::IdentityOf(change.object.labels);
  Result<k8s::PodState> state = k8s::ReadPodState(change.object.json);
  if (!identity.has_value() || !state.ok()) {
    return;
  }
  const MutexLock lock(mutex_);
  const auto kept = jobs_.find(identity->job_uid);
  KeptJob& job = kept != jobs_.end() ? kept->second : unknown_jobs_[identity->job_uid];
  job.OnMasterPod(static_cast<int64_t>(identity->incarnation.value()), change.object.uid,
                  *std::move(state), change.kind == k8s::ObjectChange::Kind::kGone);
  ++changes_;
  changed_.notify_all();
}

void JobKeeper::OnService(const k8s::ObjectChange& change) {
  const std::optional<k8s::JobService> about = k8s::ReadJobService(change.object);
  if (!about.has_value()) {
    log::Warn("kubernetes service is no job's name={}", change.object.name);
    return;
  }
  const std::string& uid = about->job_uid;
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(uid);
  if (change.kind == k8s::ObjectChange::Kind::kGone) {
    unknown_jobs_.erase(uid);
    if (found == jobs_.end()) {
      return;
    }
    if (!leads_ && !found->second.given_up().has_value()) {
      jobs_.erase(found);
    } else {
      found->second.OnServiceGone();
    }
    ++changes_;
    changed_.notify_all();
    return;
  }
  if (change.object.leaving && found == jobs_.end()) {
    return;  // the job has ended
  }
  if (found != jobs_.end() && leads_) {
    return;  // this keeper sets the master to which the Service leads
  }
  if (found == jobs_.end()) {
    jobs_[uid] = std::move(unknown_jobs_[uid]);
    unknown_jobs_.erase(uid);
  }
  KeptJob& kept = jobs_.at(uid);
  kept.Describe({uid, about->name, about->secret, change.object.uid, about->image,
                 about->job_number, about->owner});
  kept.Follow(about->master);
  if (leads_) {
    kept.TakeCharge();
  }
  ++changes_;
  changed_.notify_all();
}

// True: this keeper is the leader.
bool JobKeeper::Lead(const std::stop_token& stop) {
  const TimePoint now = client_.clock().Now();
  if (!claim_.Held() || SecondsBetween(renewed_, now) >= kRenewSeconds) {
    renewed_ = now;
    const auto view = claim_.Round(stop);
    if (!view.ok() && !stop.stop_requested()) {
      log::Warn("kubernetes lease={} is not renewed: {}", kKeeperLease, view.status().message());
    }
  }
  const bool held = claim_.Held();
  const MutexLock lock(mutex_);
  if (held && !leads_) {
    log::Info("keeps the masters of the jobs on pods namespace={} jobs={}", shape_.namespace_name,
              jobs_.size());
    for (auto& [uid, kept] : jobs_) {
      kept.TakeCharge();
    }
    silent_.Forget();
  }
  leads_ = held;
  return held;
}

void JobKeeper::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool leads = Lead(stop);
    LookAtSecrets(leads, stop);
    if (leads) {
      LookAtLeases(stop);
      Act(stop);
      TellTroubles();
    } else {
      Follow(stop);
    }
  }
}

// The loop of a keeper that is not the leader.
void JobKeeper::Follow(const std::stop_token& stop) {
  std::set<std::string> forgotten;
  {
    MutexLock lock(mutex_);
    forgotten.swap(forgotten_);
    if (forgotten.empty()) {
      changed_.wait_for(lock.native(), stop, kKeeperLook, [] { return false; });
    }
  }
  for (const std::string& uid : forgotten) {
    End(uid, stop);
  }
}

void JobKeeper::Act(const std::stop_token& stop) {
  std::vector<std::string> make, clear, end;
  {
    MutexLock lock(mutex_);
    const TimePoint now = client_.clock().Now();
    for (auto& [uid, kept] : jobs_) {
      switch (kept.NeedNow(now)) {
        case KeptJob::Need::kMaster:
          make.push_back(uid);
          break;
        case KeptJob::Need::kClear:
          clear.push_back(uid);
          break;
        case KeptJob::Need::kEnd:
          end.push_back(uid);
          break;
        case KeptJob::Need::kNothing:
          break;
      }
    }
    if (make.empty() && clear.empty() && end.empty()) {
      const auto changed = [this, seen = changes_]() REQUIRES(mutex_) { return changes_ != seen; };
      changed_.wait_for(lock.native(), stop, kKeeperLook, changed);
    }
  }
  for (const std::string& uid : make) {
    MakeMaster(uid, stop);
  }
  for (const std::string& uid : clear) {
    Clear(uid, stop);
  }
  for (const std::string& uid : end) {
    End(uid, stop);
  }
}

void JobKeeper::TellTroubles() {
  std::vector<std::pair<Job, KeptJob::Trouble>> news;
  {
    const MutexLock lock(mutex_);
    std::erase_if(
        told_, [this](const auto& each) REQUIRES(mutex_) { return !jobs_.contains(each.first); });
    for (const auto& [uid, kept] : jobs_) {
      std::optional<KeptJob::Trouble> now = kept.trouble();
      std::optional<KeptJob::Trouble>& told = told_[uid];
      if (now && now != told) {
        news.emplace_back(kept.job(), *now);
      }
      told = std::move(now);
    }
  }
  for (const auto& [job, trouble] : news) {
    troubled_(job, trouble);
  }
}

void JobKeeper::End(const std::string& uid, const std::stop_token& stop) {
  Job job;
  std::optional<Status> given_up;
  std::vector<k8s::Deletion> all;
  {
    const MutexLock lock(mutex_);
    const auto found = jobs_.find(uid);
    if (found == jobs_.end()) {
      return;
    }
    const KeptJob& kept = found->second;
    job = kept.job();
    given_up = kept.given_up();
    for (const auto& [number, pod_uid] : kept.pods()) {
      all.push_back(
          {k8s::kPods, shape_.namespace_name, MasterPodName(job.name, number), pod_uid, 1});
    }
    jobs_.erase(uid);
    unknown_jobs_.erase(uid);
    forgotten_.erase(uid);
  }
  without_secret_.erase(uid);
  if (given_up.has_value()) {
    given_up_(job, *given_up);
  }
  // With the Service goes what it owns.
  all.push_back({k8s::kSecrets, shape_.namespace_name, job.secret, "", 1});
  all.push_back({k8s::kServices, shape_.namespace_name, job.name, job.service_uid, 1});
  for (const k8s::ApiAnswer& answer : k8s::DeleteAll(client_, all, stop)) {
    if (!answer.ok() && !stop.stop_requested()) {
      log::Warn("job={} leaves something behind: {}", job.number, answer.status.message());
    }
  }
}

}  // namespace sluice::executor
