#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/storage/checkpoint.h"

namespace sluice::elastic {

// A parameter server's part of a checkpoint: its partitions as of one moment, from when they are
// captured, which is quick, until they are written, while the training continues. Thread-safe.
class ServerSnapshot {
 public:
  // Captures these partitions; an earlier snapshot that was not written is forgotten. The caller
  // makes sure that none of them changes meanwhile.
  Status Take(const std::vector<uint32_t>& partitions, ParameterShard& shard) EXCLUDES(mutex_);
  // Writes it into a draft of a checkpoint (CheckpointDirectory::WritePartitions), once: without a
  // snapshot there is nothing to write.
  Result<std::vector<CheckpointManifest::File>> Write(const std::string& draft) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<uint32_t, PartitionImage> images_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
