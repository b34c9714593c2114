#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/master/checkpoint_schedule.h"
#include "elastic/queue/ledger.h"

namespace sluice::models {
struct FeatureBatch;
}

namespace sluice::elastic {

class JobCheckpoints;
class MasterHost;
struct TrainingJob;

// A checkpoint of boosted trees: what their training has remembered (models::TrainingMemory), and
// the rows that it was made of.
struct TreeCheckpoint {
  std::vector<std::string> remembered = {};
  Ledger::Known rows = {};
  uint64_t judges = 0;  // checksum of the rows of validation.select; 0: not known

  int64_t rounds() const {
    return remembered.empty() ? 0 : static_cast<int64_t>(remembered.size()) - 1;
  }
  // ResourceExhausted: it is too large for a checkpoint.
  Result<std::string> Encode() const;
  // Internal: the bytes are not those of a checkpoint of so many shards.
  static Result<TreeCheckpoint> Decode(std::string_view bytes, int64_t shards);
};

// The one from which the job resumes; an empty one: it begins. Internal: it is damaged.
Result<TreeCheckpoint> TreesToResume(const JobCheckpoints* checkpoints, int64_t shards);
// Aborted (40001): the rows of validation.select were others before the checkpoint.
Status CheckJudges(uint64_t then, uint64_t now);
// Writes what the master remembers as the newest checkpoint (Master::Action::kCheckpoint). A
// failure to write does not end the job. `judges`: TreeCheckpoint::judges.
void WriteTreesOf(MasterHost& host, const JobCheckpoints& checkpoints, uint64_t judges);

// The checkpoints of trees that this process grows alone: a copy of what they remember, written by
// a thread of its own. For one thread.
class LocalTreeCheckpoints {
 public:
  // `job` has checkpoints, and outlives this.
  explicit LocalTreeCheckpoints(const TrainingJob& job);

  // Finds where the training goes on.
  Status Restore();
  const std::vector<std::string>& remembered() const { return trees_.remembered; }
  // Some of the rows of a shard, or of validation.select, are read for the first time; and all of
  // them. Aborted (40001): they were others before the checkpoint.
  void AddRows(const models::FeatureBatch& rows);
  Status EndShard(ShardId shard, int64_t training_rows);
  Status EndJudges();
  // The reading begins again.
  void ForgetRows() { checksum_ = 0; }
  // The training can go on from here, too. Writes a checkpoint if one is due.
  void Remember(std::string what);

 private:
  void Write(const TreeCheckpoint& trees);

  const TrainingJob& job_;
  TreeCheckpoint trees_;  // so far
  Ledger ledger_;
  uint64_t checksum_ = 0;  // of what is being read
  Mutex mutex_;
  CheckpointSchedule schedule_ GUARDED_BY(mutex_);
  std::jthread writer_;  // last: it uses the others
};

}  // namespace sluice::elastic
