#include <fmt/core.h>

#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "elastic/master/parameter_fleet.h"

namespace sluice::elastic {

void ParameterFleet::RequestCheckpoint() {
  const MutexLock lock(mutex_);
  ++checkpoints_wanted_;
  ++changes_;
  changed_.notify_all();
}

Result<bool> ParameterFleet::CheckpointIfDue() {
  uint64_t wanted = 0;
  {
    const MutexLock lock(mutex_);
    wanted = checkpoints_wanted_;
    if (wanted == checkpoints_written_ || !options_.checkpoints.has_value() ||
        map_.version == kNoMapVersion) {
      return false;
    }
  }
  const Result<CheckpointDirectory::Draft> draft = options_.checkpoints->Begin();
  const Status status = draft.ok() ? TakeCut(*draft) : draft.status();
  bool lost = false;
  {
    const MutexLock lock(mutex_);
    for (const auto& server : map_.servers) {
      lost = lost || !servers_.contains(server.first);
    }
  }
  if (!status.ok() && lost) {
    return status;  // again, once another has replaced the lost one
  }
  checkpoints_written_ = wanted;
  if (!status.ok()) {
    log::Error("a checkpoint could not be written: {}", status.ToString());
    if (status.code() != Code::kCancelled) {
      hooks_.on_event("checkpoint_failed", status.message());
    }
    // Servers may be paused: the same map, installed once more, resumes them.
    RETURN_IF_ERROR(Install(map(), ParameterControl::Phase::kAdopt));
  }
  if (hooks_.checkpoint_over) {
    hooks_.checkpoint_over();
  }
  return true;
}

Status ParameterFleet::TakeCut(const CheckpointDirectory::Draft& draft) {
  const PartitionMap now = map();
  CheckpointManifest manifest;
  manifest.model = options_.model;
  manifest.partitions = options_.partitions;
  manifest.synchronous = options_.synchronous;
  manifest.servers = static_cast<uint32_t>(now.servers.size());
  manifest.plan = options_.plan;
  manifest.data = options_.data;
  const auto frozen = [&] {
    Status cut = hooks_.cut ? hooks_.cut(&manifest) : Status();
    return cut.ok() ? SnapshotAll(now) : cut;
  };
  RETURN_IF_ERROR(Install(now, ParameterControl::Phase::kAdopt, frozen));
  uint64_t bytes = 0;
  for (const auto& [id, address] : now.servers) {
    ASSIGN_OR_RETURN(const std::vector<CheckpointManifest::File> files,
                     control_.Write(address, draft.path));
    for (const CheckpointManifest::File& file : files) {
      bytes += file.bytes;
      manifest.files.push_back(file);
    }
  }
  if (manifest.files.size() != options_.partitions) {
    return Unavailable(fmt::format("{} of {} partitions were written", manifest.files.size(),
                                   options_.partitions));
  }
  const int64_t steps = manifest.steps;
  RETURN_IF_ERROR(options_.checkpoints->Commit(draft, std::move(manifest)));
  hooks_.on_event("checkpoint_written",
                  DescribeCheckpoint(*options_.checkpoints, draft, steps, bytes));
  return Status();
}

// On all servers at the same time: they pause meanwhile.
Status ParameterFleet::SnapshotAll(const PartitionMap& map) const {
  std::vector<Status> statuses(map.servers.size());
  {
    std::vector<std::jthread> threads;
    for (const auto& [id, address] : map.servers) {
      threads.emplace_back([&, id = id, address = address, i = threads.size()] {
        statuses[i] = Guarded("taking a snapshot",
                              [&] { return control_.Snapshot(address, map.PrimariesOf(id)); });
      });
    }
  }
  for (const Status& status : statuses) {
    RETURN_IF_ERROR(status);
  }
  return Status();
}

}  // namespace sluice::elastic
