#include <algorithm>

#include "elastic/job/fleet_options_internal.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/job_options_internal.h"
#include "elastic/job/training_job.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/worker/passes.h"
#include "models/model.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// More than the number of servers that can be useful, and few enough that each costs little: up to
// nine servers have equal shares to within a tenth.
constexpr uint32_t kPartitions = 64;
constexpr uint32_t kPartitionsPerServer = 4;
// How long the first step of an all-reduce job waits for workers that start slowly.
constexpr double kGatherSeconds = 2;

bool AllReduces(const plan::Strategy& strategy) {
  return strategy.kind() == plan::Strategy::ALL_REDUCE;
}

uint32_t FirstServers(const plan::Strategy& strategy) {
  return std::max<uint32_t>(1, strategy.parameter_servers());
}

}  // namespace

uint32_t MostServers(const plan::Strategy& strategy) {
  return std::max(FirstServers(strategy), strategy.max_parameter_servers());
}

Result<Master::Options> FleetOptionsOf(const TrainingJob& job, const JobEndpoint& endpoint,
                                       size_t outputs) {
  ASSIGN_OR_RETURN(Master::Options options,
                   MasterOptionsOf(job.plan, outputs, job.dataset, job.validation));
  const plan::Strategy& strategy = job.plan.strategy();
  options.job_name = endpoint.job_name;
  options.first_incarnation = endpoint.first_incarnation;
  options.workers =
      endpoint.workers > 0
          ? endpoint.workers
          : std::max<uint32_t>(1, std::max(strategy.workers(), strategy.min_workers()));
  options.worker_bytes = job.plan.estimated_memory_bytes();
  if (AllReduces(strategy)) {
    Rendezvous::Options& group = options.all_reduce.emplace();
    group.min_members = std::max<uint32_t>(1, strategy.min_workers());
    group.max_members = std::max(options.workers, strategy.max_workers());
    group.expected_members = options.workers;
    group.gather_seconds = kGatherSeconds;
  }
  options.checkpoint_steps = job.checkpoints != nullptr ? job.checkpoints->every_steps() : 0;
  return options;
}

ParameterFleet::Options ParameterOptionsOf(const TrainingJob& job, const JobEndpoint& endpoint,
                                           Placement placement) {
  const plan::Strategy& strategy = job.plan.strategy();
  ParameterFleet::Options options;
  options.servers = FirstServers(strategy);
  options.partitions = std::max(kPartitions, MostServers(strategy) * kPartitionsPerServer);
  options.replicas = strategy.replicas() > 0;
  options.key = endpoint.key;
  options.term = endpoint.term;
  if (job.checkpoints != nullptr && !AllReduces(strategy) && !MakesPasses(job.plan)) {
    const CheckpointManifest about = job.checkpoints->Manifest();
    options.checkpoints = job.checkpoints->directory();
    options.model = about.model;
    options.plan = about.plan;
    options.data = about.data;
    options.synchronous = IsSynchronous(job.plan);
    options.restore = job.checkpoints->restore();
    if (options.restore.has_value()) {
      options.partitions = options.restore->manifest.partitions;
    }
  }
  if (placement.next > ServerId::First()) {  // an earlier master has started servers
    options.placement = std::move(placement);
    for (const RunningProcess& process : endpoint.running) {
      if (process.role == Role::kParameterServer) {
        options.running.push_back(process.server_index);
      }
    }
  }
  return options;
}

}  // namespace sluice::elastic
