#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "elastic/master/all_reduce_rounds.h"
#include "elastic/master/checkpoint_schedule.h"
#include "elastic/master/early_stopping.h"
#include "elastic/master/journal_writer.h"
#include "elastic/master/outbox.h"
#include "elastic/master/pass_results.h"
#include "elastic/master/pass_shards.h"
#include "elastic/master/progress.h"
#include "elastic/master/progress_meter.h"
#include "elastic/master/suspension.h"
#include "elastic/master/train_outcome.h"
#include "elastic/master/validation_result.h"
#include "elastic/master/weights_handover.h"
#include "elastic/master/worker_pool.h"
#include "elastic/master/world_checkpoint.h"
#include "elastic/parameters/placement.h"
#include "elastic/queue/evaluation.h"
#include "elastic/queue/rendezvous.h"
#include "elastic/queue/staleness_bound.h"
#include "elastic/queue/task_queue.h"
#include "elastic/rpc/links.h"
#include "elastic/rpc/world.h"
#include "elastic/storage/checkpoint.h"

namespace sluice::elastic {

class MasterSave;

// The master's state machine: what happens in a job, and what has to be done about it. Events go
// in, actions come out; it starts no process, never waits, and reads no clock. Not thread-safe.
class Master {
 public:
  struct Options {
    TaskQueue::Options queue;
    int64_t evaluation_shards = 0;  // 0: nothing to evaluate on
    models::Task task = models::Task::kBinary;
    size_t outputs = 1;
    uint32_t patience = 0;         // epochs without improvement before the job stops; 0: off
    bool needs_validation = true;  // required to stop early: without validation rows, the job fails
    uint32_t plateau = 0;          // before the learning rate is lowered, each time; 0: never
    // By epoch: how often the learning rate is lowered before it, instead of by the plateau; empty:
    // by the plateau.
    std::vector<uint32_t> rate_cuts;
    std::string metric;                        // must improve; empty: the training loss
    std::vector<std::string> further_metrics;  // requested in addition to the standard ones
    int64_t estimated_rows = 0;
    std::string job_name;
    // Incarnations and names ("job1-worker-7") below these are not used: processes of an earlier
    // life of the job, which had to begin again, may still have them on a node that was lost.
    Incarnation first_incarnation = Incarnation::First();
    int workers_before = 0;
    uint32_t workers = 1;
    int64_t worker_bytes = 0;  // WorkerPool::Options
    // The largest number of batches between the fastest worker and the slowest; nullopt: no limit.
    std::optional<uint32_t> staleness;
    // A worker that is silent for this long is lost, and another process is started in its place.
    double silence_seconds = 10;
    double journal_seconds = 30;  // the job ends if the journal takes longer for one entry
    // A job whose workers cannot read, because of a lock or for lack of a connection, is given up
    // when nothing has been trained for this long.
    double database_seconds = 60;
    // Give up a shard on which code fails repeatedly, and report it, instead of failing the job.
    bool skip_poison = false;
    // Rows of the snapshot as counted by the database, without a validation select's; -1: unknown.
    int64_t snapshot_rows = -1;
    bool splits = false;  // evaluation reads the shards that are trained on
    std::optional<Rendezvous::Options> all_reduce;  // the workers hold the parameters themselves
    int64_t checkpoint_steps = 0;  // steps from one checkpoint to the next, at least; 0: none
    // The job has lost its parameters once, and began again without a checkpoint. Masters that take
    // over know it from the journal.
    bool begun_again = false;
    // An epoch is a pass: the caller waits for the sums of its shards (kPassDone) and decides
    // whether there is another pass (NextPass) or not (EndPasses). A master that takes over begins
    // a pass again, and the search with what it has remembered (Remember).
    bool passes = false;
    // Of a job that makes passes: a worker reports the sums of several shards as one.
    bool merges = false;
  };

  Master(const Options& options, TimePoint now);

  // A master that continues from the end of the previous one's journal. `term`: above that of every
  // earlier master. `alive`: the names of the existing worker processes; they keep their tasks,
  // others are replaced, unknown ones stopped. Work that the journal does not record is repeated,
  // and the parameter servers do not apply it twice.
  static Result<std::unique_ptr<Master>> TakeOver(const Options& options, Term term,
                                                  const std::vector<std::string>& journal,
                                                  const std::vector<std::string>& alive,
                                                  TimePoint now);
  // Everything that has happened since the last call, as one entry for the journal; empty: nothing.
  // The caller stores it before carrying out any of the actions that were taken with it
  // (Options::queue.journal). `anew`: the entry contains the whole state, and earlier ones are
  // superfluous.
  // ResourceExhausted: it is larger than an entry may be.
  Result<std::string> TakeJournal(bool* anew = nullptr);
  // Written to the journal with the next entry, and restored from it.
  void SetPlacement(const Placement& placement) { journal_.SetPlacement(placement); }
  const Placement& placement() const { return journal_.placement(); }

  using Action = Outbox::Action;
  using Event = Outbox::Event;
  // What it has decided. Other components add their events for the user.
  Outbox& outbox() { return outbox_; }
  const Outbox& outbox() const { return outbox_; }

  // The job ends with the epoch that is being trained.
  void EndWithEpoch() { ends_with_epoch_ = true; }
  // Registers a worker that another component starts.
  Incarnation Expect(const std::string& name, TimePoint now) { return pool_.Expect(name, now); }
  // Starts the workers of the job (all at once), and replacements for lost ones. `alive`: names of
  // workers that somebody has started before, which a master that took over knows already. The
  // first ones of the job are taken, and drained if they are too many; the others are stopped.
  void Start(TimePoint now, const std::vector<std::string>& alive = {});
  // From now on the job has this many workers: starts more, or drains some, which hand back their
  // tasks and leave; that is no failure, and they are not replaced. With none the job waits.
  // `give_up`: the names of those that leave first.
  void Scale(uint32_t workers, TimePoint now, const std::vector<std::string>& give_up = {});
  // Messages of workers. An error: the incarnation has been given up (Aborted). `held`: the tasks
  // that the worker has; any other lease in its name was lost on the way to it and returns to the
  // queue.
  Result<MasterLink::Answer> Take(Incarnation worker, bool waiting, const std::vector<TaskId>& held,
                                  TimePoint now);
  Result<LeaseStatus> Report(Incarnation worker, const TaskReport& report, TimePoint now);
  // Bounded staleness: whether the worker, which has pushed this many batches since its start, may
  // begin another now.
  Result<bool> MayBegin(Incarnation worker, int64_t pushed, TimePoint now);
  Status Fail(Incarnation worker, TaskId task, const Status& cause, TimePoint now);
  Status Leave(Incarnation worker, TimePoint now);
  // A worker that computes or reads for long is alive nevertheless; its leases are renewed by Take
  // and Report, not by this. True: the job is over.
  Result<bool> Heartbeat(Incarnation worker, TimePoint now);
  // What the worker has to tell people: an event of this kind. That rows are read again is told
  // once for all of a job's workers.
  void Tell(Incarnation worker, const std::string& kind, const std::string& what);
  // Events of the fleet.
  void OnExit(const std::string& name, ExitClass exit_class, const std::string& message,
              TimePoint now);
  // The fleet has no room for it now: not a failure; requested again every second.
  void OnNotStarted(const std::string& name, const std::string& why, TimePoint now);
  // Every process with parameters keeps those that were ordered. `digest`: theirs (partition.h).
  void OnWeightsKept(const std::string& digest, TimePoint now);
  // Of the kept weights; empty: none, or unknown.
  const std::string& best_digest() const { return early_stopping_.best().digest; }

  // Passes (Options::passes).
  PassResults& passes() { return passes_; }
  // For the search of a master that takes over: what it finds in `remembered`, in order.
  void Remember(std::string what, TimePoint now);
  const std::vector<std::string>& remembered() const { return journal_.remembered(); }
  void NextPass(TimePoint now);
  void EndPasses(TimePoint now);
  // A new job goes on from a checkpoint: with what was remembered, over rows that must be as known.
  // Precondition: known of as many shards.
  void ResumePasses(std::vector<std::string> remembered, const Ledger::Known& rows);
  // After a takeover: starts from the beginning, with the existing workers.
  void BeginPassesAgain(TimePoint now);

  // All-reduce (master_world.cc): the workers' regroups. Errors as of Take.
  Result<WorldAnswer> Regroup(Incarnation worker, const WorldArrival& arrival, TimePoint now);
  Result<StepAnswer> ReportStep(Incarnation worker, WorldId world, int64_t closed,
                                const RoundPosition& position, TimePoint now);
  // The first delivery counts, and ends the job.
  Status Deliver(Incarnation worker, models::NetworkWeights weights);
  WeightsHandover& handover() { return handover_; }

  // Checkpoints (master_checkpoint.cc). A new job resumes from a cut: no process of the old one is
  // left, and what had not been committed then is repeated.
  static Result<std::unique_ptr<Master>> Resume(const Options& options, const std::string& cut,
                                                TimePoint now);
  // Queue, evaluation and early stopping as they are now, into the manifest.
  void SaveCut(CheckpointManifest* manifest) const;
  // The requested checkpoint is on disk, or will not be.
  void OnCheckpoint(TimePoint now);
  // A checkpoint begins as soon as possible; when it is over, or cannot be made for
  // Suspension::kLongestSeconds, the job ends (Aborted), to resume from the last one. A master that
  // takes over does not know of it. Only with Options::checkpoint_steps.
  void Suspend(TimePoint now);
  bool suspended() const { return running_phase_.has_value(); }
  // All-reduce: the next rank 0 that reports a step writes the parameters into the offered draft,
  // and the cut is made there.
  WorldCheckpoint& world_checkpoint() { return world_checkpoint_; }
  Status Written(Incarnation worker, const std::string& draft,
                 const Result<CheckpointManifest::File>& file, TimePoint now);
  // The job cannot continue because no process with the parameters is left: a checkpoint may help.
  // A master that takes over knows it, too.
  bool parameters_lost() const { return parameters_lost_; }

  void Tick(TimePoint now);
  void Abort(const Status& cause);  // cancelled, for example
  void LoseParameters(const Status& cause);

  // The job is over, with this result.
  const Options& options() const { return options_; }
  bool finished() const { return phase_ == Phase::kSucceeded || phase_ == Phase::kFailed; }
  const Status& result() const { return result_; }
  Progress Describe(TimePoint now);
  // For a job that succeeded: everything but the weights.
  TrainOutcome Outcome() const;
  // Options::workers_before and first_incarnation of a further life of the job.
  int workers_started() const { return pool_.started(); }
  Incarnation next_incarnation() const { return pool_.members().next(); }
  size_t workers() const { return pool_.members().size(); }
  const TaskQueue& queue() const { return queue_; }
  const StalenessBound& staleness() const { return staleness_; }

 private:
  uint32_t RateCuts() const;  // before the epoch that is being trained
  int64_t steps() const;      // of the optimizer; of trees: rounds
  // master_passes.cc: shards that the worker adds up and reports together; none: it has to wait.
  std::vector<Task> TakeShards(Incarnation worker, TimePoint now);
  Result<TaskQueue::Answer> ReportPass(Incarnation worker, const TaskReport& report, TimePoint now);
  // Holds the lanes of an all-reduce round: no worker's incarnation.
  static constexpr Incarnation kAllWorkers = kNoIncarnation;
  // kComparing: reads the rows that were last read before the checkpoint from which the job
  // resumed.
  enum class Phase {
    kTraining,
    kEvaluating,
    kKeeping,
    kExporting,
    kSucceeded,
    kFailed,
    kComparing,
    kBetweenPasses,
  };

  // master_journal.cc
  void SaveState(MasterSave* save) const;
  Status RestoreState(const MasterSave& save, TimePoint now);
  void SaveWorld(MasterSave* save) const;
  Status RestoreWorld(const MasterSave& save);
  Status Replay(const std::vector<std::string>& entries, TimePoint now);
  void Adopt(Term term, const std::vector<std::string>& alive, TimePoint now);

  // Workers may exit: not before the job's weights are stored (WeightsHandover).
  bool Dismissed() const;
  bool OthersTrain(Incarnation worker) const;
  Status CheckMember(Incarnation worker, TimePoint now);
  void Renew(Incarnation worker, TimePoint now);
  void Requeue(const std::vector<Task>& tasks);
  // Code failed on the shard. True: the job is over.
  bool Charge(Incarnation worker, ShardId shard, const Status& cause, TimePoint now);
  // The worker has waited long enough for a lock, or for a connection: the shard is not charged,
  // and the job continues as long as others train. False: it is another kind of error.
  bool FailForDatabase(Incarnation worker, TaskId task, const Status& cause, TimePoint now);
  void GiveUp(Incarnation worker, ExitClass how, const std::string& why, TimePoint now);
  void Replace(const WorkerPool::Lost& lost, ExitClass how, const std::string& why, TimePoint now);
  void StartWorkers(const std::vector<WorkerPool::Process>& processes);
  void StopUnknown(const std::vector<std::string>& alive);
  void Advance(TimePoint now);
  void EndEpoch(TimePoint now);
  void OrderKeep();
  void AfterEpoch();
  void Finish();
  void StartComparing();
  Status CompareRows(const TaskReport& report);
  void Conclude();
  Status CheckSnapshot() const;
  // master_checkpoint.cc
  void CheckpointIfDue(TimePoint now);
  void SuspendIfDue(TimePoint now);
  void EndSuspended();
  void BeginCheckpoint();
  void DropWorldCheckpoint(const std::string& why, TimePoint now);
  // master_world.cc
  void Commit(const RoundPosition& position, TimePoint now);
  void TryRegroup(TimePoint now);
  void BeginAgain();
  WorldAnswer AnswerTo(Incarnation worker) const;
  bool ChargeLanes(Incarnation worker, TaskId task, const std::string& why);

  Options options_;
  Phase phase_ = Phase::kTraining;
  Status result_;
  TaskQueue queue_;
  WorkerPool pool_;
  EvaluationRound evaluation_;
  StalenessBound staleness_;
  EarlyStopping early_stopping_;
  ProgressMeter meter_;
  TimePoint trained_at_;  // when rows were last trained
  // Evaluation tasks count downwards, training tasks upwards; each term begins far from the
  // previous one.
  static TaskId FirstEvaluationTask(Term term) { return TaskId(-1 - (term.value() << 40)); }
  TaskId next_evaluation_task_{-1};
  Outbox outbox_;
  PassResults passes_;
  PassShards pass_shards_;
  std::optional<AllReduceRounds> rounds_;  // of an all-reduce job
  WeightsHandover handover_;               // the same
  bool ends_with_epoch_ = false;
  std::vector<uint32_t> rate_cuts_;  // by epoch, for those that have ended
  ValidationResult validation_;

  CheckpointSchedule checkpoints_;
  WorldCheckpoint world_checkpoint_;
  bool parameters_lost_ = false;
  bool told_rows_read_again_ = false;
  bool told_killed_for_memory_ = false;
  Suspension suspension_;
  std::optional<Phase> running_phase_;  // of a suspended job: the phase in which it continues

  Term term_ = Term::First();
  JournalWriter journal_;
};

}  // namespace sluice::elastic
