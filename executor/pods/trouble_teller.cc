#include "executor/pods/trouble_teller.h"

#include <fmt/core.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "executor/jobs/job_record.h"
#include "k8s/rfc3339.h"
#include "k8s/training_job.h"
#include "k8s/training_job_change.h"

namespace sluice::executor {

TroubleTeller::TroubleTeller(k8s::ApiClient& client, std::string namespace_name,
                             k8s::EventRecorder& events, LoginOf login_of)
    : client_(client),
      namespace_(std::move(namespace_name)),
      events_(events),
      login_of_(std::move(login_of)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void TroubleTeller::Tell(const KeptJob::Job& job, const KeptJob::Trouble& trouble) {
  const MutexLock lock(mutex_);
  untold_.push_back({job, trouble});
  changed_.notify_all();
}

void TroubleTeller::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    News news;
    {
      MutexLock lock(mutex_);
      if (!changed_.wait(lock.native(), stop,
                         [this]() REQUIRES(mutex_) { return !untold_.empty(); })) {
        return;
      }
      news = std::move(untold_.front());
      untold_.pop_front();
    }
    for (const Status& told : {WriteCondition(news, stop), WriteRow(news, stop)}) {
      if (!told.ok() && !stop.stop_requested()) {
        log::Warn("job={} does not say that its master waits: {}", news.job.number, told.message());
      }
    }
  }
}

// Until there is a master, which says it itself.
Status TroubleTeller::WriteCondition(const News& news, const std::stop_token& stop) {
  const k8s::Owner& owner = news.job.owner;
  if (owner.kind != k8s::kTrainingJobKind) {
    return OkStatus();
  }
  events_.Record(owner, true, news.trouble.reason, news.trouble.message);
  const auto tell = [&news](const k8s::Object&, k8s::TrainingJobStatus& status) {
    if (!HasEnded(status) && !k8s::Holds(status, k8s::kConditionRunning)) {
      k8s::SetCondition(status, k8s::kConditionQueued, true, news.trouble.reason,
                        news.trouble.message, k8s::Rfc3339(WallMicros()));
    }
  };
  return k8s::ChangeTrainingJobStatus(client_, namespace_, owner.name, owner.uid, tell, stop)
      .status();
}

Status TroubleTeller::WriteRow(const News& news, const std::stop_token& stop) {
  const Login login = login_of_(news.job);
  ASSIGN_OR_RETURN(const auto catalog, catalog::OpenCatalog(login.url, login.secret, stop));
  const std::string text =
      fmt::format("the job's master waits: {}: {}", news.trouble.reason, news.trouble.message);
  const int64_t now = WallMicros();
  RETURN_IF_ERROR(catalog->jobs().AddEvents(news.job.number, {{now, "pod_waits", text}}));
  return catalog->jobs().KeepRecord(news.job.number, NoticeName(now), text);
}

}  // namespace sluice::executor
