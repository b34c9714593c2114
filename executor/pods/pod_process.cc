#include "executor/pods/pod_process.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/sleep.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "elastic/job/process.h"
#include "elastic/transport/metrics_page.h"
#include "executor/executor.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/wait_for_database.h"
#include "executor/pods/job_pods.h"
#include "executor/pods/job_status.h"
#include "executor/pods/master_exit.h"
#include "executor/pods/master_journal.h"
#include "executor/pods/master_lease.h"
#include "executor/pods/own_pod.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/shared_config.h"
#include "executor/pods/stored_model.h"
#include "executor/processes/child_process.h"
#include "executor/training/train_again.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr int kNotEnded = 1;

Result<std::string> ReadMounted(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    return FailedPrecondition(fmt::format("{} cannot be read", path))
        .Hint("`sluice master`, `worker` and `ps` are started by a fleet, not by hand");
  }
  return bytes;
}

// Discards output: the job's row has the master's answer, and no client is connected here.
class DiscardingSink final : public ResultSink {
 public:
  void Notice(const std::string& message) override { log::Info("{}", message); }
};

struct OpenJob {
  catalog::Database database;
  std::unique_ptr<catalog::Catalog> catalog;
  catalog::JobState state = catalog::JobState::kRunning;  // as the previous master left it
  JobConfig statement;
};
Result<OpenJob> OpenTheJob(const PodJobConfig& config, const JobSecrets& secrets) {
  constexpr double kPatienceSeconds = 600;
  OpenJob open;
  ASSIGN_OR_RETURN(open.database,
                   OpenWhenThere({config.source_url(), secrets.source()},
                                 {config.catalog_url(), secrets.catalog()}, kPatienceSeconds, {}));
  open.catalog = open.database.catalog->For({config.owner()});
  ASSIGN_OR_RETURN(const catalog::Job row, open.catalog->jobs().Find(config.job()));
  open.state = row.state;
  if (catalog::HasEnded(open.state)) {
    return open;
  }
  ASSIGN_OR_RETURN(const auto records,
                   open.catalog->jobs().Records(config.job(), kStatementRecord));
  const auto statement = records.find(kStatementRecord);
  if (statement == records.end() || !open.statement.ParseFromString(statement->second)) {
    return Internal(fmt::format("the row of job {} does not say what it runs", config.job()));
  }
  return open;
}

// False: the job has ended, or stays suspended. Forgets the recorded rows and master's decisions of
// a suspended job: it continues from its checkpoint.
Result<bool> Resume(const OpenJob& open, const PodJobConfig& config, JobStatus& status,
                    elastic::JournalStore& journal) {
  if (open.state != catalog::JobState::kSuspended) {
    return open.state == catalog::JobState::kRunning;
  }
  ASSIGN_OR_RETURN(const JobStatus::Now now, status.Look({}));
  if (now.requests.suspend) {
    return false;
  }
  catalog::JobStore& jobs = open.catalog->jobs();
  RETURN_IF_ERROR(ForgetJournal(journal));
  RETURN_IF_ERROR(jobs.KeepRecord(config.job(), kDataRecord, ""));
  RETURN_IF_ERROR(
      jobs.AddEvents(config.job(), {{WallMicros(), "job_resumed", "from its checkpoint"}}));
  RETURN_IF_ERROR(jobs.SetSuspended(config.job(), false));
  return true;
}

// A suspended job's master deletes its pod, and ends as every pod that is deleted, with 0.
Result<int> RecordEnd(const OpenJob& open, const PodJobConfig& config, JobStatus& status,
                      const OwnPod& pod) {
  constexpr std::chrono::seconds kKubeletPatience(10);
  ASSIGN_OR_RETURN(const catalog::Job row, open.catalog->jobs().Find(config.job()));
  auto stored = StoredBy(row, open.catalog->models());
  if (!stored.ok()) {
    log::Warn("the status will not say what was stored: {}", stored.status().ToString());
  }
  status.End(row, stored.ok() ? *std::move(stored) : std::nullopt);
  if (row.state != catalog::JobState::kSuspended) {
    return 0;
  }
  if (pod.Delete({})) {
    SleepFor(kKubeletPatience, {});  // SIGTERM ends the process meanwhile
  }
  return kSuspendedExit;
}

std::string PortOf(const PodPlace& place, int port) {
  return place.address.find(':') != std::string::npos ? fmt::format("[{}]:{}", place.address, port)
                                                      : fmt::format("{}:{}", place.address, port);
}

Result<int> RunMaster(const PodJobConfig& config, const JobSecrets& secrets, const PodPlace& place,
                      const KubernetesPlace& kubernetes, MasterExit& end) {
  int64_t term = 0;
  std::from_chars(place.number.data(), place.number.data() + place.number.size(), term);
  ASSIGN_OR_RETURN(const OpenJob open, OpenTheJob(config, secrets));
  ASSIGN_OR_RETURN(auto opened, KubernetesAccess::Open(kubernetes));
  // Shared with the exit, which may ask when this function has returned.
  const std::shared_ptr<KubernetesAccess> access = std::move(opened);
  const OwnPod pod(access->client(), config.namespace_name(), place.name);
  end.AskIfPodGoes([access, pod] { return pod.Goes(); });
  MasterLease lease(access->client(), config, term, [&end] {
    if (!end.told()) {
      end.LeaveToNext(MasterLease::kFollowed);
    }
  });
  // A node that has lost its power may run it once more. MasterJournal would tell it, too, but the
  // journal would then have refused the one that is the newest.
  if (lease.IsFollowed({})) {
    return Status(Code::kAborted, MasterLease::kFollowed);
  }
  JobStatus job_status(access->client(), config, term, place.name);
  MasterJournal journal(open.catalog->jobs(), config.job(), lease, end, {});
  ASSIGN_OR_RETURN(const bool resumed, Resume(open, config, job_status, journal));
  if (!resumed) {
    return RecordEnd(open, config, job_status, pod);
  }
  const auto page = elastic::MetricsPage::Start(PortOf(place, kMetricsPort),
                                                {[&job_status] { return job_status.Metrics(); }});
  if (!page.ok()) {  // the job does not depend on its metrics page
    log::Warn("job={} there are no metrics: {}", config.job(), page.status().message());
  }
  catalog::DataSource::StatementSession session;
  for (const JobConfig::Setting& setting : open.statement.session()) {
    session.emplace_back(setting.name(), setting.value());
  }
  catalog::DataSource& source = *open.database.source;
  RETURN_IF_ERROR(source.BeginStatementWith(session, {}));
  RETURN_IF_ERROR(open.catalog->jobs().AddEvents(
      config.job(),
      {{WallMicros(), "pod_started", fmt::format("{} on {}", place.name, place.node)}}));
  JobPods pods(*access, config, job_status, lease, end,
               {term, PortOf(place, kMasterPort), place.node});
  Context context{source, *open.catalog, open.statement.user(), open.statement.statement(),
                  {},     &pods};
  context.job = config.job();
  context.export_root = "";  // no job writes models' files
  DiscardingSink sink;
  const Status status = Execute(open.statement.plan(), context, sink);
  source.EndStatement();
  static_cast<void>(source.DropLeftovers());  // of earlier masters
  // However it ended, its row must say so; otherwise the next master is needed.
  ASSIGN_OR_RETURN(const catalog::Job row, open.catalog->jobs().Find(config.job()));
  if (row.state != catalog::JobState::kRunning) {
    return RecordEnd(open, config, job_status, pod);
  }
  RETURN_IF_ERROR(status);
  return Internal(fmt::format("job {} is over, and its row does not say so", config.job()));
}

int RunMasterPod(const std::string& config_bytes, const std::string& secret_bytes,
                 const PodPlace& place, const KubernetesPlace& kubernetes,
                 const std::stop_token& stop) {
  // At any time: all that it has promised is in the journal, and the next master does the rest.
  MasterExit end;
  const std::stop_callback evicted(
      stop, [&end] { end.LeaveToNext("evicted: the job goes on with the next master"); });
  PodJobConfig config;
  JobSecrets secrets;
  const Result<int> exit =
      config.ParseFromString(config_bytes) && secrets.ParseFromString(secret_bytes)
          ? RunMaster(config, secrets, place, kubernetes, end)
          : Result<int>(Internal("the configuration of the job's master is damaged"));
  if (exit.ok()) {
    return *exit;
  }
  std::fprintf(stderr, "%s\n", exit.status().ToString().c_str());
  return kNotEnded;
}

Result<int> Run(elastic::Role role, const PodPlace& place, const KubernetesPlace& kubernetes,
                const std::stop_token& stop) {
  ASSIGN_OR_RETURN(std::string config, ReadMounted(place.folder, "config"));
  ASSIGN_OR_RETURN(const std::string secret, ReadMounted(place.folder, "secret"));
  if (role == elastic::Role::kMaster) {
    return RunMasterPod(config, secret, place, kubernetes, stop);
  }
  ASSIGN_OR_RETURN(config, ConfigIn(place, role, config));
  const int exit_code = role == elastic::Role::kWorker
                            ? elastic::RunWorkerProcess(config, secret, stop)
                            : elastic::RunParameterServerProcess(config, stop);
  // Told to end, and ended: that is no error of the pod's.
  return stop.stop_requested() &&
                 elastic::ClassifyExit(exit_code, false) == elastic::ExitClass::kPreempted
             ? 0
             : exit_code;
}

}  // namespace

int RunPod(elastic::Role role, const PodPlace& place, const KubernetesPlace& kubernetes) {
  return RunProcess(
      role, [&, role](const std::stop_token& stop) { return Run(role, place, kubernetes, stop); });
}

}  // namespace sluice::executor
