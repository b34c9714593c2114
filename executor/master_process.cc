#include "executor/master_process.h"

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/sql/sqlstate.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/lost_jobs.h"
#include "executor/master_wire_internal.h"
#include "executor/processes/child_process.h"
#include "executor/remote_fleet.h"

namespace sluice::executor {
namespace {

Result<TrainReport> Train(const MasterConfig& config, catalog::DataSource& source, JobRecord& job) {
  const elastic::JobEndpoint endpoint = EndpointOf(config, fmt::format("job{}", job.id()));
  RemoteFleet fleet(endpoint.living);
  const auto progress = [](const elastic::Progress& now) {
    static_cast<void>(SendToLauncher(ToMessage(now).SerializeAsString()));  // for people only
  };
  const TrainingFleet place{fleet, endpoint, config.dataset(),
                            config.has_validation() ? &config.validation() : nullptr};
  return TrainOnProcesses(config.plan(), source, job, place, progress);
}

// A master that takes over finds the database as it is: restarting, or full.
Result<std::unique_ptr<catalog::DataSource>> OpenSource(const MasterConfig& config,
                                                        const std::string& secret,
                                                        const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kAgain{500};
  const SteadyClock clock;
  const TimePoint begun = clock.Now();
  std::mutex mutex;
  std::condition_variable_any wake;
  std::unique_lock<std::mutex> lock(mutex);
  for (;;) {
    auto source = catalog::OpenDataSource(config.source_url(), secret, stop);
    if (!catalog::IsUnavailableForNow(source.status()) || stop.stop_requested() ||
        SecondsBetween(begun, clock.Now()) >= config.plan().database_patience_seconds()) {
      return source;
    }
    wake.wait_for(lock, stop, kAgain, [] { return false; });
  }
}

Status SendError(const Status& status) {
  MasterMessage message;
  ToMessage(status, message.mutable_error());
  return SendToLauncher(message.SerializeAsString());
}

Status RunMaster(const MasterConfig& config, const std::string& secret, std::stop_token stop) {
  const auto source = OpenSource(config, secret, stop);
  if (!source.ok()) {
    static_cast<void>(SendError(source.status()));  // standard error says it, too
    return source.status();
  }
  Result<catalog::Job> description = (*source)->jobs().Find(config.job());
  if (!description.ok()) {
    static_cast<void>(SendError(description.status()));
    return description.status();
  }
  const auto job = JobRecord::Adopt(**source, *std::move(description), std::move(stop));
  (*source)->HearStop(job->stop_token());
  job->OnTold([](const std::string& text) {
    MasterMessage message;
    message.set_notice(text);
    static_cast<void>(SendToLauncher(message.SerializeAsString()));  // for people only
  });
  const Result<TrainReport> report = Train(config, **source, *job);
  job->Flush();
  const Status answered = report.ok()
                              ? SendToLauncher(ToMessage(*report, job->job()).SerializeAsString())
                              : SendError(report.status());
  if (!answered.ok()) {  // the gateway is gone, and nobody else writes it down
    // Its own processes went with it, which the training may have seen first.
    const Code code = report.status().code();
    const bool stopped_with_it =
        (code == Code::kCancelled || code == Code::kUnavailable) && !job->cancel_requested();
    static_cast<void>((*source)->DropLeftovers());  // of the gateway; or else the next one does
    return job->Finish(stopped_with_it ? LostJob((*source)->jobs(), job->job()) : report.status());
  }
  // The gateway does. Until then the journal lasts, and when this process dies before it has
  // answered, another one can.
  job->Leave();
  return report.status();
}

}  // namespace

int RunMasterProcess(const std::string& config, const std::string& secret, std::stop_token stop) {
  constexpr int kFailed = 1;
  MasterConfig parsed;
  const Status status = parsed.ParseFromString(config)
                            ? RunMaster(parsed, secret, std::move(stop))
                            : Internal("the master's configuration is damaged");
  if (status.ok()) {
    return 0;
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return kFailed;
}

}  // namespace sluice::executor
