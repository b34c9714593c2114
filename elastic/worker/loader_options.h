#pragma once

#include "elastic/worker/shard_rows.h"
#include "elastic/worker/worker.h"

namespace sluice::elastic {

// How a job's rows are loaded by one process: its clock and patience, and where rows are kept that
// memory has no room for.
ShardLoader::Options LoaderOptionsOf(const Worker::Job& job);

}  // namespace sluice::elastic
