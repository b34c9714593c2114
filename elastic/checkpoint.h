#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/parameter_rules.h"

namespace sluice::elastic {

// What a checkpoint is: one consistent cut through a job. The parameters with their slots and
// windows are in one file for each partition (Partition::Save), whoever holds it then, so that any
// number of servers can load them.
struct CheckpointManifest {
  uint64_t cut = 0;   // counts up within a directory
  std::string model;  // DescribeModel: what the partitions are of
  uint32_t partitions = 0;
  bool synchronous = false;
  uint32_t servers = 0;  // that wrote it; for people
  // The position of the queue at the cut, as the task queue saves it: nothing that it counts as
  // committed is missing from the partitions.
  std::string queue_state;
  struct File {
    uint32_t partition = 0;
    std::string name;
    uint64_t bytes = 0;
    uint32_t crc = 0;  // CRC-32C
    bool operator==(const File&) const = default;
  };
  std::vector<File> files;
  bool operator==(const CheckpointManifest&) const = default;
};

// Type, optimizers, tensors and tables with their shapes: two models with the same text can load
// each other's partitions.
std::string DescribeModel(const models::ModelSpec& spec, const models::Network& network);

// A directory of checkpoints:
//   checkpoint-<cut>/manifest            written last, with a CRC-32C of its own
//   checkpoint-<cut>/partition-<p>
// A checkpoint is written under another name and renamed when all of it is on the disk, so one that
// has its name is whole, unless the disk has damaged it since. Pure but for the file system; not
// thread-safe.
class CheckpointDirectory {
 public:
  // Creates `path` where it does not exist. FailedPrecondition: there are files in it, and no
  // checkpoints: it is somebody else's. `keep`: the newest so many are kept; 0: all.
  static Result<CheckpointDirectory> Open(const std::string& path, uint32_t keep);

  // An empty place for the files of the next checkpoint, and its cut.
  struct Draft {
    uint64_t cut = 0;
    std::string path;
  };
  Result<Draft> Begin();
  // Writes one file of a draft: on the disk when this returns. Static: servers call it.
  static Result<CheckpointManifest::File> WritePartition(const std::string& draft,
                                                         uint32_t partition,
                                                         std::string_view bytes);
  // Makes the draft a checkpoint, then removes those that are too old.
  Status Commit(const Draft& draft, CheckpointManifest manifest);

  // The newest checkpoint that is whole; none: the directory has no checkpoints. Errors: DataLoss
  // of all of them (Internal), or the newest is of another model (FailedPrecondition).
  struct Found {
    std::string path;
    CheckpointManifest manifest;
    std::vector<std::string> damaged;  // newer ones that are not whole, and why
  };
  Result<std::optional<Found>> Newest(const std::string& model) const;
  // Static: servers call it with what they were told of `Found`.
  static Result<std::string> ReadPartition(const std::string& path,
                                           const CheckpointManifest::File& file);

 private:
  CheckpointDirectory(std::string path, uint32_t keep) : path_(std::move(path)), keep_(keep) {}
  std::vector<uint64_t> Cuts() const;  // ascending
  std::string PathOf(uint64_t cut) const;
  Status Prune() const;

  std::string path_;
  uint32_t keep_ = 0;
};

}  // namespace sluice::elastic
