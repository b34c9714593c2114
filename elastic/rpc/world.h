#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/queue/rendezvous.h"
#include "elastic/queue/task.h"
#include "elastic/storage/checkpoint.h"
#include "models/model.h"

namespace sluice::elastic {

// The position of a world's members in their round, and the reports on its lanes for the ledger.
// The same on every member that has closed the same steps, so any of them can report for all.
struct RoundPosition {
  Epoch epoch = kNoEpoch;
  RoundIndex round = kNoRound;
  BatchIndex step;                // the open one
  std::vector<TaskReport> lanes;  // by lane; sums since the round began
  // No lane has another batch.
  bool Over() const {
    return std::all_of(lanes.begin(), lanes.end(),
                       [](const TaskReport& lane) { return lane.done; });
  }
};

// A worker's message when it comes to regroup.
struct WorldArrival {
  Rendezvous::Arrival at;  // the link fills in the incarnation
  RoundPosition position;
  // The weights that it keeps (early stopping): after how many steps, and their SHA-256.
  int64_t kept = -1;
  std::string kept_digest;
};

// The master's answer.
struct WorldAnswer {
  enum class Work {
    kWait,      // come again
    kTrain,     // the round of `lanes`
    kEvaluate,  // take evaluation tasks until there are none
    kExport,    // hand over the weights
    kFinished,  // the job is over: exit
  };
  Work work = Work::kWait;
  Rendezvous::World world;
  Rank rank = Rank::First();
  std::vector<Task> lanes;
  // The weights after this many steps are the best so far (early stopping); -1: none are kept.
  int64_t best = -1;
};

// The master's answer to rank 0 between two steps.
struct StepAnswer {
  bool regroup = false;  // others wait to join: the members regroup when the open step has closed
  // Not empty: the current parameters are to be written there (checkpoint.h).
  std::string draft;
};

// A worker's connection for regrouping in an all-reduce job. One thread.
class WorldLink {
 public:
  virtual ~WorldLink() = default;
  // Waits a while for the others, then returns kWait.
  virtual Result<WorldAnswer> Regroup(const WorldArrival& arrival) = 0;
  // From rank 0 between two steps: every member has closed this many.
  virtual Result<StepAnswer> ReportStep(WorldId world, int64_t closed,
                                        const RoundPosition& position) = 0;
  // The parameters that were to be written into a draft are on disk, or could not be written.
  virtual Status Written(const std::string& draft,
                         const Result<CheckpointManifest::File>& file) = 0;
  virtual Status Deliver(const models::NetworkWeights& weights) = 0;
};

}  // namespace sluice::elastic
