#include "elastic/job.h"

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/direct_links.h"
#include "elastic/job_options_internal.h"
#include "elastic/worker.h"
#include "models/model.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {

Result<TrainOutcome> TrainInProcess(const plan::TrainPlan& plan, catalog::DataSource& source,
                                    const catalog::DatasetSpec& dataset,
                                    const catalog::DatasetSpec* validation,
                                    const models::NetworkWeights* base,
                                    const ProgressCallback& progress, const EventCallback& events,
                                    std::stop_token stop) {
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Network> network,
                   models::Network::Make(plan.model()));
  ASSIGN_OR_RETURN(Master::Options options, MasterOptionsOf(plan, *network, dataset, validation));
  // Its only worker is this thread, which cannot hang without the master hanging too.
  options.queue.lease_seconds = 1e9;
  ParameterShard::Options shard_options;
  shard_options.synchronous = IsSynchronous(plan);
  ASSIGN_OR_RETURN(const std::unique_ptr<ParameterShard> shard,
                   ParameterShard::Make(plan.model(), *network, shard_options, base));
  MasterHost host(
      options,
      [&](const Master::Action& action) {
        if (action.kind == Master::Action::Kind::kKeepWeights) {
          return shard->KeepBest(0);
        }
        return Status();
      },
      progress, events);
  DirectMasterLink master(host, host.Expect("worker"));
  DirectParameterLink parameters(*shard, *network);
  ASSIGN_OR_RETURN(const std::unique_ptr<Worker> worker,
                   Worker::Make({plan, source, dataset, validation}, master, parameters));
  RETURN_IF_ERROR(worker->Run(stop));
  RETURN_IF_ERROR(host.result());
  TrainOutcome outcome = host.Outcome();
  ASSIGN_OR_RETURN(outcome.weights, shard->ExportAll(*network));
  return outcome;
}

}  // namespace sluice::elastic
