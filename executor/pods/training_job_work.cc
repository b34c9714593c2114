#include "executor/pods/training_job_work.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/source_url.h"
#include "catalog/sql/sqlstate.h"
#include "executor/pods/begun_spec.h"
#include "executor/pods/job_status.h"
#include "executor/pods/stored_model.h"
#include "k8s/api_verbs.h"
#include "k8s/rfc3339.h"
#include "k8s/rights.h"
#include "k8s/secret_content.h"
#include "k8s/service_spec.h"
#include "k8s/training_job_change.h"

namespace sluice::executor {
namespace {

// Part of the names of this process's Events.
constexpr size_t kInstanceSize = 8;
// The reason of the condition Suspended of a job that cannot be.
constexpr char kNotSuspended[] = "Refused";

bool IsForLater(const Status& status) {
  return status.code() == Code::kUnavailable || catalog::IsUnavailableForNow(status);
}

k8s::Owner OwnerOf(const k8s::Object& object) {
  return k8s::TrainingJobOwner(object.name, object.uid);
}

bool HasCondition(const k8s::TrainingJobStatus& status, std::string_view type,
                  std::string_view reason) {
  return std::any_of(status.conditions.begin(), status.conditions.end(),
                     [&](const auto& each) { return each.type == type && each.reason == reason; });
}

// As its master would.
void TellRow(const TrainingJobRow& row, bool suspend, k8s::TrainingJobStatus& status) {
  const bool ended = catalog::HasEnded(row.job.state);
  const std::string now = k8s::Rfc3339(ended ? row.job.finished_micros : WallMicros());
  if (row.progress) {
    FillProgress(*row.progress, status);
  }
  const std::string_view reason = ended ? "Ended" : "Training";
  k8s::SetCondition(status, k8s::kConditionQueued, false, reason, "", now);
  k8s::SetCondition(status, k8s::kConditionRunning, !ended, reason, "", now);
  if (ended) {
    status.ended = now;
    status.seconds_left = 0;
    status.model = row.job.model;
    FillStored(row.job, row.stored, status);
    SetEndConditions(row.job.state, row.job.model, row.job.error, now, status);
  } else if (suspend) {
    k8s::SetCondition(status, k8s::kConditionSuspended, false, kNotSuspended,
                      "it trains in the gateway's pod, where it cannot be suspended: it goes on",
                      now);
  } else if (HasCondition(status, k8s::kConditionSuspended, kNotSuspended)) {
    k8s::SetCondition(status, k8s::kConditionSuspended, false, "NotAsked", "", now);
  }
}

}  // namespace

std::string AllMessages(const Status& status) {
  std::string text;
  for (const Diagnostic& each : status.diagnostics()) {
    text += (text.empty() ? "" : "; ") + each.message;
  }
  return text;
}

bool HasEnded(const k8s::TrainingJobStatus& status) {
  return k8s::Holds(status, k8s::kConditionComplete) || k8s::Holds(status, k8s::kConditionFailed);
}

Status FailTrainingJob(k8s::ApiClient& client, const std::string& namespace_name,
                       const k8s::Owner& job, const std::string& reason, const std::string& why) {
  const auto fail = [&](const k8s::Object&, k8s::TrainingJobStatus& status) {
    if (HasEnded(status)) {
      return;
    }
    status.ended = k8s::Rfc3339(WallMicros());
    for (const std::string_view over :
         {k8s::kConditionQueued, k8s::kConditionRunning, k8s::kConditionSuspended}) {
      k8s::SetCondition(status, over, false, "Failed", "", status.ended);
    }
    k8s::SetCondition(status, k8s::kConditionFailed, true, reason, why, status.ended);
  };
  return k8s::ChangeTrainingJobStatus(client, namespace_name, job.name, job.uid, fail, {}).status();
}

TrainingJobWork::TrainingJobWork(k8s::ApiClient& client, std::string namespace_name,
                                 std::string holder, TrainingJobSource source)
    : client_(client),
      namespace_(std::move(namespace_name)),
      holder_(std::move(holder)),
      source_(std::move(source)),
      events_(client_, {namespace_, k8s::AccountName(k8s::Account::kGateway),
                        fmt::format("gateway-{}", holder_.substr(0, kInstanceSize))}) {}

Result<TrainingJobRequest> TrainingJobWork::RequestOf(const k8s::Object& object,
                                                      const k8s::TrainingJobSpec& spec,
                                                      const std::stop_token& stop) {
  TrainingJobRequest request{object.name, object.uid, spec, {}};
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
Result<int64_t> TrainingJobWork::BeginOnce(const TrainingJobRequest& request,
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
  return source_.begin(request, stop);
}

Result<TrainingJobWork::Begun> TrainingJobWork::Begin(const k8s::Object& object,
                                                      const std::string& claim,
                                                      const std::stop_token& stop) {
  const k8s::ObjectAnswer claimed = k8s::ChangeObject(
      client_, k8s::kTrainingJobs, namespace_, object.name,
      [&](const k8s::Object& now) -> Result<std::string> {
        return now.uid == object.uid && !now.leaving ? k8s::Claim(now, claim, holder_) : now.json;
      },
      stop);
  if (claimed.fault == k8s::Fault::kNotFound) {
    return Begun();  // it was deleted
  }
  RETURN_IF_ERROR(claimed.status);
  ASSIGN_OR_RETURN(const k8s::TrainingJobStatus now,
                   k8s::ParseTrainingJobStatus(claimed.object.json));
  if (claimed.object.uid != object.uid || k8s::ClaimOf(claimed.object) != holder_ || now.job ||
      HasEnded(now)) {
    return Begun();  // another gateway was faster
  }
  const Result<k8s::TrainingJobSpec> spec = k8s::ParseTrainingJobSpec(claimed.object.json);
  const Result<TrainingJobRequest> request = spec.ok() ? RequestOf(claimed.object, *spec, stop)
                                                       : Result<TrainingJobRequest>(spec.status());
  const Result<int64_t> job =
      request.ok() ? BeginOnce(*request, stop) : Result<int64_t>(request.status());
  Begun begun;
  if (job.ok()) {
    begun = {*request, *job, false, false};
  } else if (stop.stop_requested()) {
    return begun;
  }
  begun.again = !job.ok() && IsForLater(job.status());
  std::string message = job.ok() ? fmt::format("job {} has begun", *job)
                        : request.ok() && !begun.again
                            ? RenderWithCaret(job.status(), request->spec.statement)
                            : AllMessages(job.status());
  message.erase(message.find_last_not_of('\n') + 1);
  events_.Record(OwnerOf(object), !job.ok(),
                 job.ok()      ? "Begun"
                 : begun.again ? "CannotBegin"
                               : "Refused",
                 message);
  if (job.ok()) {
    log::Record("trainingjob begun name={} job={}", log::Field(object.name), *job);
  } else if (!begun.again) {
    log::Record("trainingjob refused name={} why={}", log::Field(object.name),
                log::Field(job.status().message()));
  }
  // What another process has written meanwhile, such as the job's master, stays.
  const auto tell = [&](const k8s::Object& current, k8s::TrainingJobStatus& status) {
    if (HasEnded(status) || (status.job && status.job != begun.job)) {
      return;
    }
    const std::string time = k8s::Rfc3339(WallMicros());
    status.observed_generation = k8s::GenerationOf(current);
    if (!begun.again) {
      Status mistakes;  // it is refused for them
      status.begun = BegunSpecOf(k8s::HoldingSpec(claimed.object.json, {}, &mistakes));
    }
    if (status.master_number == 0 && k8s::Holds(status, k8s::kConditionSuspended)) {
      k8s::SetCondition(status, k8s::kConditionSuspended, false, "Resumed", "", time);
    }
    if (!job.ok() && !begun.again) {
      status.ended = time;
      k8s::SetCondition(status, k8s::kConditionQueued, false, "Refused", "", time);
      k8s::SetCondition(status, k8s::kConditionFailed, true, "Refused", message, time);
    } else if (status.master_number == 0) {
      k8s::SetCondition(status, k8s::kConditionQueued, true, job.ok() ? "Begun" : "Waiting",
                        message, time);
    }
    if (job.ok()) {
      status.job = *job;
      status.started = status.started.empty() ? time : status.started;
    }
  };
  ASSIGN_OR_RETURN(const bool there,
                   k8s::ChangeTrainingJobStatus(client_, namespace_, object.name, object.uid, tell,
                                                job.ok() ? std::stop_token() : stop));
  begun.gone = !there;
  return begun;
}

Status TrainingJobWork::TellJob(const k8s::Object& object, const k8s::TrainingJobSpec& spec,
                                const std::stop_token& stop) {
  const k8s::Listing services = k8s::ListObjects(
      client_, {k8s::kServices, namespace_, fmt::format("{}={}", k8s::kJobLabel, object.uid)},
      stop);
  RETURN_IF_ERROR(services.status);
  ASSIGN_OR_RETURN(const k8s::TrainingJobStatus before, k8s::ParseTrainingJobStatus(object.json));
  if (!services.objects.empty() || !before.job) {
    return OkStatus();  // its master tells all of this
  }
  ASSIGN_OR_RETURN(const TrainingJobRequest request, RequestOf(object, spec, stop));
  ASSIGN_OR_RETURN(const TrainingJobRow row, source_.find(request, *before.job, stop));
  bool refused = false;
  const auto tell = [&](const k8s::Object&, k8s::TrainingJobStatus& status) {
    refused = false;
    if (status.job != before.job || status.master_number > 0 || HasEnded(status)) {
      return;
    }
    const bool told = HasCondition(status, k8s::kConditionSuspended, kNotSuspended);
    TellRow(row, spec.suspend, status);
    refused = !told && HasCondition(status, k8s::kConditionSuspended, kNotSuspended);
  };
  const auto told =
      k8s::ChangeTrainingJobStatus(client_, namespace_, object.name, object.uid, tell, stop);
  if (told.ok() && refused) {
    events_.Record(OwnerOf(object), true, "NotSuspended",
                   fmt::format("job {} trains in the gateway's pod, where it cannot be suspended: "
                               "it goes on",
                               *before.job));
  }
  return told.status();
}

Status TrainingJobWork::EndJob(const k8s::Object& object, const TrainingJobRequest& request,
                               int64_t job, const Status& why, bool late,
                               const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const bool here, source_.end(request, job, why, stop));
  return here && late ? FailTrainingJob(client_, namespace_, OwnerOf(object), "DeadlineExceeded",
                                        why.message())
                      : OkStatus();
}

Status TrainingJobWork::TellSpec(const k8s::Object& object, const k8s::TrainingJobSpec& spec,
                                 const std::string& mistakes, const std::stop_token& stop) {
  const int64_t generation = k8s::GenerationOf(object);
  const std::string message =
      mistakes.empty()
          ? ""
          : fmt::format("{}; until that is mended, what held before it holds", mistakes);
  bool news = false;
  const auto tell = [&](const k8s::Object& current, k8s::TrainingJobStatus& status) {
    news = false;
    if (k8s::GenerationOf(current) != generation) {
      return;  // it has changed again
    }
    const bool told = k8s::Holds(status, k8s::kConditionSpecInvalid);
    news = !mistakes.empty() && (!told || status.observed_generation != generation);
    status.observed_generation = generation;
    if (status.job && !status.begun && mistakes.empty()) {  // of a statement
      status.begun = BegunSpecOf(spec);
    }
    if (!mistakes.empty() || told) {
      k8s::SetCondition(status, k8s::kConditionSpecInvalid, !mistakes.empty(),
                        mistakes.empty() ? "Mended" : "InvalidSpec", message,
                        k8s::Rfc3339(WallMicros()));
    }
  };
  const auto told =
      k8s::ChangeTrainingJobStatus(client_, namespace_, object.name, object.uid, tell, stop);
  if (told.ok() && news) {
    events_.Record(OwnerOf(object), true, "InvalidSpec", message);
  }
  return told.status();
}

Status TrainingJobWork::TellSuspended(const k8s::Object& object, const std::stop_token& stop) {
  const auto tell = [](const k8s::Object& current, k8s::TrainingJobStatus& status) {
    if (status.job || HasEnded(status)) {
      return;
    }
    const std::string now = k8s::Rfc3339(WallMicros());
    status.observed_generation = k8s::GenerationOf(current);
    k8s::SetCondition(status, k8s::kConditionQueued, false, "Suspended", "", now);
    k8s::SetCondition(status, k8s::kConditionSuspended, true, "NotBegun",
                      "it begins when spec.suspend is false", now);
  };
  return k8s::ChangeTrainingJobStatus(client_, namespace_, object.name, object.uid, tell, stop)
      .status();
}

Status TrainingJobWork::Delete(const k8s::Object& object, const std::stop_token& stop) {
  return k8s::DeleteAll(client_, {{k8s::kTrainingJobs, namespace_, object.name, object.uid, 1}},
                        stop)
      .at(0)
      .status;
}

}  // namespace sluice::executor
