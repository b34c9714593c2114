#include "executor/pods/training_jobs.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/source_url.h"
#include "catalog/sql/sqlstate.h"
#include "executor/pods/job_status.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_spec.h"
#include "k8s/rfc3339.h"
#include "k8s/secret_content.h"
#include "k8s/service_spec.h"

namespace sluice::executor {
namespace {

// When a gateway has claimed one and ended before the job began, another takes it after this time.
constexpr double kClaimSeconds = 30;
constexpr double kRetrySeconds = 2;
constexpr auto kRequestsLook = std::chrono::milliseconds(500);

TimePoint After(TimePoint now, double seconds) {
  return now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

bool HasEnded(const k8s::TrainingJobStatus& status) {
  return k8s::Holds(status, k8s::kConditionComplete) || k8s::Holds(status, k8s::kConditionFailed);
}

bool IsLate(const k8s::TrainingJobSpec& spec, const k8s::TrainingJobStatus& status) {
  const std::optional<int64_t> started = k8s::MicrosOf(status.started);
  return spec.active_deadline_seconds && started && !k8s::Holds(status, k8s::kConditionSuspended) &&
         WallMicros() - *started >= *spec.active_deadline_seconds * 1'000'000;
}

std::string AllMessages(const Status& status) {
  std::string text;
  for (const Diagnostic& each : status.diagnostics()) {
    text += (text.empty() ? "" : "; ") + each.message;
  }
  return text;
}

Status WriteStatus(k8s::ApiClient& client, const std::string& namespace_name,
                   const k8s::Object& object, const k8s::TrainingJobStatus& after,
                   const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const k8s::TrainingJobStatus before, k8s::ParseTrainingJobStatus(object.json));
  const std::optional<std::string> patch = k8s::StatusPatch(before, after);
  return patch.has_value() ? k8s::PatchObject(client, k8s::kTrainingJobs, namespace_name,
                                              object.name, "status", *patch, stop)
                                 .status
                           : OkStatus();
}

}  // namespace

Status FailTrainingJob(k8s::ApiClient& client, const std::string& namespace_name,
                       const k8s::Owner& job, const std::string& reason, const std::string& why) {
  const k8s::ObjectAnswer found =
      k8s::GetObject(client, k8s::kTrainingJobs, namespace_name, job.name, {});
  if (found.fault == k8s::Fault::kNotFound || (found.ok() && found.object.uid != job.uid)) {
    return OkStatus();  // it was deleted
  }
  RETURN_IF_ERROR(found.status);
  ASSIGN_OR_RETURN(k8s::TrainingJobStatus status, k8s::ParseTrainingJobStatus(found.object.json));
  status.ended = k8s::Rfc3339(WallMicros());
  if (HasEnded(status)) {
    return OkStatus();
  }
  for (const std::string_view over :
       {k8s::kConditionQueued, k8s::kConditionRunning, k8s::kConditionSuspended}) {
    k8s::SetCondition(status, over, false, "Failed", "", status.ended);
  }
  k8s::SetCondition(status, k8s::kConditionFailed, true, reason, why, status.ended);
  return WriteStatus(client, namespace_name, found.object, status, {});
}

Result<std::unique_ptr<TrainingJobs>> TrainingJobs::Start(k8s::ApiClient& client,
                                                          std::string namespace_name,
                                                          std::string holder, Hooks hooks,
                                                          const std::stop_token& stop) {
  std::unique_ptr<TrainingJobs> jobs(
      new TrainingJobs(client, std::move(namespace_name), std::move(holder), std::move(hooks)));
  TrainingJobs* const self = jobs.get();
  ASSIGN_OR_RETURN(self->watch_,
                   k8s::ObjectWatch::Start(
                       client, {k8s::kTrainingJobs, self->namespace_, ""},
                       [self](const k8s::ObjectChange& change) { self->OnChange(change); }, stop));
  self->thread_ = std::jthread([self](const std::stop_token& ended) { self->Run(ended); });
  return jobs;
}

TrainingJobs::TrainingJobs(k8s::ApiClient& client, std::string namespace_name, std::string holder,
                           Hooks hooks)
    : client_(client),
      namespace_(std::move(namespace_name)),
      holder_(std::move(holder)),
      hooks_(std::move(hooks)) {}

TrainingJobs::~TrainingJobs() {
  thread_.request_stop();
  watch_.reset();
}

void TrainingJobs::OnChange(const k8s::ObjectChange& change) {
  if (change.kind == k8s::ObjectChange::Kind::kGone || change.object.leaving) {
    hooks_.deleted(k8s::JobUidOf(change.object));
    const MutexLock lock(mutex_);
    known_.erase(change.object.uid);
    return;
  }
  const auto spec = k8s::ParseTrainingJobSpec(change.object.json);
  const auto status = k8s::ParseTrainingJobStatus(change.object.json);
  if (spec.ok() && status.ok()) {
    hooks_.suspended(k8s::JobUidOf(change.object), spec->suspend || k8s::SuspendedByGrant(*status),
                     k8s::Holds(*status, k8s::kConditionSuspended));
  }
  const MutexLock lock(mutex_);
  Known& known = known_[change.object.uid];
  known.object = change.object;
  std::string claim = k8s::ClaimOf(change.object);
  if (claim != known.claim) {
    known.claimed = client_.clock().Now();
    known.claim = std::move(claim);
  }
  ++changes_;
  changed_.notify_all();
}

bool TrainingJobs::IsToBegin(const Known& known, const k8s::TrainingJobStatus& status,
                             TimePoint now) const {
  if (!hooks_.source.begin || known.object.labels.contains(std::string(k8s::kJobLabel)) ||
      status.job.has_value() || HasEnded(status) || now < known.due) {
    return false;  // created or begun by a gateway
  }
  return known.claim.empty() || known.claim == holder_ ||
         SecondsBetween(known.claimed, now) >= kClaimSeconds;
}

// A master says Running, Complete and so on itself.
bool TrainingJobs::MayHaveEnded(const Known& known, const k8s::TrainingJobStatus& status,
                                TimePoint now) const {
  return hooks_.source.find && status.job.has_value() && status.master_number == 0 &&
         k8s::Holds(status, k8s::kConditionQueued) && !HasEnded(status) && now >= known.due;
}

void TrainingJobs::Run(const std::stop_token& stop) {
  uint64_t seen = 0;
  while (!stop.stop_requested()) {
    std::vector<std::pair<k8s::Object, std::string>> begin;
    std::vector<k8s::Object> over, ended;
    std::vector<std::pair<std::string, int64_t>> late;
    {
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), stop, kRequestsLook,
                        [this, seen]() NO_THREAD_SAFETY_ANALYSIS { return changes_ != seen; });
      seen = changes_;
      const TimePoint now = client_.clock().Now();
      for (auto& [uid, known] : known_) {
        const auto status = k8s::ParseTrainingJobStatus(known.object.json);
        const auto spec = k8s::ParseTrainingJobSpec(known.object.json);
        if (!status.ok()) {
          continue;
        }
        if (IsToBegin(known, *status, now) && !(spec.ok() && spec->suspend)) {
          known.due = After(now, kRetrySeconds);
          begin.emplace_back(known.object, known.claim);
        }
        if (MayHaveEnded(known, *status, now)) {
          known.due = After(now, kRetrySeconds);
          ended.push_back(known.object);
        }
        if (!HasEnded(*status)) {
          known.ended = now;
          if (spec.ok() && IsLate(*spec, *status)) {
            late.emplace_back(k8s::JobUidOf(known.object), *spec->active_deadline_seconds);
          }
        } else if (known.ended == TimePoint{}) {
          known.ended = now;
        } else if (spec.ok() && spec->ttl_seconds_after_finished.has_value() &&
                   SecondsBetween(known.ended, now) >=
                       static_cast<double>(*spec->ttl_seconds_after_finished)) {
          over.push_back(known.object);
        }
      }
    }
    for (const auto& [object, claim] : begin) {
      const Status begun = Begin(object, claim, stop);
      if (!begun.ok() && !stop.stop_requested()) {
        log::Warn("kubernetes trainingjob={} cannot be begun now: {}", object.name,
                  begun.message());
      }
    }
    for (const k8s::Object& object : ended) {
      const Status written = WriteEnd(object, stop);
      if (!written.ok() && !stop.stop_requested()) {
        log::Warn(
            "kubernetes trainingjob={} may have ended, which cannot be read or written now: {}",
            object.name, written.message());
      }
    }
    for (const auto& [uid, seconds] : late) {
      hooks_.late(uid, seconds);
    }
    for (const k8s::Object& object : over) {
      Delete(object, stop);
    }
  }
}

Result<TrainingJobRequest> TrainingJobs::RequestOf(const k8s::Object& object,
                                                   const std::stop_token& stop) {
  TrainingJobRequest request{object.name, object.uid, {}, {}};
  ASSIGN_OR_RETURN(request.spec, k8s::ParseTrainingJobSpec(object.json));
  const k8s::ObjectAnswer secret =
      k8s::GetObject(client_, k8s::kSecrets, namespace_, request.spec.source_secret, stop);
  if (!secret.ok() && secret.fault != k8s::Fault::kNotFound) {
    return secret.status;
  }
  const auto label = secret.object.labels.find(std::string(k8s::kSourceLabel));
  if (label == secret.object.labels.end() || label->second != "true") {
    // Nobody learns from this which other Secrets there are.
    return Unavailable(
        fmt::format("spec.source.secretName: there is no Secret '{}' with the label {}: \"true\"",
                    request.spec.source_secret, k8s::kSourceLabel));
  }
  ASSIGN_OR_RETURN(const auto content, k8s::SecretContent(secret.object));
  const auto url = content.find(request.spec.source_key);
  if (url == content.end()) {
    return InvalidArgument(fmt::format("spec.source.key: the Secret '{}' has no key '{}'",
                                       request.spec.source_secret, request.spec.source_key));
  }
  request.source_url = url->second;
  while (!request.source_url.empty() && request.source_url.back() == '\n') {
    request.source_url.pop_back();
  }
  const auto parsed = catalog::ParseSourceUrl(request.source_url);
  if (!parsed.ok() || parsed->kind != catalog::SourceUrl::Kind::kPostgres) {
    return InvalidArgument(fmt::format(
        "spec.source.key: '{}' of the Secret '{}' is not the URL of a PostgreSQL database",
        request.spec.source_key, request.spec.source_secret));
  }
  return request;
}

// A gateway that ended after beginning the job has left its Service.
Result<int64_t> TrainingJobs::BeginOnce(const TrainingJobRequest& request,
                                        const std::stop_token& stop) {
  const k8s::Listing services = k8s::ListObjects(
      client_, {k8s::kServices, namespace_, fmt::format("{}={}", k8s::kJobLabel, request.uid)},
      stop);
  RETURN_IF_ERROR(services.status);
  for (const k8s::Object& service : services.objects) {
    if (const auto about = k8s::ReadJobService(service)) {
      return about->job_number;
    }
  }
  return hooks_.source.begin(request);
}

Status TrainingJobs::Begin(const k8s::Object& object, const std::string& claim,
                           const std::stop_token& stop) {
  const k8s::ObjectAnswer claimed = k8s::ChangeObject(
      client_, k8s::kTrainingJobs, namespace_, object.name,
      [&](const k8s::Object& now) -> Result<std::string> {
        return now.uid == object.uid ? k8s::Claim(now, claim, holder_) : now.json;
      },
      stop);
  RETURN_IF_ERROR(claimed.status);
  if (claimed.object.uid != object.uid || k8s::ClaimOf(claimed.object) != holder_) {
    return OkStatus();  // another gateway was faster
  }
  ASSIGN_OR_RETURN(k8s::TrainingJobStatus status, k8s::ParseTrainingJobStatus(claimed.object.json));
  const std::string now = k8s::Rfc3339(WallMicros());
  const Result<TrainingJobRequest> request = RequestOf(claimed.object, stop);
  const Result<int64_t> begun =
      request.ok() ? BeginOnce(*request, stop) : Result<int64_t>(request.status());
  if (stop.stop_requested()) {
    return OkStatus();
  }
  if (begun.ok()) {
    status.job = *begun;
    status.started = status.started.empty() ? now : status.started;
    k8s::SetCondition(status, k8s::kConditionQueued, true, "Begun",
                      fmt::format("job {} has begun", *begun), now);
  } else if (begun.status().code() == Code::kUnavailable ||
             catalog::IsUnavailableForNow(begun.status())) {
    k8s::SetCondition(status, k8s::kConditionQueued, true, "Waiting", AllMessages(begun.status()),
                      now);
  } else {
    status.ended = now;
    k8s::SetCondition(status, k8s::kConditionQueued, false, "Refused", "", now);
    k8s::SetCondition(status, k8s::kConditionFailed, true, "Refused",
                      request.ok() ? RenderWithCaret(begun.status(), request->spec.statement)
                                   : AllMessages(begun.status()),
                      now);
  }
  return WriteStatus(client_, namespace_, claimed.object, status, stop);
}

Status TrainingJobs::WriteEnd(const k8s::Object& object, const std::stop_token& stop) {
  const k8s::ObjectAnswer found =
      k8s::GetObject(client_, k8s::kTrainingJobs, namespace_, object.name, stop);
  if (found.fault == k8s::Fault::kNotFound || (found.ok() && found.object.uid != object.uid)) {
    return OkStatus();  // it was deleted
  }
  RETURN_IF_ERROR(found.status);
  ASSIGN_OR_RETURN(k8s::TrainingJobStatus status, k8s::ParseTrainingJobStatus(found.object.json));
  if (!status.job || status.master_number > 0 || HasEnded(status)) {
    return OkStatus();
  }
  const k8s::Listing services = k8s::ListObjects(
      client_, {k8s::kServices, namespace_, fmt::format("{}={}", k8s::kJobLabel, object.uid)},
      stop);
  RETURN_IF_ERROR(services.status);
  if (!services.objects.empty()) {
    return OkStatus();  // its master will say how it ends
  }
  ASSIGN_OR_RETURN(const TrainingJobRequest request, RequestOf(found.object, stop));
  ASSIGN_OR_RETURN(const TrainingJobRow row, hooks_.source.find(request, *status.job));
  if (!catalog::HasEnded(row.job.state)) {
    return OkStatus();
  }
  status.ended = k8s::Rfc3339(row.job.finished_micros);
  status.model = row.job.model;
  status.version = row.version;
  k8s::SetCondition(status, k8s::kConditionQueued, false, "Ended", "", status.ended);
  k8s::SetCondition(status, k8s::kConditionRunning, false, "Ended", "", status.ended);
  SetEndConditions(row.job.state, row.job.model, row.job.error, status.ended, status);
  return WriteStatus(client_, namespace_, found.object, status, stop);
}

void TrainingJobs::Delete(const k8s::Object& object, const std::stop_token& stop) {
  for (const k8s::ApiAnswer& answer : k8s::DeleteAll(
           client_, {{k8s::kTrainingJobs, namespace_, object.name, object.uid, 1}}, stop)) {
    if (!answer.ok() && !stop.stop_requested()) {
      log::Warn("kubernetes trainingjob={} has ended and stays: {}", object.name,
                answer.status.message());
    }
  }
}

}  // namespace sluice::executor
