#include "executor/local/master_process.h"

#include <fmt/core.h>

#include <cstdio>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "elastic/job/job_journal.h"
#include "executor/executor.h"
#include "executor/jobs/job_record.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_cluster_codec_internal.h"
#include "executor/local/job_cluster_link.h"
#include "executor/local/master.pb.h"
#include "executor/local/wait_for_database.h"
#include "executor/training/train_on_processes.h"

namespace sluice::executor {
namespace {

elastic::JobEndpoint EndpointOf(const MasterConfig& config) {
  elastic::JobEndpoint endpoint(fmt::format("job{}", config.job()));
  endpoint.address = config.address();
  endpoint.key = config.token();
  endpoint.term = elastic::Term(config.term());
  endpoint.workers = config.workers();
  for (const RunningProcessMessage& process : config.living()) {
    endpoint.running.push_back({RoleOf(process.role()), process.name(),
                                elastic::Incarnation(process.incarnation()),
                                elastic::ServerId(process.server_index())});
  }
  return endpoint;
}

Status Train(const MasterConfig& config, const elastic::JobEndpoint& endpoint,
             catalog::DataSource& source, catalog::Catalog& catalog, JobRecord& job,
             JobClusterLink& cluster) {
  elastic::JobJournal journal(catalog.jobs(), job.id());
  TrainingFleet place{cluster, endpoint, journal, config.dataset(),
                      config.has_validation() ? &config.validation() : nullptr};
  place.wanted = [&cluster] { return cluster.IsWanted(); };
  return TrainOnProcesses(config.plan(), source, catalog, job, place,
                          [&cluster](const elastic::Progress& now) { cluster.Report(now); });
}

// The job's row, with the gateway as its runner. IsJobOver: an earlier master has ended it.
Result<catalog::Job> FindJob(const MasterConfig& config, catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(catalog::Job job, jobs.Find(config.job()));
  if (catalog::HasEnded(job.state)) {
    return catalog::JobIsOver(job.id, job.state);
  }
  job.runner = {config.runner_place(), config.runner_pid(), config.runner_started()};
  return job;
}

Status RunMaster(const MasterConfig& config, const MasterSecrets& secrets, std::stop_token stop) {
  const elastic::JobEndpoint endpoint = EndpointOf(config);
  const std::unique_ptr<JobClusterLink> cluster =
      JobClusterLink::Connect(config.cluster(), endpoint);
  const auto both = OpenWhenThere({config.source_url(), secrets.source()},
                                  {config.catalog_url(), secrets.catalog()},
                                  config.plan().database_patience_seconds(), stop);
  if (!both.ok()) {
    static_cast<void>(cluster->Finish(both.status()));  // standard error has the error, too
    return both.status();
  }
  catalog::DataSource& source = *both->source;
  const std::unique_ptr<catalog::Catalog> catalog = both->catalog->For({config.owner()});
  Result<catalog::Job> description = FindJob(config, catalog->jobs());
  if (!description.ok()) {
    static_cast<void>(cluster->Finish(description.status()));
    return description.status();
  }
  const auto job = JobRecord::Adopt(*catalog, *std::move(description), std::move(stop));
  source.HearStop(job->stop_token());
  catalog->HearStop(job->stop_token());
  job->OnNotice([&cluster](const std::string& text) { cluster->Notice(text); });
  const Status trained = Train(config, endpoint, source, *catalog, *job, *cluster);
  job->RecordProfile();
  job->Flush();
  const Status answered =
      cluster->Finish(trained.ok() ? Result<std::string>(job->answer()) : trained);
  // The gateway closes the job, or a later master continues it.
  if (!answered.ok() && answered.code() != Code::kAborted) {
    // The gateway is gone, so this process has to record the end. The gateway's processes died with
    // it, which the training may have noticed first.
    const Code code = trained.code();
    const bool stopped_with_it =
        (code == Code::kCancelled || code == Code::kUnavailable) && !job->cancel_requested();
    static_cast<void>(source.DropLeftovers());  // of the gateway; or else the next one does
    const auto goes_on = CanBeTakenOver(catalog->jobs(), config.job());
    if (stopped_with_it && goes_on.ok() && *goes_on) {
      job->Leave();
      return trained;
    }
    return job->Finish(stopped_with_it ? LostJob(catalog->jobs(), job->job()) : trained);
  }
  // The journal lasts until the job is closed, so if this process dies before it has answered, the
  // next master can continue.
  job->Leave();
  return trained;
}

}  // namespace

int RunMasterProcess(const std::string& config, const std::string& secret, std::stop_token stop) {
  constexpr int kFailed = 1;
  MasterConfig parsed;
  MasterSecrets secrets;
  const Status status = parsed.ParseFromString(config) && secrets.ParseFromString(secret)
                            ? RunMaster(parsed, secrets, std::move(stop))
                            : Internal("the master's configuration is damaged");
  if (status.ok()) {
    return 0;
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return kFailed;
}

}  // namespace sluice::executor
