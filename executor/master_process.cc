#include <fmt/core.h>

#include <cstdio>

#include "catalog/data_source.h"
#include "executor/child_process.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/master_wire_internal.h"
#include "executor/remote_fleet.h"

// The life of `sluice master`.
namespace sluice::executor {
namespace {

// A job's second and later masters. The processes of the job still run, know the seat's address and
// token, and call again and again; what is missing is the job's state: it needs a journal, and
// there is none yet. This is the one place that refuses.
Status TakeOver(const elastic::MasterSeat& seat) {
  return Unavailable(fmt::format("the job's master was lost, and what it knew was not kept; {} of "
                                 "the job's processes were left for master {}",
                                 seat.living.size(), seat.term))
      .Hint("run the statement again; the version in use is untouched");
}

Status RunMaster(const MasterConfig& config, const std::string& secret, std::stop_token stop) {
  ASSIGN_OR_RETURN(const auto source, catalog::OpenDataSource(config.source_url(), secret));
  ASSIGN_OR_RETURN(catalog::Job description, source->jobs().Find(config.job()));
  const auto job = JobRecord::Adopt(source->jobs(), std::move(description), std::move(stop));
  const elastic::MasterSeat seat = SeatOf(config, fmt::format("job{}", job->id()));
  if (seat.term > 1) {
    return job->Finish(TakeOver(seat));
  }
  RemoteFleet fleet;
  const auto progress = [](const elastic::Progress& now) {
    static_cast<void>(SendToLauncher(ToMessage(now).SerializeAsString()));  // for people only
  };
  const TrainingFleet place{fleet, seat};
  const Result<TrainReport> report = TrainAndCommit(config.plan(), *source, *job, &place, progress);
  RETURN_IF_ERROR(job->Finish(report.status()));
  return SendToLauncher(ToMessage(*report, job->job()).SerializeAsString());
}

}  // namespace

int RunMasterProcess(const std::string& config, const std::string& secret, std::stop_token stop) {
  constexpr int kFailed = 1;
  MasterConfig parsed;
  Status status = parsed.ParseFromString(config)
                      ? RunMaster(parsed, secret, std::move(stop))
                      : Internal("the master's configuration is damaged");
  if (status.ok()) {
    return 0;
  }
  MasterMessage message;
  ToMessage(status, message.mutable_error());
  const Status sent = SendToLauncher(message.SerializeAsString());
  if (!sent.ok()) {
    status.Add(sent);
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return kFailed;
}

}  // namespace sluice::executor
