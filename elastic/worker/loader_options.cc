#include "elastic/worker/loader_options.h"

#include "planner/plan.pb.h"

namespace sluice::elastic {

ShardLoader::Options LoaderOptionsOf(const Worker::Job& job) {
  ShardLoader::Options options;
  options.watch = job.reads;
  options.clock = job.clock;
  if (job.plan.database_patience_seconds() > 0) {
    options.patience_seconds = job.plan.database_patience_seconds();
  }
  if (job.plan.disk_cache() != plan::TrainPlan::NO_CACHE) {
    options.spill.emplace();
    options.spill->judges = job.plan.disk_cache() == plan::TrainPlan::WHERE_FASTER;
    options.spill->on_end = job.rows_read_again;
  }
  return options;
}

}  // namespace sluice::elastic
