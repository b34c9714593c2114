#include <future>
#include <utility>

#include "elastic/server/server_snapshot_internal.h"
#include "elastic/storage/background.h"

namespace sluice::elastic {
namespace {

// During the training, on a thread of its own.
Result<std::vector<CheckpointManifest::File>> WriteImages(
    const std::string& draft, std::map<uint32_t, PartitionImage>&& images) {
  LowerPriority();
  CheckpointDirectory::Partitions partitions;
  for (auto& [partition, image] : images) {
    partitions.emplace(partition, [&image = image](const PartSink& sink) {
      return std::move(image).Encode(sink);
    });
  }
  return CheckpointDirectory::WritePartitions(draft, partitions);
}

}  // namespace

Status ServerSnapshot::Take(const std::vector<uint32_t>& partitions, ParameterShard& shard) {
  std::map<uint32_t, PartitionImage> images;
  for (const uint32_t partition : partitions) {
    ASSIGN_OR_RETURN(PartitionImage image, shard.Capture(partition));
    images.emplace(partition, std::move(image));
  }
  const MutexLock lock(mutex_);
  images_ = std::move(images);
  return Status();
}

Result<std::vector<CheckpointManifest::File>> ServerSnapshot::Write(const std::string& draft) {
  std::map<uint32_t, PartitionImage> images;
  {
    const MutexLock lock(mutex_);
    images.swap(images_);
  }
  return std::async(std::launch::async, WriteImages, draft, std::move(images)).get();
}

}  // namespace sluice::elastic
