#include "elastic/job/fleet_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <stop_token>

#include "base/log.h"
#include "base/work_queue.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/fleet/fleet.h"
#include "elastic/job/fleet_calls_internal.h"
#include "elastic/job/fleet_master_internal.h"
#include "elastic/job/fleet_options_internal.h"
#include "elastic/job/fleet_passes_internal.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/process_configs_internal.h"
#include "elastic/job/server_follower.h"
#include "elastic/master/job_processes_internal.h"
#include "elastic/master/master_service.h"
#include "elastic/master/parameter_fleet.h"
#include "elastic/parameters/partition.h"
#include "elastic/rpc/grpc_links.h"
#include "elastic/rpc/wire_internal.h"
#include "elastic/storage/journal.h"
#include "elastic/worker/passes.h"
#include "models/model.h"
#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// A worker that has to leave hands back its work, and is killed after this time.
constexpr double kDrainGraceSeconds = 1.8;
// A process that hangs is killed at once.
constexpr double kHungGraceSeconds = 0;
// Something is wrong with a job that loses its parameters repeatedly without writing another
// checkpoint in between.
constexpr int kMaxReturns = 5;
// Calls to parameter servers and to the disk of checkpoints; one is under way at a time.
constexpr size_t kMaxCallsWaiting = 1'000;

// Runs one job on a fleet by carrying out its master's actions. Calls that may wait for the fleet,
// a server or a disk are made on separate threads, so that none delays another or the master.
class FleetJob {
 public:
  // `network`: null for trees.
  FleetJob(const TrainingJob& job, Fleet& fleet, const models::Network* network,
           JobEndpoint endpoint, const Succession& succession, bool anew, ServerId first_server)
      : job_(job),
        fleet_(fleet),
        network_(network),
        endpoint_(std::move(endpoint)),
        succession_(succession),
        anew_(anew),
        first_server_(first_server) {}
  ~FleetJob() {
    if (fleet_calls_ != nullptr) {
      StopProcesses();
    }
  }

  Result<TrainOutcome> Run(const Master::Options& options) {
    if (endpoint_.key.token.empty()) {
      ASSIGN_OR_RETURN(endpoint_.key.token, MakeJobToken());
    }
    ASSIGN_OR_RETURN(Master master, BeginOrTakeOver({job_, endpoint_, succession_, anew_}, options,
                                                    &journal_term_));
    Placement placement = master.placement();
    MasterHost host(
        std::move(master), succession_.journal, journal_term_,
        [this](const Master::Action& action) { return Act(action); }, progress_, job_.events);
    host_ = &host;
    MakeParameters(host, std::move(placement));
    processes_ = std::make_shared<JobProcesses>(&host, parameters_.get());
    for (const RunningProcess& process : endpoint_.running) {
      processes_->Add(process.name,
                      process.role == Role::kWorker ? kNoServer : process.server_index);
    }
    ASSIGN_OR_RETURN(
        master_,
        MasterServer::Start(endpoint_, host, [this](const MasterServer::ReadyServer& ready) {
          // One of an earlier run may still live where its end cannot be seen; one of this run may
          // have been started before this master.
          const std::string known = processes_->NameOf(ready.server);
          return ready.name ==
                     (known.empty() ? ServerName(endpoint_.job_name, ready.server) : known) &&
                 parameters_->OnRegistered(ready.server, ready.address, ready.node) &&
                 (!ready.leaving ||
                  parameters_->OnLeaving(ready.server,
                                         fmt::format("parameter server {} was lost (it was told to "
                                                     "end)",
                                                     ready.name)));
        }));
    if (MakesPasses(job_.plan)) {
      passes_ = std::make_unique<FleetPasses>(job_, host, *master_);
    }
    configs_.Fill(*master_);
    fleet_calls_ = std::make_unique<FleetCalls>(fleet_, processes_, job_.plan.strategy(),
                                                [this](const Status& why) { OnFailedCall(why); });
    fleet_.Watch([processes = processes_](const FleetEvent& event) { processes->OnEvent(event); });
    Result<TrainOutcome> outcome = RunOn(host);
    if (job_.profile != nullptr) {
      job_.profile->Add(master_->workers_profile());
    }
    // Before the host is destroyed: workers' last calls and the fleet's events still reach it.
    StopProcesses();
    passes_.reset();
    host.With([this](Master& over, TimePoint) {
      lost_parameters_ = over.parameters_lost();
      begun_again_ = over.options().begun_again;
      workers_started_ = over.workers_started();
      next_incarnation_ = over.next_incarnation();
    });
    next_server_ = parameters_->next_server();
    master_.reset();
    return outcome;
  }
  // It failed because the last copy of some parameters was lost.
  bool lost_parameters() const { return lost_parameters_; }
  // It had begun again before, perhaps under an earlier master.
  bool begun_again() const { return begun_again_; }
  // What a further life of the job does not use (Master::Options, ParameterFleet::Options).
  int workers_started() const { return workers_started_; }
  Incarnation next_incarnation() const { return next_incarnation_; }
  ServerId next_server() const { return next_server_; }

 private:
  void StopProcesses() {
    parameters_->Stop();
    parameter_calls_.Stop();
    fleet_calls_->End();  // no process is started any more
    processes_->StopAll(fleet_);
  }

  // On the thread on which the host runs.
  void OnProgress(Progress progress) {
    if (HasServers() && master_ != nullptr) {
      follower_->OnProgress(progress, master_->workers_profile(), SteadyClock().Now());
      progress.servers =
          std::max(parameters_->wanted(), static_cast<uint32_t>(parameters_->map().servers.size()));
      progress.servers_complete = parameters_->complete();
    }
    if (job_.progress) {
      job_.progress(progress);
    }
  }

  void OnFailedCall(const Status& why) {
    host_->With([&](Master& master, TimePoint) { master.Abort(why); });
  }

  Result<TrainOutcome> RunOn(MasterHost& host) {
    RETURN_IF_ERROR(host.result());  // without rows no process is started
    if (HasServers()) {
      parameters_->Start();
    }
    if (passes_ != nullptr) {
      passes_->Start();
    }
    host.With(
        [this](Master& master, TimePoint now) { master.Start(now, LivingWorkers(endpoint_)); });
    configs_.Offer(*master_);
    std::optional<std::stop_callback<std::function<void()>>> suspend;
    if (job_.checkpoints != nullptr) {
      suspend.emplace(job_.suspend, [&host] {
        host.With([](Master& master, TimePoint now) { master.Suspend(now); });
      });
    }
    {
      const std::stop_callback finish(job_.finish, [&host] {
        host.With([](Master& master, TimePoint) { master.EndWithEpoch(); });
      });
      host.Run(job_.stop);
    }
    suspend.reset();
    if (host.suspended() && job_.suspended) {
      job_.suspended();
    }
    parameter_calls_.Stop();  // no checkpoint is written while the model is committed
    RETURN_IF_ERROR(host.result());
    std::string digest;
    TrainOutcome outcome = host.With([&](Master& master, TimePoint) {
      digest = master.best_digest();
      TrainOutcome so_far = master.Outcome();
      so_far.weights = master.handover().Take();  // all-reduce
      return so_far;
    });
    if (passes_ != nullptr) {
      passes_->Stop();
      FleetPasses::Found& found = passes_->found();
      outcome.weights = std::move(found.weights);
      outcome.trees = std::move(found.trees);
      outcome.loss = found.loss;
      outcome.epochs = found.steps;
      outcome.best_epoch = found.best;
      outcome.rows_trained = outcome.rows_per_epoch * found.steps;
    } else if (HasServers()) {
      ASSIGN_OR_RETURN(outcome.weights, parameters_->Collect(*network_, digest));
    } else if (!digest.empty()) {
      RETURN_IF_ERROR(CheckDigest(DigestOf(outcome.weights), digest));
    }
    if (job_.stop.stop_requested()) {  // cancelled at the very end: nothing is committed
      return Cancelled("the training was cancelled");
    }
    if (succession_.commit) {
      RETURN_IF_ERROR(succession_.commit(outcome));
    }
    host.With([](Master& master, TimePoint) { master.handover().Dismiss(); });
    return outcome;
  }

  // The parameters are then in the workers: there are no servers.
  bool HasServers() const { return !AllReduces() && passes_ == nullptr; }
  bool AllReduces() const { return job_.plan.strategy().kind() == plan::Strategy::ALL_REDUCE; }

  void MakeParameters(MasterHost& host, Placement placement) {
    ParameterFleet::Options options = ParameterOptionsOf(job_, endpoint_, std::move(placement));
    options.first_server = first_server_;
    configs_.SetPartitions(options.partitions);
    ParameterFleet::Hooks hooks;
    hooks.start = [this](ServerId server) { return StartServer(server); };
    hooks.stop = [this](ServerId server) {
      const Status asked = fleet_calls_->StopServer(server, kHungGraceSeconds);
      if (!asked.ok()) {
        OnFailedCall(asked);
      }
    };
    hooks.publish = [this](const PartitionMap& map) {
      master_->Publish(map);
      master_->OfferBase(nullptr);  // servers that start later get theirs from others
    };
    hooks.remember = [&host](const Placement& now) { return host.Remember(now); };
    hooks.on_event = [&host](const std::string& kind, const std::string& detail) {
      host.With([&](Master& master, TimePoint) { master.outbox().AddEvent(kind, detail); });
    };
    hooks.fail = [this, &host](const Status& cause) {
      const bool lost = parameters_->lost_partitions();
      host.With([&](Master& master, TimePoint) {
        if (lost) {
          master.LoseParameters(cause);
        } else {
          master.Abort(cause);
        }
      });
    };
    hooks.cut = [&host](CheckpointManifest* manifest) { return host.SaveCut(manifest); };
    hooks.checkpoint_over = [&host] {
      host.With([](Master& master, TimePoint now) { master.OnCheckpoint(now); });
    };
    parameters_ = std::make_unique<ParameterFleet>(options, std::move(hooks));
    follower_ = std::make_unique<ServerFollower>(
        *parameters_, options.servers,
        std::min(MostServers(job_.plan.strategy()), options.partitions),
        [&host](const std::string& detail) {
          host.With([&](Master& master, TimePoint) {
            master.outbox().AddEvent("servers_scaled", detail);
          });
        });
  }

  // On the thread of the parameter fleet.
  Status StartServer(ServerId server) {
    ProcessSpec spec;
    spec.role = Role::kParameterServer;
    spec.name = ServerName(endpoint_.job_name, server);
    spec.server_index = server;
    spec.config = configs_.ForServer(spec.name, server);
    return fleet_calls_->Launch(std::move(spec), 1, [this, server](const Status& status) {
      if (!status.ok()) {
        parameters_->OnNotStarted(server, status);
      }
      return Status();
    });
  }

  // A fleet without room now may have some later: the master waits and asks again.
  Status StartWorker(ProcessSpec spec, double memory_factor) {
    const auto launched = [this, name = spec.name](const Status& status) {
      if (status.code() != Code::kResourceExhausted && status.code() != Code::kUnavailable) {
        return status;
      }
      host_->With(
          [&](Master& master, TimePoint now) { master.OnNotStarted(name, status.message(), now); });
      return Status();
    };
    return fleet_calls_->Launch(std::move(spec), memory_factor, launched);
  }

  Status Keep(const KeepOrder& order) {
    ASSIGN_OR_RETURN(const std::string digest, parameters_->Keep(order));
    host_->With([&](Master& master, TimePoint now) { master.OnWeightsKept(digest, now); });
    return Status();
  }

  Status Act(const Master::Action& action) {
    switch (action.kind) {
      case Master::Action::Kind::kStartWorker: {
        ProcessSpec spec;
        spec.role = Role::kWorker;
        spec.name = action.name;
        spec.incarnation = action.incarnation;
        spec.config = configs_.ForWorker(action.name, action.incarnation);
        spec.secret = job_.source.secret();
        return StartWorker(std::move(spec), action.memory_factor);
      }
      case Master::Action::Kind::kDrainWorker:
        return fleet_calls_->StopWorker(action.name, kDrainGraceSeconds);
      case Master::Action::Kind::kStopWorker:
        return fleet_calls_->StopWorker(action.name, kHungGraceSeconds);
      case Master::Action::Kind::kKeepWeights:
        return parameter_calls_.Put([this, order = action.keep] { return Keep(order); });
      case Master::Action::Kind::kCheckpoint:
        if (AllReduces() || passes_ != nullptr) {
          return parameter_calls_.Put([this] {
            passes_ != nullptr ? passes_->WriteCheckpoint() : OfferDraft(*job_.checkpoints, *host_);
            return Status();
          });
        }
        parameters_->RequestCheckpoint();
        return Status();
      case Master::Action::Kind::kPassDone:
        passes_->OnPassDone();
        return Status();
      case Master::Action::Kind::kCommitCheckpoint:
        return parameter_calls_.Put([this] {
          CommitWorldCut(*job_.checkpoints, *host_);
          return Status();
        });
    }
    return Status();
  }

  const TrainingJob& job_;
  Fleet& fleet_;
  const models::Network* const network_;
  JobEndpoint endpoint_;
  const Succession& succession_;
  const bool anew_;  // the journal describes a run that is over
  const ServerId first_server_;
  JournalTerm journal_term_ = JournalTerm::First();
  bool lost_parameters_ = false;
  bool begun_again_ = false;
  int workers_started_ = 0;
  Incarnation next_incarnation_ = Incarnation::First();
  ServerId next_server_ = ServerId::First();
  MasterHost* host_ = nullptr;
  ProcessConfigs configs_{job_, endpoint_};
  std::unique_ptr<ParameterFleet> parameters_;
  std::unique_ptr<ServerFollower> follower_;
  const ProgressCallback progress_ = [this](const Progress& progress) { OnProgress(progress); };
  std::unique_ptr<MasterServer> master_;
  std::unique_ptr<FleetPasses> passes_;  // of a plan that makes them
  std::shared_ptr<JobProcesses> processes_;
  std::unique_ptr<FleetCalls> fleet_calls_;
  // Last: uses the members above.
  WorkQueue parameter_calls_{"calls of the parameter servers", kMaxCallsWaiting,
                             [this](const Status& why) { OnFailedCall(why); }};
};

}  // namespace

Result<TrainOutcome> TrainOnFleet(const TrainingJob& job, Fleet& fleet, const JobEndpoint& endpoint,
                                  const Succession& succession) {
  std::unique_ptr<models::Network> network;
  size_t outputs = 0;
  if (models::IsTrees(job.plan.model())) {
    ASSIGN_OR_RETURN(const auto trees, models::GradientBoosting::Make(job.plan.model()));
    outputs = trees->outputs();
  } else {
    ASSIGN_OR_RETURN(network, models::Network::Make(job.plan.model()));
    outputs = network->outputs();
  }
  if (job.base != nullptr) {
    RETURN_IF_ERROR(models::CheckShape(*job.base, *network));
  }
  ASSIGN_OR_RETURN(Master::Options options, FleetOptionsOf(job, endpoint, outputs));
  JobEndpoint place = endpoint;
  bool anew = false;
  ServerId first_server = ServerId::First();
  for (int returns = 0;; ++returns) {
    FleetJob life(job, fleet, network.get(), place, succession, anew, first_server);
    Result<TrainOutcome> outcome = life.Run(options);
    if (outcome.ok() || !life.lost_parameters() || job.stop.stop_requested()) {
      return outcome;
    }
    // Its processes have ended, but for those of a node that does not answer.
    anew = true;
    place.running.clear();
    options.workers_before = life.workers_started();
    options.first_incarnation = life.next_incarnation();
    first_server = life.next_server();
    if (job.checkpoints == nullptr) {
      if (life.begun_again()) {
        return outcome;
      }
      options.begun_again = true;
      if (job.events.on_event) {
        job.events.on_event("training_begins_again", outcome.status().message());
      }
      continue;
    }
    ASSIGN_OR_RETURN(const bool further, job.checkpoints->GoBack());
    returns = further ? 0 : returns;
    if (returns == kMaxReturns) {
      return outcome;
    }
    if (job.events.on_event) {
      job.events.on_event("rolled_back", fmt::format("to {}: {}", job.checkpoints->Beginning(),
                                                     outcome.status().message()));
    }
  }
}

}  // namespace sluice::elastic
