#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/rpc/links.h"
#include "elastic/worker/lease.h"
#include "elastic/worker/reader_thread.h"
#include "elastic/worker/shard_rows.h"
#include "elastic/worker/worker.h"
#include "models/model.h"

namespace sluice::models {
class GradientBoosting;
class Metrics;
}  // namespace sluice::models

namespace sluice::elastic {

// Shared by a worker's loops: requests tasks, reads their shards, reports progress, and carries out
// evaluations and comparisons at once. One thread.
class WorkerTasks {
 public:
  // Rows read between two batches, two reports, or two checks of the stop request.
  static constexpr size_t kLoadRows = 1024;
  // Fewer are not read at a time.
  static constexpr size_t kLeastRows = 256;

  ~WorkerTasks();
  static Result<std::unique_ptr<WorkerTasks>> Make(const Worker::Job& job, MasterLink& master,
                                                   ParameterLink* parameters);

  void HearStop(std::stop_token stop);
  const std::stop_token& stop() const { return stop_; }
  Status Stopped() const;  // Cancelled: it was requested
  bool finished() const { return finished_; }
  void Finish() { finished_ = true; }  // the master says that the job is over

  // nullopt: there is none now, or the job is over. `waiting`: see MasterLink::Take.
  Result<std::optional<Task>> Ask(bool waiting);
  // Of a pass: tasks that are to be reported together; none: as above.
  Result<std::vector<Task>> AskForShards();
  // A training task with its rows loaded; other tasks are done at once. nullptr: ask again.
  Result<std::unique_ptr<Lease>> Take(bool waiting);
  Status Judge(const Task& task);  // an evaluation or a comparison
  // The lanes of the round after the task's, in the same epoch, that the master will deal to one of
  // so many members. Without task ids.
  std::vector<Task> LanesAfter(const Task& task, Rank rank, size_t members) const;

  // Begins to read the task's shard, one at a time.
  Result<std::unique_ptr<Lease>> Start(Task task);
  // Reads about `rows` further rows. True: all are there, and the lease can be trained. After an
  // error, of which the master has been told, the shard is abandoned.
  Result<bool> Read(Lease* lease, size_t rows);
  // The same, but the master is not told.
  Result<bool> TryRead(Lease* lease, size_t rows);
  // Reads what has not been read yet, and keeps the lease meanwhile. False: the task belongs to
  // another worker now.
  Result<bool> ReadRest(Lease* lease);
  bool waiting_for_database() const { return loader_->waiting(); }
  // A thread of its own reads the started shard: Read only waits for it.
  bool reads_beside() const { return reader_ != nullptr && reader_->reading(); }
  void Abandon();                                         // the shard being read
  void Forget(ShardId shard) { loader_->Forget(shard); }  // its rows are not needed any more

  // False: the task now belongs to another worker. It may have become shorter: then batches beyond
  // its new end are not reported, and it may be done.
  Result<bool> Report(Lease* lease, bool done);
  bool TimeToReport();
  // Tells the master why a task cannot be done, and returns the reason.
  Status Fail(const Task& task, const Status& cause);

  // With other processes: what this worker does not do, one of them does.
  bool SharesWork() const;

  models::Network& network() { return *network_; }  // not of trees
  MasterLink& master() { return master_; }
  ParameterLink& parameters() { return *parameters_; }  // not of trees
  PhaseClock* clock() const { return job_.clock; }      // null: none

 private:
  WorkerTasks(const Worker::Job& job, MasterLink& master, ParameterLink* parameters);
  Status MakeLoaders();
  Result<bool> Load(size_t rows);
  std::vector<uint32_t> OrderOf(const Task& task, const ShardRows& rows) const;
  Status MakeAhead(const Task& task, BatchesAhead* ahead, PhaseClock* clock);
  Status Evaluate(const Task& task);
  Status Compare(const Task& task);
  Status EvaluateOnce(const Task& task, ShardLoader* loader, TaskReport* report);
  Status EvaluateRows(const models::FeatureBatch& rows, models::Metrics* metrics,
                      std::vector<int64_t>* first);
  Status EvaluateTrees(const models::FeatureBatch& rows, models::Metrics* metrics,
                       std::vector<int64_t>* first);
  const models::FeatureTransform& transform() const;
  size_t outputs() const;

  const Worker::Job job_;
  MasterLink& master_;
  ParameterLink* const parameters_;
  std::unique_ptr<models::Network> network_;         // null: trees
  std::unique_ptr<models::GradientBoosting> trees_;  // null: a network
  bool has_forest_ = false;                          // trees_ are those to be judged
  std::unique_ptr<ShardLoader> loader_;
  std::unique_ptr<ShardLoader> validation_loader_;
  std::unique_ptr<models::Network> network_ahead_;  // used by the reader's thread only
  std::unique_ptr<ReaderThread> reader_;            // of loader_; null: this thread reads
  size_t batch_rows_ = 0;
  bool finished_ = false;
  std::stop_token stop_;
  SteadyClock clock_;
  TimePoint last_report_{};

  std::vector<int64_t> judged_;  // the parameters' versions in the last evaluation
  models::FeatureBatch batch_;   // of an evaluation
  models::ParameterView view_;
};

}  // namespace sluice::elastic
