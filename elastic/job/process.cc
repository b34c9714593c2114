#include "elastic/job/process.h"

#include <fmt/core.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "base/guarded.h"
#include "base/log.h"
#include "base/sleep.h"
#include "catalog/data_source.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/job/direct_links.h"
#include "elastic/job/job_options_internal.h"
#include "elastic/job/process.pb.h"
#include "elastic/rpc/grpc_links.h"
#include "elastic/rpc/wire_internal.h"
#include "elastic/server/parameter_service.h"
#include "elastic/worker/fixed_parameters.h"
#include "elastic/worker/passes.h"
#include "elastic/worker/worker.h"
#include "models/registry/registry.h"

namespace sluice::elastic {
namespace {

constexpr auto kHeartbeat = std::chrono::seconds(1);
// A server without a master stays for this long, since it may have the only copy of its parameters:
// for longer than a master waits for it.
constexpr std::chrono::duration<double> kMasterPatience(2 * kLastCopySilenceSeconds);
// A server that was told to end goes on serving for at most this long, while its master needs it:
// less than its pod's grace period (k8s::kServerGraceSeconds). And how often it asks.
constexpr std::chrono::seconds kHandoverPatience(110);
constexpr std::chrono::milliseconds kHandoverTick(100);
// How long a process waits for its configuration.
constexpr std::chrono::minutes kFirstMasterPatience(10);
// The length of a lease: then the master gives the shard of a reader that reports nothing to
// another worker.
constexpr int kMaxStuckHeartbeats = 20;
// Exit codes, as ClassifyExit reads them.
constexpr int kOk = 0;
constexpr int kApplicationError = 1;
constexpr int kConfigurationError = 126;
constexpr int kPreempted = 143;

Result<ProcessConfig> ParseConfig(const std::string& bytes) {
  ProcessConfig config;
  if (!config.ParseFromString(bytes)) {
    return InvalidArgument("the configuration that this process inherited is damaged");
  }
  return config;
}

JobKey KeyOf(const ProcessConfig& config) {
  JobKey key(config.token());
  key.certificate = config.certificate();
  key.private_key = config.private_key();
  return key;
}

// Tells the master once a second that this process is alive, whatever it is doing. Requests the
// stop when the master says that the job is over, or no longer answers. Ends the process when its
// database does not answer: a thread cannot be freed from such a read in any other way, and in
// all-reduce the others would wait for it forever.
class HeartbeatThread {
 public:
  // `held`: the snapshots that this process keeps alive.
  HeartbeatThread(RemoteMaster& master, ReadWatch& reads, std::stop_source& stop,
                  RemoteMaster::HeartbeatReport held = {})
      : reads_(reads),
        report_(std::move(held)),
        thread_([this, &master, &stop](const std::stop_token& done) {
          if (!Guarded("the heartbeat", [&] { SendHeartbeat(master, stop, done); }).ok()) {
            stop.request_stop();  // the master would soon consider this process dead
          }
        }) {}

 private:
  void SendHeartbeat(RemoteMaster& master, std::stop_source& stop, const std::stop_token& done) {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!wake_.wait_for(lock, done, kHeartbeat, [&] { return done.stop_requested(); })) {
      if (reads_.Beat() >= kMaxStuckHeartbeats) {
        std::fprintf(stderr, "the database has not answered for %d seconds\n", kMaxStuckHeartbeats);
        std::_Exit(kPreempted);
      }
      const std::string waits_for = reads_.waits_for();
      report_.waits_for = waits_for == told_ ? "" : waits_for;
      report_.rows_read_again = reads_.TakeRowsReadAgain();
      const Result<bool> finished = master.Heartbeat(report_);
      told_ = waits_for;
      if (done.stop_requested()) {
        return;
      }
      if (!finished.ok()) {
        log::Warn("leaving the job: {}", finished.status().message());
      }
      if (!finished.ok() || *finished) {
        stop.request_stop();
        return;
      }
    }
  }

  ReadWatch& reads_;
  RemoteMaster::HeartbeatReport report_;
  std::string told_;  // what it waits for
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

// Fills in the parts of a configuration that have to be fetched.
Result<ProcessConfig> Completed(ProcessConfig config, bool server, const std::stop_token& stop) {
  if (!config.configured_by_master()) {
    return config;
  }
  const std::unique_ptr<RemoteMaster> master = RemoteMaster::Connect(
      config.master_address(), KeyOf(config), Incarnation(config.incarnation()), stop);
  const auto begun = std::chrono::steady_clock::now();
  Result<std::string> shared = master->Configure(server);
  // A job's first processes may be started with its master, whose image may take long to arrive.
  while (shared.status().code() == Code::kUnavailable && !stop.stop_requested() &&
         std::chrono::steady_clock::now() - begun < kFirstMasterPatience) {
    shared = master->Configure(server);
  }
  RETURN_IF_ERROR(shared.status());
  if (!config.MergeFromString(*shared)) {
    return InvalidArgument("the configuration that the master hands out is damaged");
  }
  config.set_configured_by_master(false);
  return config;
}

// Keeps the snapshots named in the configuration alive, on connections of their own.
struct HeldSnapshots {
  std::unique_ptr<catalog::Dataset> train, validation;
};
Result<HeldSnapshots> HoldSnapshots(catalog::DataSource& source, ProcessConfig* config) {
  HeldSnapshots held;
  if (!config->holds_snapshot()) {
    return held;
  }
  ASSIGN_OR_RETURN(held.train, source.HoldDataset(config->dataset()));
  *config->mutable_dataset() = held.train->spec();
  if (config->has_validation()) {
    ASSIGN_OR_RETURN(held.validation, source.HoldDataset(config->validation()));
    *config->mutable_validation() = held.validation->spec();
  }
  return held;
}

Result<PartitionMap> FirstMap(RemoteMaster& master, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    ASSIGN_OR_RETURN(PartitionMap map, master.Map(kNoMapVersion));
    if (map.version > kNoMapVersion) {
      return map;
    }
  }
  return Cancelled("stopped before the parameter servers were there");
}

// All-reduce: the parameters of the whole model, in this process.
Result<std::unique_ptr<ParameterShard>> MakeReplica(const ProcessConfig& config,
                                                    const models::Network& network,
                                                    RemoteMaster& master) {
  if (config.base_bytes() == 0) {
    return ParameterShard::Make(config.plan().model(), network, {}, nullptr);
  }
  ASSIGN_OR_RETURN(const models::NetworkWeights base, master.Base(config.base_bytes()));
  return ParameterShard::Make(config.plan().model(), network, {}, &base);
}

Status Work(const ProcessConfig& config, catalog::DataSource& source, RemoteMaster& master,
            ReadWatch& reads, PhaseClock& clock, const std::stop_token& stop) {
  Worker::Job job{
      .plan = config.plan(),
      .source = source,
      .dataset = config.dataset(),
      .validation = config.has_validation() ? &config.validation() : nullptr,
      .reads = &reads,
      .clock = &clock,
      .rows_read_again = [&reads](const std::string& why) { reads.ReadRowsAgain(why); }};
  if (MakesPasses(job.plan)) {
    job.pass = [&master](Epoch epoch, bool whole) { return master.Pass(epoch, whole); };
    job.forest = [&master] { return master.BaseBytes(0); };
  }
  if (models::IsTrees(job.plan.model())) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Make(job, master, nullptr));
    return worker->Run(stop);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Network> network,
                   models::Network::Make(config.plan().model()));
  if (config.plan().strategy().kind() == plan::Strategy::ALL_REDUCE) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ParameterShard> shard,
                     MakeReplica(config, *network, master));
    DirectParameterLink parameters(*shard, *network);
    const Worker::Replica replica{master,
                                  *shard,
                                  config.listen_host(),
                                  KeyOf(config),
                                  config.restore_from(),
                                  FromProto(config.restore_file())};
    ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker,
                     Worker::Make(job, master, &parameters, &replica));
    return worker->Run(stop);
  }
  if (MakesPasses(job.plan)) {
    FixedParameters found(*network, [&master] { return master.Base(0); });
    ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker, Worker::Make(job, master, &found));
    return worker->Run(stop);
  }
  ASSIGN_OR_RETURN(const PartitionMap map, FirstMap(master, stop));
  const std::unique_ptr<ParameterLink> parameters = ConnectParameters(
      map, [&master](MapVersion newer_than) { return master.Map(newer_than); }, KeyOf(config),
      *network, config.plan().strategy().transport() == plan::Strategy::BFLOAT16, stop);
  ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker,
                   Worker::Make(job, master, parameters.get()));
  return worker->Run(stop);
}

int ExitCode(const Status& status) {
  if (status.ok()) {
    return kOk;
  }
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  // Stopped or disconnected: not a failure of a shard, and not charged to one.
  const bool preempted = status.code() == Code::kCancelled || status.code() == Code::kUnavailable ||
                         status.code() == Code::kAborted || catalog::IsUnavailableForNow(status);
  return preempted ? kPreempted : kApplicationError;
}

// Reports to the master once a second that this server runs. One that is told to end asks whether
// it may: where it has the only copy of some partitions, others get them first.
Status ServeUntilStopped(const ProcessConfig& config, ParameterServer& server,
                         const std::stop_token& stop) {
  const std::unique_ptr<RemoteMaster> master =
      RemoteMaster::Connect(config.master_address(), KeyOf(config), kNoIncarnation, {});
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock<std::mutex> lock(mutex);
  auto answered = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> told;
  for (;;) {
    RETURN_IF_ERROR(server.health());
    const auto asked = std::chrono::steady_clock::now();
    if (!told.has_value() && stop.stop_requested()) {
      told = asked;
    }
    const Result<bool> wanted = master->Register(config.name(), ServerId(config.server_id()),
                                                 server.address(), config.node(), told.has_value());
    const bool silent = wanted.status().code() == Code::kUnavailable &&
                        asked - answered < kMasterPatience && !told.has_value();
    if (!silent) {
      RETURN_IF_ERROR(wanted.status());
      if (told.has_value() && (!*wanted || asked - *told >= kHandoverPatience)) {
        return Cancelled("the parameter server was stopped");
      }
      if (!*wanted) {
        return Status(Code::kAborted, "the master has given up this parameter server");
      }
      server.AnsweredByMaster(asked);
      answered = asked;
    }
    if (told.has_value()) {
      std::this_thread::sleep_for(kHandoverTick);
    } else {
      stopped.wait_for(lock, stop, kHeartbeat, [&stop] { return stop.stop_requested(); });
    }
  }
}

// The database may restart, or have no connection left: reports that to the master, and waits.
Result<std::unique_ptr<catalog::DataSource>> OpenSource(const ProcessConfig& config,
                                                        const std::string& secret,
                                                        const std::stop_token& stop) {
  auto source = catalog::OpenDataSource(config.source_url(), secret);
  const double patience = config.plan().database_patience_seconds();
  if (!catalog::IsUnavailableForNow(source.status()) || patience == 0) {
    return source;
  }
  std::stop_source either;
  const std::stop_callback forward(stop, [&either] { either.request_stop(); });
  const std::unique_ptr<RemoteMaster> master =
      RemoteMaster::Connect(config.master_address(), KeyOf(config),
                            Incarnation(config.incarnation()), either.get_token());
  ReadWatch reads;
  const HeartbeatThread heartbeat(*master, reads, either);
  const SteadyClock clock;
  const TimePoint begun = clock.Now();
  while (catalog::IsUnavailableForNow(source.status()) && !either.stop_requested() &&
         SecondsBetween(begun, clock.Now()) < patience) {
    reads.WaitFor(fmt::format("the database cannot be read yet: {}", source.status().message()));
    SleepFor(kHeartbeat, either.get_token());
    source = catalog::OpenDataSource(config.source_url(), secret);
  }
  return source;
}

}  // namespace

Status RunWorker(const std::string& bytes, catalog::DataSource& source, std::stop_token stop) {
  PhaseClock clock(Phase::kStart);
  ASSIGN_OR_RETURN(ProcessConfig parsed, ParseConfig(bytes));
  ASSIGN_OR_RETURN(ProcessConfig config, Completed(std::move(parsed), false, stop));
  const Result<HeldSnapshots> held = HoldSnapshots(source, &config);
  if (!held.ok() && !catalog::IsSnapshotGone(held.status())) {
    return held.status();
  }
  RemoteMaster::HeartbeatReport report;
  if (held.ok() && held->train != nullptr) {
    report.snapshot = config.dataset().snapshot();
    report.validation_snapshot = config.validation().snapshot();
    report.node = config.node();
  }
  std::stop_source either;
  const std::stop_callback forward(stop, [&either] { either.request_stop(); });
  const std::unique_ptr<RemoteMaster> master =
      RemoteMaster::Connect(config.master_address(), KeyOf(config),
                            Incarnation(config.incarnation()), either.get_token());
  master->ReportTime(&clock);
  ReadWatch reads;
  if (!report.snapshot.empty()) {
    // Before it trains on a row: a master that succeeds this one needs the snapshot.
    const Result<bool> told = master->Heartbeat(report);
    if (!told.ok()) {
      log::Warn("the master does not know yet who keeps its snapshot: {}", told.status().message());
    }
  }
  const HeartbeatThread heartbeat(*master, reads, either, std::move(report));
  Status status =
      held.ok() ? Work(config, source, *master, reads, clock, either.get_token()) : held.status();
  const bool final = !held.ok() || status.code() == Code::kInvalidArgument ||
                     status.code() == Code::kNotFound || status.code() == Code::kUnimplemented;
  if (final) {
    // Repeated for errors before the first task; the master ends the job once.
    const Status told = master->Fail(Task(), status);
    if (!told.ok()) {
      log::Warn("the master cannot be told why a worker ends: {}", told.message());
    }
  }
  return status;
}

Status RunParameterServer(const std::string& bytes, std::stop_token stop) {
  ASSIGN_OR_RETURN(ProcessConfig parsed, ParseConfig(bytes));
  ASSIGN_OR_RETURN(const ProcessConfig config, Completed(std::move(parsed), true, stop));
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Network> network,
                   models::Network::Make(config.plan().model()));
  ParameterShard::Options options;
  options.partitions = config.partitions();
  options.synchronous = IsSynchronous(config.plan());
  options.empty = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterShard> shard,
                   ParameterShard::Make(config.plan().model(), *network, options, nullptr));
  ParameterServer::Options service{config.listen_host(), KeyOf(config),
                                   ServerId(config.server_id()), nullptr};
  if (config.base_bytes() > 0) {
    Result<models::NetworkWeights> base =
        RemoteMaster::Connect(config.master_address(), KeyOf(config), kNoIncarnation, stop)
            ->Base(config.base_bytes());
    if (base.ok()) {
      RETURN_IF_ERROR(models::CheckShape(*base, *network));
      service.base = std::make_unique<models::NetworkWeights>(*std::move(base));
    } else if (base.status().code() != Code::kNotFound) {  // by now the others have it
      return base.status();
    }
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterServer> server,
                   ParameterServer::Start(std::move(service), *shard));
  return ServeUntilStopped(config, *server, stop);
}

int RunWorkerProcess(const std::string& config, const std::string& secret, std::stop_token stop) {
  Result<ProcessConfig> parsed = ParseConfig(config);
  if (!parsed.ok()) {
    std::fprintf(stderr, "%s\n", parsed.status().ToString().c_str());
    return kConfigurationError;
  }
  parsed = Completed(*std::move(parsed), false, stop);
  if (parsed.status().code() == Code::kFailedPrecondition) {  // another build than the master's
    std::fprintf(stderr, "%s\n", parsed.status().ToString().c_str());
    return kConfigurationError;
  }
  if (!parsed.ok()) {
    return ExitCode(parsed.status());
  }
  const Result<std::unique_ptr<catalog::DataSource>> source = OpenSource(*parsed, secret, stop);
  if (!source.ok()) {  // the master starts another process, a limited number of times
    return ExitCode(source.status());
  }
  (*source)->HearStop(stop);
  return ExitCode(RunWorker(parsed->SerializeAsString(), **source, std::move(stop)));
}

int RunParameterServerProcess(const std::string& config, std::stop_token stop) {
  return ExitCode(RunParameterServer(config, std::move(stop)));
}

}  // namespace sluice::elastic
