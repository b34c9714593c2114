#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"

namespace sluice::elastic {

// A worker's assignment.
struct Task {
  // kCompare: read shards, and report whether they have changed.
  enum class Kind { kTrain, kEvaluate, kCompare };

  TaskId id = kNoTask;
  Kind kind = Kind::kTrain;
  Epoch epoch = Epoch::First();

  // kTrain: the batches [first_batch, last_batch) of one shard, as far as they exist.
  ShardId shard = ShardId::First();
  BatchIndex first_batch = BatchIndex::First();
  BatchIndex last_batch = kToTheEnd;
  RangeId range = RangeId::First();  // to which the task belongs
  Attempt attempt = Attempt::First();
  // Synchronous mode: position of the shard among the `lanes` of its round. 0 lanes: asynchronous.
  RoundIndex round = RoundIndex::First();
  uint32_t lane = 0;
  uint32_t lanes = 0;
  uint32_t rate_cuts = 0;  // how often the learning rate has been lowered before this epoch

  std::vector<ShardId> shards;  // kEvaluate, kCompare
};

// A worker's report on a task. Sums count from the start of the task, so that a report that arrives
// twice or late changes nothing.
struct TaskReport {
  TaskId task = kNoTask;
  bool done = false;
  bool end_of_shard = false;  // done because the shard has no more batches (not: last_batch)
  BatchIndex next_batch =
      BatchIndex::First();   // every batch before it has been applied on every parameter server
  int64_t batches = 0;       // of the whole shard; 0: not read yet
  int64_t shard_rows = 0;    // training rows of the whole shard, if `batches` is known
  uint64_t checksum = 0;     // of the shard's rows, independent of their order; 0: not computed
  int64_t rows = 0;          // training rows of the batches [first_batch, next_batch)
  int64_t rows_read = 0;     // from the database
  double read_seconds = 0;   // how long that took, without the training in between
  int64_t rows_retried = 0;  // found to be applied already, by a worker that died before reporting
                             // it
  double loss = 0;           // weighted sum, and the sum of the weights
  double weight = 0;
  std::string metrics;              // kEvaluate: models::Metrics, serialised
  std::vector<int64_t> versions;    // kEvaluate: versions of the judged parameters, by partition
  std::vector<uint64_t> checksums;  // kCompare: in the order of Task::shards
  std::string sums;  // kTrain, of a pass: what the shard adds to it (models/pass_training.h)
  // Of the same pass: tasks of other shards, which are done, too, and whose part is in `sums`. All
  // of them count, or none.
  std::vector<TaskReport> merged;
};

// A batch's sum of losses or weights in the form in which it is counted: a multiple of 2^-20, of
// which sums up to 2^33 are exact. So a job's loss does not depend on the order in which its
// batches are reported.
double CountedSum(double sum);

// The maximum number of masters of a job: their tasks are numbered separately.
inline constexpr Term kLastTerm{int64_t{1} << 20};
// A new master's tasks and attempts begin far above those of the previous one, whose last ones may
// be missing from the journal.
TaskId FirstTaskOf(Term term);
Term TermOf(TaskId task);          // of a training task
Attempt AttemptBefore(Term term);  // its first one is the next

// More rows or batches than any job has, and few enough that a sum of many does not overflow.
inline constexpr int64_t kMaxCount = int64_t{1} << 48;
// For a report from another process. InvalidArgument: impossible counts.
Status CheckReport(const TaskReport& report);

// The master's answer to a report.
struct LeaseStatus {
  bool mine = true;  // false: the task now belongs to another worker; drop it
  // Where the task ends now: a part of it may have been given to an idle worker. A report beyond it
  // is not counted: it has to be cut and sent again.
  BatchIndex last_batch = kToTheEnd;
};

}  // namespace sluice::elastic
