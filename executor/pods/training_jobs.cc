#include "executor/pods/training_jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "executor/pods/begun_spec.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_spec.h"
#include "k8s/rfc3339.h"

namespace sluice::executor {
namespace {

// When a gateway has claimed one and ended before the job began, another takes it after this time.
constexpr double kClaimSeconds = 30;
// Between looks at a job whose end nobody reports; doubled after each failure, up to the most.
constexpr double kRetrySeconds = 2, kMostRetrySeconds = 60;
constexpr auto kRequestsLook = std::chrono::milliseconds(500);
// Threads: of them all, for those that have failed before, and for those of one source. A database
// that does not answer holds a thread for some 15 s.
constexpr size_t kMostAtOnce = 32, kMostRetried = 16, kMostOfOneSource = 8;
// How often the end of a deleted job's row is tried: for half an hour.
constexpr int kMostFailures = 34;

TimePoint After(TimePoint now, double seconds) {
  return now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

// Since it ended; of a status without a time, since `seen`.
double SecondsEnded(const k8s::TrainingJobStatus& status, TimePoint seen, TimePoint now) {
  const std::optional<int64_t> ended = k8s::MicrosOf(status.ended);
  return ended ? static_cast<double>(WallMicros() - *ended) / 1e6 : SecondsBetween(seen, now);
}

bool IsLate(const k8s::TrainingJobSpec& spec, const k8s::TrainingJobStatus& status) {
  const std::optional<int64_t> started = k8s::MicrosOf(status.started);
  return spec.active_deadline_seconds && started && !k8s::Holds(status, k8s::kConditionSuspended) &&
         WallMicros() - *started >= *spec.active_deadline_seconds * 1'000'000;
}

Status TooLate(int64_t seconds) {
  return Status(Code::kDeadlineExceeded,
                fmt::format("the training has taken longer than {} seconds, its TrainingJob's "
                            "activeDeadlineSeconds",
                            seconds));
}

// A statement's: its gateway has begun the job.
bool IsOfStatement(const k8s::Object& object) {
  return object.labels.contains(std::string(k8s::kJobLabel));
}

// A master says Running, Complete and so on itself.
bool HasNoMaster(const k8s::TrainingJobStatus& status) {
  return status.job.has_value() && status.master_number == 0;
}

}  // namespace

Result<std::unique_ptr<TrainingJobs>> TrainingJobs::Start(k8s::ApiClient& client,
                                                          std::string namespace_name,
                                                          std::string holder, Hooks hooks,
                                                          const std::stop_token& stop) {
  const k8s::Selection all{k8s::kTrainingJobs, namespace_name, ""};
  std::unique_ptr<TrainingJobs> jobs(
      new TrainingJobs(client, std::move(namespace_name), std::move(holder), std::move(hooks)));
  TrainingJobs* const self = jobs.get();
  ASSIGN_OR_RETURN(
      self->watch_,
      k8s::ObjectWatch::Start(
          client, all, [self](const k8s::ObjectChange& change) { self->OnChange(change); }, stop));
  self->thread_ = std::jthread([self](const std::stop_token& ended) { self->Run(ended); });
  return jobs;
}

TrainingJobs::TrainingJobs(k8s::ApiClient& client, std::string namespace_name, std::string holder,
                           Hooks hooks)
    : client_(client),
      holder_(holder),
      hooks_(std::move(hooks)),
      work_(client, std::move(namespace_name), std::move(holder), hooks_.source) {}

TrainingJobs::~TrainingJobs() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  for (auto& [uid, thread] : threads_) {
    thread.request_stop();
  }
  threads_.clear();
  watch_.reset();
}

void TrainingJobs::OnChange(const k8s::ObjectChange& change) {
  const k8s::Object& object = change.object;
  if (change.kind == k8s::ObjectChange::Kind::kGone || object.leaving) {
    hooks_.deleted(k8s::JobUidOf(object));
    work_.events().Forget(object.uid);
    const MutexLock lock(mutex_);
    OnDeleted(object.uid);
    return;
  }
  const MutexLock lock(mutex_);
  const bool fresh = !known_.contains(object.uid);
  Known& known = known_[object.uid];
  const std::optional<k8s::BegunSpec> begun = known.status.begun;
  if (auto status = k8s::ParseTrainingJobStatus(object.json); status.ok()) {
    if (!fresh && status->job && HasEnded(*status) && !HasEnded(known.status)) {
      log::Record("trainingjob ended name={} job={} as={}", log::Field(object.name), *status->job,
                  k8s::Holds(*status, k8s::kConditionComplete) ? k8s::kConditionComplete
                                                               : k8s::kConditionFailed);
    }
    known.status = *std::move(status);
  }
  const int64_t generation = k8s::GenerationOf(object);
  const bool changed = fresh || generation != known.generation || generation == 0;
  if (changed || known.status.begun != begun) {
    Status mistakes;
    known.spec = k8s::HoldingSpec(
        object.json, fresh ? std::nullopt : std::optional(std::move(known.spec)), &mistakes);
    if (known.status.begun) {
      HoldToBegun(*known.status.begun, known.spec, &mistakes);
    }
    known.mistakes = AllMessages(mistakes);
  }
  if (changed) {
    known.generation = generation;
    known.due = {};  // what failed may have been mended
    known.failures = 0;
  }
  known.object = object;
  hooks_.suspended(k8s::JobUidOf(object), known.spec.suspend || k8s::SuspendedByGrant(known.status),
                   k8s::Holds(known.status, k8s::kConditionSuspended));
  std::string claim = k8s::ClaimOf(object);
  if (claim != known.claim) {
    known.claimed = client_.clock().Now();
    known.claim = std::move(claim);
  }
  ++changes_;
  changed_.notify_all();
}

void TrainingJobs::OnDeleted(const std::string& uid) {
  const auto found = known_.find(uid);
  if (found == known_.end()) {
    return;
  }
  Known& known = found->second;
  const bool may_run = known.job_number().has_value() && !HasEnded(known.status) &&
                       known.status.master_number == 0 && !IsOfStatement(known.object);
  if (known.deleted || known.busy || (may_run && hooks_.source.end)) {
    if (!known.deleted) {
      known.deleted = true;
      known.due = {};
      known.failures = 0;
    }
  } else {
    known_.erase(found);
  }
  ++changes_;
  changed_.notify_all();
}

bool TrainingJobs::HasNotBegun(const Known& known) const {
  return hooks_.source.begin && !IsOfStatement(known.object) && !known.job_number().has_value() &&
         !HasEnded(known.status);
}

bool TrainingJobs::IsToBegin(const Known& known, TimePoint now) const {
  if (!HasNotBegun(known) || known.spec.suspend) {
    return false;
  }
  return known.claim.empty() || known.claim == holder_ ||
         SecondsBetween(known.claimed, now) >= kClaimSeconds;
}

bool TrainingJobs::IsToldOfSpec(const Known& known) const {
  return known.status.observed_generation == known.generation &&
         k8s::Holds(known.status, k8s::kConditionSpecInvalid) != known.mistakes.empty() &&
         (known.status.begun || !known.status.job || !known.mistakes.empty());
}

TrainingJobs::Need TrainingJobs::NeedOf(Known& known, TimePoint now) const {
  if (known.busy || now < known.due) {
    return Need::kNothing;
  }
  if (known.deleted) {
    return Need::kEndDeleted;
  }
  if (HasEnded(known.status)) {
    known.request.reset();
    known.ended = known.ended == TimePoint{} ? now : known.ended;
    const std::optional<int64_t>& kept = known.spec.ttl_seconds_after_finished;
    if (kept && SecondsEnded(known.status, known.ended, now) >= static_cast<double>(*kept)) {
      return Need::kDelete;
    }
    return IsToldOfSpec(known) ? Need::kNothing : Need::kTellSpec;
  }
  known.ended = now;
  if (IsLate(known.spec, known.status)) {
    return Need::kEndLate;
  }
  if (IsToBegin(known, now)) {
    return Need::kBegin;
  }
  if (HasNotBegun(known) && known.spec.suspend &&
      !k8s::Holds(known.status, k8s::kConditionSuspended)) {
    return Need::kTellSuspended;
  }
  if (!IsToldOfSpec(known) && (known.job_number() || known.spec.suspend)) {
    return Need::kTellSpec;
  }
  return hooks_.source.find && HasNoMaster(known.status) ? Need::kTellJob : Need::kNothing;
}

std::vector<std::pair<std::string, TrainingJobs::Need>> TrainingJobs::TakeDue() {
  struct Due {
    std::string uid;
    Need need;
    Known* known;
  };
  std::vector<Due> due;
  std::map<std::string, size_t> of_source;
  size_t busy = 0, retried = 0;
  const TimePoint now = client_.clock().Now();
  for (auto& [uid, known] : known_) {
    if (known.busy) {
      ++busy;
      ++of_source[known.spec.source_secret];
      retried += known.failures > 0 ? 1 : 0;
    } else if (const Need need = NeedOf(known, now); need != Need::kNothing) {
      due.push_back({uid, need, &known});
    }
  }
  // Those of which nothing bad is known yet come first.
  std::stable_sort(due.begin(), due.end(), [](const Due& one, const Due& other) {
    return one.known->failures < other.known->failures;
  });
  std::vector<std::pair<std::string, Need>> taken;
  for (const Due& each : due) {
    size_t& same = of_source[each.known->spec.source_secret];
    const bool again = each.known->failures > 0;
    if (busy < kMostAtOnce && same < kMostOfOneSource && (!again || retried < kMostRetried)) {
      each.known->busy = true;
      ++busy;
      ++same;
      retried += again ? 1 : 0;
      taken.emplace_back(each.uid, each.need);
    }
  }
  return taken;
}

void TrainingJobs::Run(const std::stop_token& stop) {
  uint64_t seen = 0;
  while (!stop.stop_requested()) {
    std::vector<std::pair<std::string, Need>> due;
    std::vector<std::string> finished;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), stop, kRequestsLook,
                        [this, seen]() REQUIRES(mutex_) { return changes_ != seen; });
      seen = changes_;
      finished.swap(finished_);
      due = TakeDue();
    }
    for (const std::string& uid : finished) {
      threads_.erase(uid);
    }
    for (const auto& [uid, need] : due) {
      threads_[uid] = std::jthread(
          [this, uid = uid, need = need](const std::stop_token& ended) { Work(uid, need, ended); });
    }
  }
}

void TrainingJobs::Work(const std::string& uid, Need need, const std::stop_token& stop) {
  Known known;
  {
    const MutexLock lock(mutex_);
    known = known_.at(uid);  // stays while it is busy
    if (need == Need::kBegin && !IsToBegin(known, client_.clock().Now())) {
      need = Need::kNothing;  // another gateway has claimed it since this was due
    }
  }
  TrainingJobWork::Begun begun;
  const Status done = Do(known, need, begun, stop);
  if (!done.ok() && !stop.stop_requested()) {
    log::Warn("kubernetes trainingjob={} is left as it is for now: {}", known.object.name,
              done.message());
  }
  Finish(uid, done, begun, need == Need::kEndDeleted);
}

Status TrainingJobs::Do(const Known& known, Need need, TrainingJobWork::Begun& begun,
                        const std::stop_token& stop) {
  switch (need) {
    case Need::kBegin: {
      ASSIGN_OR_RETURN(begun, work_.Begin(known.object, known.claim, stop));
      if (begun.gone) {
        hooks_.deleted(k8s::JobUidOf(known.object));
      }
      return OkStatus();
    }
    case Need::kTellSpec:
      return work_.TellSpec(known.object, known.spec, known.mistakes, stop);
    case Need::kTellSuspended:
      return work_.TellSuspended(known.object, stop);
    case Need::kTellJob:
      return work_.TellJob(known.object, known.spec, stop);
    case Need::kEndDeleted:
      return EndJob(known, Cancelled("its TrainingJob was deleted"), false, stop);
    case Need::kEndLate: {
      const Status why = TooLate(*known.spec.active_deadline_seconds);
      hooks_.late(k8s::JobUidOf(known.object), why);
      return HasNoMaster(known.status) && !IsOfStatement(known.object)
                 ? EndJob(known, why, true, stop)
                 : OkStatus();
    }
    case Need::kDelete:
      return work_.Delete(known.object, stop);
    case Need::kNothing:
      break;
  }
  return OkStatus();
}

Status TrainingJobs::EndJob(const Known& known, const Status& why, bool late,
                            const std::stop_token& stop) {
  if (!known.job_number() || !hooks_.source.end) {
    return OkStatus();
  }
  const Result<TrainingJobRequest> request =
      known.request ? *known.request : work_.RequestOf(known.object, known.spec, stop);
  RETURN_IF_ERROR(request.status());
  return work_.EndJob(known.object, *request, *known.job_number(), why, late, stop);
}

void TrainingJobs::Finish(const std::string& uid, const Status& done,
                          const TrainingJobWork::Begun& begun, bool ended) {
  const MutexLock lock(mutex_);
  finished_.push_back(uid);
  ++changes_;
  changed_.notify_all();
  Known& known = known_.at(uid);
  known.busy = false;
  if (begun.job) {
    known.job = begun.job;
    known.request = begun.request;
  }
  known.deleted = known.deleted || begun.gone;
  const bool failed = !done.ok() || begun.again;
  known.failures = failed ? known.failures + 1 : 0;
  const double wait =
      std::min(kMostRetrySeconds, std::ldexp(kRetrySeconds, std::min(known.failures - 1, 10)));
  known.due = After(client_.clock().Now(), failed ? wait : kRetrySeconds);
  if (known.deleted && !ended) {
    known.due = {};
  }
  const bool nothing_runs = !known.job_number() || HasEnded(known.status);
  if (known.deleted &&
      ((ended && (done.ok() || known.failures >= kMostFailures)) || nothing_runs)) {
    known_.erase(uid);
  }
}

}  // namespace sluice::executor
