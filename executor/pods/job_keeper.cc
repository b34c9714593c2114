#include "executor/pods/job_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "base/log.h"
#include "executor/pods/master_lease.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/requested_pods.h"
#include "k8s/api_verbs.h"
#include "k8s/object.h"
#include "k8s/secret_content.h"
#include "k8s/service_spec.h"

namespace sluice::executor {
namespace {

// A master that was lost sooner has not been of use; so many of them in a row are no accident.
constexpr double kOfUseSeconds = 20;
constexpr int kMostLost = 8;
constexpr double kFirstRestartSeconds = 0.1, kLongestWaitSeconds = 10;
// Waits are by a clock that may not be the system's.
constexpr auto kKeeperLook = std::chrono::milliseconds(100);

}  // namespace

Result<std::unique_ptr<JobKeeper>> JobKeeper::Start(k8s::ApiClient& client, k8s::PodShape shape,
                                                    GivenUp given_up, const std::stop_token& stop) {
  std::unique_ptr<JobKeeper> keeper(new JobKeeper(client, std::move(shape), std::move(given_up)));
  JobKeeper* const self = keeper.get();
  k8s::Selection masters{
      k8s::kPods, self->shape_.namespace_name,
      fmt::format("{}={}", k8s::kRoleLabel, elastic::RoleName(elastic::Role::kMaster))};
  ASSIGN_OR_RETURN(self->watch_,
                   k8s::ObjectWatch::Start(
                       client, std::move(masters),
                       [self](const k8s::ObjectChange& change) { self->OnChange(change); }, stop));
  RETURN_IF_ERROR(self->FindJobs(stop));
  return keeper;
}

void JobKeeper::Begin() {
  thread_ = std::jthread([this](const std::stop_token& ended) { Run(ended); });
}

JobKeeper::JobKeeper(k8s::ApiClient& client, k8s::PodShape shape, GivenUp given_up)
    : client_(client), shape_(std::move(shape)), given_up_(std::move(given_up)) {}

JobKeeper::~JobKeeper() {
  thread_.request_stop();
  watch_.reset();
}

std::string JobKeeper::ServiceJson(const Job& job, const std::string& namespace_name,
                                   int64_t master) {
  return k8s::BuildJobService({namespace_name, job.name, job.uid, job.secret, job.image, job.number,
                               master, kMasterPort, job.owner});
}

Status JobKeeper::FindJobs(const std::stop_token& stop) {
  const k8s::Listing services = k8s::ListObjects(
      client_, {k8s::kServices, shape_.namespace_name, std::string(k8s::kJobLabel)}, stop);
  RETURN_IF_ERROR(services.status);
  for (const k8s::Object& service : services.objects) {
    const std::optional<k8s::JobService> about = k8s::ReadJobService(service);
    if (!about.has_value()) {
      log::Warn("kubernetes service is no job's name={}", service.name);
      continue;
    }
    const MutexLock lock(mutex_);
    Kept& kept = jobs_[about->job_uid];
    kept.job = {about->job_uid, about->name,       about->secret, service.uid,
                about->image,   about->job_number, about->owner};
    kept.masters = std::move(strangers_[about->job_uid]);
    kept.newest = about->master;
    const auto newest = kept.masters.find(kept.newest);
    kept.made = newest != kept.masters.end();
    if (!kept.made && kept.newest > 0) {
      // It was there once, or was about to be made; who knows whether it still runs somewhere.
      ++kept.newest;
    }
  }
  return OkStatus();
}

void JobKeeper::Keep(const Job& job) {
  const MutexLock lock(mutex_);
  Kept& kept = jobs_[job.uid];
  kept.job = job;
  ++changes_;
  changed_.notify_all();
}

void JobKeeper::GiveUp(const std::string& uid, Status why) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(uid);
  if (found != jobs_.end() && !found->second.hopeless.has_value()) {
    found->second.hopeless = std::move(why);
    ++changes_;
    changed_.notify_all();
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

void JobKeeper::Suspend(const std::string& uid, bool wanted, bool done) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(uid);
  if (found != jobs_.end()) {
    found->second.suspend = wanted;
    found->second.suspended = done;
    ++changes_;
    changed_.notify_all();
  }
}

void JobKeeper::OnChange(const k8s::ObjectChange& change) {
  const std::optional<k8s::PodIdentity> identity = k8s::IdentityOf(change.object.labels);
  Result<k8s::PodState> state = k8s::ReadPodState(change.object.json);
  if (!identity.has_value() || !state.ok()) {
    return;
  }
  const auto number = static_cast<int64_t>(identity->incarnation.value());
  const MutexLock lock(mutex_);
  const auto kept = jobs_.find(identity->job_uid);
  Master& master =
      kept != jobs_.end() ? kept->second.masters[number] : strangers_[identity->job_uid][number];
  master.pod_uid = change.object.uid;
  // What it ended with is not forgotten when it goes.
  if (master.state.phase != k8s::PodState::Phase::kEnded) {
    master.state = *std::move(state);
  }
  master.gone = change.kind == k8s::ObjectChange::Kind::kGone;
  ++changes_;
  changed_.notify_all();
}

// Pods of masters that have ended go, too.
JobKeeper::Need JobKeeper::NeedOfSuspended(const Kept& kept) {
  const bool left = std::any_of(kept.masters.begin(), kept.masters.end(),
                                [](const auto& master) { return !master.second.gone; });
  return left ? Need::kClear : Need::kNothing;
}

JobKeeper::Need JobKeeper::NeedOf(Kept& kept, TimePoint now) {
  for (const auto& [number, master] : kept.masters) {
    if (master.state.phase == k8s::PodState::Phase::kEnded && master.state.exit_code == 0) {
      return Need::kEnd;
    }
  }
  if (kept.hopeless.has_value()) {
    return Need::kEnd;
  }
  const auto found = kept.masters.find(kept.newest);
  const bool there = found != kept.masters.end();
  const bool has_suspended = there && found->second.state.phase == k8s::PodState::Phase::kEnded &&
                             found->second.state.exit_code == kSuspendedExit;
  const bool has_none = there ? found->second.gone : !kept.made;
  if (kept.suspend && (has_suspended || (kept.suspended && has_none))) {
    return now >= kept.due ? NeedOfSuspended(kept) : Need::kNothing;
  }
  if (kept.made && has_suspended) {
    kept.made = false;
    kept.lost = 0;
    ++kept.newest;
    return Need::kMaster;
  }
  if (kept.made && found == kept.masters.end()) {
    return Need::kNothing;  // the watch has not seen it yet
  }
  if (kept.made) {
    const Master& master = found->second;
    const bool ended = master.state.phase == k8s::PodState::Phase::kEnded;
    if (!ended && !master.gone && !master.state.leaving && !kept.silent) {
      return Need::kNothing;
    }
    if (ended && master.state.exit_class == elastic::ExitClass::kConfiguration) {
      kept.hopeless = Internal(master.state.last_words);
      return Need::kEnd;
    }
    kept.lost = SecondsBetween(kept.made_at, now) < kOfUseSeconds ? kept.lost + 1 : 1;
    if (kept.lost > kMostLost) {
      kept.hopeless = Internal(
          fmt::format("{} masters were lost one after the other; the last one ended with exit code "
                      "{}: {}",
                      kept.lost, master.state.exit_code, master.state.last_words));
      return Need::kEnd;
    }
    log::Warn("job={} master={} is lost: {}", kept.job.number, kept.newest,
              ended         ? fmt::format("exit code {}", master.state.exit_code)
              : master.gone ? "its pod is gone"
              : kept.silent ? "it has not renewed its lease"
                            : "its pod is leaving");
    kept.silent = false;
    const double wait = kept.lost == 1 ? 0
                                       : std::min(kLongestWaitSeconds,
                                                  std::ldexp(kFirstRestartSeconds, kept.lost - 2));
    kept.due = now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(wait));
    kept.made = false;
    ++kept.newest;
  } else if (kept.newest == 0) {
    kept.newest = 1;
  }
  return now >= kept.due ? Need::kMaster : Need::kNothing;
}

// Whether a Lease is renewed is judged by our own clock, from one look to the next: while the API
// server does not answer, nobody can renew it.
void JobKeeper::LookAtLeases(const std::stop_token& stop) {
  const TimePoint now = client_.clock().Now();
  if (SecondsBetween(looked_, now) < MasterLease::kRenewSeconds) {
    return;
  }
  looked_ = now;
  std::map<std::string, std::pair<std::string, int64_t>> running;  // name and number, by uid
  {
    const MutexLock lock(mutex_);
    for (const auto& [uid, kept] : jobs_) {
      const auto master = kept.masters.find(kept.newest);
      if (kept.made && master != kept.masters.end() &&
          master->second.state.phase == k8s::PodState::Phase::kRunning) {
        running[uid] = {kept.job.name, kept.newest};
      }
    }
  }
  std::erase_if(looks_, [&](const auto& look) { return !running.contains(look.first); });
  for (const auto& [uid, master] : running) {
    const std::string name = MasterPodName(master.first, master.second);
    Look& look = looks_[uid];
    if (look.master != master.second ||
        SecondsBetween(look.looked, now) > 2 * MasterLease::kRenewSeconds) {
      look.master = master.second;
      look.claim = std::make_unique<k8s::LeaseClaim>(
          client_, k8s::LeaseClaim::Place{
                       shape_.namespace_name, name, "", MasterLease::kSilenceSeconds, {}});
    }
    const auto view = look.claim->Look(stop);
    if (!view.ok()) {
      log::Warn("kubernetes lease={} is not read: {}", name, view.status().message());
      continue;
    }
    look.looked = client_.clock().Now();
    if (view->holder == name && view->expired) {
      const MutexLock lock(mutex_);
      const auto kept = jobs_.find(uid);
      if (kept != jobs_.end() && kept->second.newest == master.second) {
        kept->second.silent = true;
      }
    }
  }
}

void JobKeeper::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    LookAtLeases(stop);
    std::vector<std::string> make, clear, end;
    {
      MutexLock lock(mutex_);
      const TimePoint now = client_.clock().Now();
      for (auto& [uid, kept] : jobs_) {
        const Need need = NeedOf(kept, now);
        if (need != Need::kNothing) {
          (need == Need::kMaster ? make : need == Need::kClear ? clear : end).push_back(uid);
        }
      }
      if (make.empty() && clear.empty() && end.empty()) {
        const auto changed = [this, seen = changes_]()
                                 NO_THREAD_SAFETY_ANALYSIS { return changes_ != seen; };
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
}

// What the job's Secret says of its pods: the statement's requests, and the template by then.
k8s::ObjectAnswer JobKeeper::TakeShape(const Job& job, const std::stop_token& stop,
                                       k8s::PodShape& shape) {
  k8s::ObjectAnswer secret =
      k8s::GetObject(client_, k8s::kSecrets, shape_.namespace_name, job.secret, stop);
  if (!secret.ok()) {
    return secret;
  }
  PodJobConfig config;
  const auto content = k8s::SecretContent(secret.object);
  const bool read =
      content.ok() && content->contains("config") && config.ParseFromString(content->at("config"));
  auto request = RequestedPods(config.pods(), 1, 1);
  if (!read || !request.ok()) {
    secret.fault = k8s::Fault::kInvalid;
    secret.status = Internal(fmt::format("the Secret {} is damaged", job.secret));
    return secret;
  }
  shape.image = job.image;
  shape.owner = OwnerOf(config);
  shape.template_json = config.template_json();
  shape.priority_class = config.priority_class();
  shape.request = *std::move(request);
  return secret;
}

void JobKeeper::MakeMaster(const std::string& uid, const std::stop_token& stop) {
  Job job;
  int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    const Kept& kept = jobs_.at(uid);
    job = kept.job;
    number = kept.newest;
  }
  // First: from here on nobody is led to an earlier master.
  k8s::ObjectAnswer led = k8s::ChangeObject(
      client_, k8s::kServices, shape_.namespace_name, job.name,
      [number](const k8s::Object& service) { return k8s::LeadTo(service, number); }, stop);
  k8s::PodShape shape = shape_;
  if (led.ok()) {
    led = TakeShape(job, stop, shape);
  }
  elastic::ProcessSpec spec;
  spec.role = elastic::Role::kMaster;
  spec.name = MasterPodName(job.name, number);
  spec.resources.cpu = 0.1;
  spec.incarnation = elastic::Incarnation(static_cast<uint64_t>(number));
  const k8s::PodIdentity identity{job.uid, spec.role, spec.incarnation, 0};
  k8s::Fault fault = led.fault;
  Status status = led.status;
  std::string pod_uid;
  if (led.ok()) {
    const Result<std::string> pod = k8s::BuildPod(shape, identity, spec, job.secret);
    if (pod.ok()) {
      const auto made =
          k8s::CreateAll(client_, {{k8s::kPods, shape_.namespace_name, *pod}}, stop).at(0);
      fault = made.fault;
      status = made.status;
      pod_uid = made.object.uid;
    } else {
      fault = k8s::Fault::kInvalid;
      status = pod.status();
    }
  }
  const MutexLock lock(mutex_);
  Kept& kept = jobs_.at(uid);
  if (kept.newest != number || stop.stop_requested()) {
    return;
  }
  if (status.ok()) {
    kept.made = true;
    kept.made_at = client_.clock().Now();
    return;
  }
  if (fault == k8s::Fault::kNotFound) {
    // Its Service is gone, and all of it with that: somebody has deleted the job.
    kept.hopeless = Cancelled("its objects in Kubernetes were deleted");
    return;
  }
  if (fault == k8s::Fault::kForbidden || fault == k8s::Fault::kInvalid) {
    kept.hopeless = status;
    return;
  }
  log::Warn("job={} its master cannot be made now: {}", job.number, status.message());
  kept.due = client_.clock().Now() + std::chrono::seconds(1);
}

void JobKeeper::Clear(const std::string& uid, const std::stop_token& stop) {
  std::vector<k8s::Deletion> deletions;
  {
    const MutexLock lock(mutex_);
    Kept& kept = jobs_.at(uid);
    for (const auto& [number, master] : kept.masters) {
      if (!master.gone) {
        deletions.push_back({k8s::kPods, shape_.namespace_name,
                             MasterPodName(kept.job.name, number), master.pod_uid, 1});
      }
    }
    kept.due = client_.clock().Now() + std::chrono::seconds(1);  // the watch tells that they go
  }
  for (const k8s::ApiAnswer& answer : k8s::DeleteAll(client_, deletions, stop)) {
    if (!answer.ok() && !stop.stop_requested()) {
      log::Warn("kubernetes a suspended job keeps a master's pod: {}", answer.status.message());
    }
  }
}

void JobKeeper::End(const std::string& uid, const std::stop_token& stop) {
  Job job;
  std::optional<Status> hopeless;
  std::vector<k8s::Deletion> all;
  {
    const MutexLock lock(mutex_);
    const Kept& kept = jobs_.at(uid);
    job = kept.job;
    hopeless = kept.hopeless;
    for (const auto& [number, master] : kept.masters) {
      if (!master.gone) {
        all.push_back({k8s::kPods, shape_.namespace_name, MasterPodName(job.name, number),
                       master.pod_uid, 1});
      }
    }
    jobs_.erase(uid);
    strangers_.erase(uid);
  }
  if (hopeless.has_value()) {
    given_up_(job, *hopeless);
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
