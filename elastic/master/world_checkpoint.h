#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "elastic/storage/checkpoint.h"

namespace sluice::elastic {

// A checkpoint of an all-reduce job, in three steps: a draft is offered, a worker begins to write
// the parameters of its step into it (the state of the queue is saved at the same step), and they
// are on disk. Pure; not thread-safe.
class WorldCheckpoint {
 public:
  struct Cut {
    CheckpointDirectory::Draft draft;
    CheckpointManifest manifest;
    bool begun = false;  // a worker is writing
  };
  // Replaces one that was offered before.
  void Offer(const CheckpointDirectory::Draft& draft) { cut_ = Cut{draft, {}, false}; }
  // Whether one is offered that no worker has begun.
  bool offered() const { return cut_.has_value() && !cut_->begun; }
  // A worker begins to write the offered one. `manifest`: the queue's part. Returns the draft's
  // path.
  std::string Begin(CheckpointManifest manifest);
  enum class Written {
    kComplete,  // Take returns it
    kFailed,    // the parameters could not be written
    kObsolete,  // it was given up meanwhile
  };
  Written OnWritten(const std::string& draft, const Result<CheckpointManifest::File>& file);
  // Gives up the one that is being written; one that no worker has begun is still wanted. False:
  // none is being written.
  bool Drop();
  std::optional<Cut> Take() { return std::exchange(cut_, std::nullopt); }

 private:
  std::optional<Cut> cut_;
};

}  // namespace sluice::elastic
