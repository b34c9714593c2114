#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/storage/byte_parts.h"

namespace sluice::elastic {

// Describes a checkpoint: a consistent cut through a job. The parameters with their slots and
// windows are stored partition by partition (Partition::Save), whichever server held them, so that
// any number of servers can load them.
struct CheckpointManifest {
  uint64_t cut = 0;   // counts up within a directory
  std::string model;  // DescribeModel: the model of the partitions
  uint32_t partitions = 0;
  bool synchronous = false;
  uint32_t servers = 0;  // that wrote it; for people
  // The position of the queue at the cut, as saved by the task queue: everything that it counts as
  // committed is in the partitions.
  std::string queue_state;
  int64_t steps = 0;  // that the queue counts as committed; for people
  Epoch epoch = kNoEpoch;
  // Of the job that wrote it: its plan (plan::TrainPlan), and a description of its data
  // (job_checkpoints.h). The job that resumes must match both.
  std::string plan;
  std::string data;
  struct File {
    uint32_t partition = 0;
    std::string name;
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
    // The name of the draft for which it was written, unique over all jobs.
    std::string draft;
    std::string digest;  // SHA-256 of that name, the partition's number and its bytes
    bool operator==(const File&) const = default;
  };
  std::vector<File> files;
  bool operator==(const CheckpointManifest&) const = default;
};

// A directory of checkpoints:
//   checkpoint-<cut>/manifest            written last, with a CRC-32C of its own
//   checkpoint-<cut>/partition-<p>       a server's partitions; p is the first of them
//   lock                                 locked by the one process that has it open
//   ending                               the job that was about to store its model, see
//   SetCommittingJob
// A checkpoint is written under another name and renamed when all of it is on disk, so one with its
// final name is complete, unless the disk has damaged it since. Copies of this object count as one
// opener. Pure except for the file system; not thread-safe.
class CheckpointDirectory {
 public:
  // Creates `path` if it does not exist. FailedPrecondition: it cannot be written; it has files but
  // no checkpoints, so it belongs to something else; or another opener has it (the system releases
  // a dead process's lock). `keep`: this many of the newest are kept; 0: all.
  static Result<CheckpointDirectory> Open(const std::string& path, uint32_t keep);
  const std::string& path() const { return path_; }

  // An empty folder for the files of the next checkpoint, and its cut.
  struct Draft {
    uint64_t cut = 0;
    std::string path;
  };
  Result<Draft> Begin();
  // Writes files of a draft: they are on disk when this returns. Static: called by servers. A
  // partition's contents write its bytes to a sink, in order.
  using Contents = std::function<Status(const PartSink& sink)>;
  using Partitions = std::map<uint32_t, Contents>;
  static Result<std::vector<CheckpointManifest::File>> WritePartitions(
      const std::string& draft, const Partitions& partitions);
  static Result<CheckpointManifest::File> WritePartition(const std::string& draft,
                                                         uint32_t partition,
                                                         const Contents& contents);
  // Makes the draft a checkpoint, then removes those that are too old.
  Status Commit(const Draft& draft, CheckpointManifest manifest);
  // Removes every checkpoint: the job is finished.
  Status Clear() const;
  // Job `job` is about to store its model. Kept until Clear: an opener that finds checkpoints and
  // this number can ask the catalog whether the model was stored, so that the checkpoints are only
  // left over.
  Status SetCommittingJob(int64_t job) const;
  // Internal: it cannot be read.
  Result<std::optional<int64_t>> CommittingJob() const;

  // The newest complete checkpoint; nullopt: the directory has no checkpoints. Internal: all of
  // them are damaged. With `model`, FailedPrecondition: it is of another model.
  struct Found {
    std::string path;
    CheckpointManifest manifest;
    std::vector<std::string> damaged;  // newer ones that are incomplete, and why
  };
  Result<std::optional<Found>> Newest() const;
  Result<std::optional<Found>> Newest(const std::string& model) const;
  // Static: called by servers with the data of `Found`. If the bytes are not those that were
  // written, reading fails at the last byte at the latest.
  static Result<std::unique_ptr<ByteSource>> OpenPartition(const std::string& path,
                                                           const CheckpointManifest::File& file);

 private:
  struct Opener;
  CheckpointDirectory(std::string path, uint32_t keep);
  std::vector<uint64_t> Cuts() const;  // ascending
  std::string PathOf(uint64_t cut) const;
  Status Remove(uint64_t cut) const;
  Status Prune() const;

  std::string path_;
  uint32_t keep_ = 0;
  std::shared_ptr<Opener> opener_;
};

// "step 1200 in /checkpoints/m (checkpoint-7, 91234 bytes)": an event's detail.
std::string DescribeCheckpoint(const CheckpointDirectory& directory,
                               const CheckpointDirectory::Draft& draft, int64_t steps,
                               uint64_t bytes);

}  // namespace sluice::elastic
