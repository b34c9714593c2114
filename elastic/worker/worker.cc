#include "elastic/worker/worker.h"

#include <algorithm>

#include "base/log.h"
#include "elastic/queue/evaluation.h"
#include "elastic/queue/shard_order.h"
#include "elastic/worker/worker_lease_internal.h"
#include "elastic/worker/worker_world_internal.h"
#include "models/features/label_scale.h"
#include "models/metrics/metric.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// Progress reaches the master so often: it bounds what is computed again when a worker dies, and
// renews the lease long before it ends.
constexpr double kReportSeconds = 0.1;
// Rows predicted at a time in an evaluation.
constexpr size_t kEvaluationRows = 4096;
// Rows read between two looks at the stop request.
constexpr size_t kLoadRows = 4096;

}  // namespace

Worker::Worker(const Job& job, MasterLink& master, ParameterLink& parameters)
    : job_(job), master_(master), parameters_(parameters) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::Make(const Job& job, MasterLink& master,
                                             ParameterLink& parameters, const Replica* replica) {
  std::unique_ptr<Worker> worker(new Worker(job, master, parameters));
  ASSIGN_OR_RETURN(worker->network_, models::Network::Make(job.plan.model()));
  RETURN_IF_ERROR(worker->MakeLoaders());
  const plan::Strategy& strategy = job.plan.strategy();
  worker->synchronous_ = strategy.mode() == plan::Strategy::SYNCHRONOUS;
  worker->bounded_ = strategy.mode() == plan::Strategy::BOUNDED_STALENESS;
  // Synchronous: the lanes of a step share the batch that the user asked for.
  const uint32_t lanes = worker->synchronous_ ? std::max(1U, strategy.micro_batches()) : 1;
  const uint32_t batch_size = std::max<uint32_t>(1, job.plan.batch_size());
  worker->batch_rows_ = (batch_size + lanes - 1) / lanes;
  if (replica != nullptr) {
    RETURN_IF_ERROR(worker->JoinWorld(*replica));
  }
  return worker;
}

Status Worker::MakeLoaders() {
  ASSIGN_OR_RETURN(const SplitRule split, SplitRule::Make(job_.plan.split()));
  ShardLoader::Options options;
  options.keep_rows = job_.plan.epochs() > 1;
  options.watch = job_.reads;
  if (job_.plan.database_patience_seconds() > 0) {
    options.patience_seconds = job_.plan.database_patience_seconds();
  }
  if (job_.plan.strategy().memory_bytes() > 0) {
    const int64_t without = job_.plan.estimated_memory_bytes() - job_.plan.estimated_kept_bytes();
    options.most_kept = std::max<int64_t>(0, job_.plan.strategy().memory_bytes() - without);
  }
  // Others read the same shards: workers, or whoever goes on from a checkpoint.
  options.checksum =
      job_.plan.strategy().kind() != plan::Strategy::LOCAL || job_.plan.has_checkpoints();
  ASSIGN_OR_RETURN(
      loader_, ShardLoader::Make(job_.source, job_.dataset, network_->transform(), split, options));
  if (job_.validation == nullptr) {
    return Status();
  }
  options.all_validation = true;
  ASSIGN_OR_RETURN(validation_loader_, ShardLoader::Make(job_.source, *job_.validation,
                                                         network_->transform(), split, options));
  return Status();
}

Status Worker::Run(std::stop_token stop) {
  stop_ = std::move(stop);
  loader_->HearStop(stop_);
  if (validation_loader_ != nullptr) {
    validation_loader_->HearStop(stop_);
  }
  Status status = Work();
  if (!status.ok()) {
    master_.Leave();
  }
  next_.reset();
  lanes_.clear();
  if (loader_->loading()) {
    loader_->Abandon();
  }
  return status;
}

Status Worker::Work() {
  while (!finished_) {
    RETURN_IF_ERROR(Stopped());
    if (world_ != nullptr) {
      RETURN_IF_ERROR(WorkInWorld());
      continue;
    }
    RETURN_IF_ERROR(synchronous_ ? WorkInLockstep() : WorkAsynchronously());
  }
  return Status();
}

Status Worker::Stopped() {
  return stop_.stop_requested() ? Cancelled("the training was stopped") : Status();
}

Status Worker::FailTask(const Task& task, const Status& cause) {
  // A stop and a lost connection are nobody's mistake: the task goes back uncharged.
  if (cause.code() != Code::kCancelled && cause.code() != Code::kUnavailable) {
    const Status told = master_.Fail(task, cause);
    if (!told.ok()) {
      log::Warn("the master does not hear of a failed task: {}", told.message());
    }
  }
  return cause;
}

Result<std::unique_ptr<Worker::Lease>> Worker::TakeAndLoad(bool waiting) {
  ASSIGN_OR_RETURN(MasterLink::Answer answer, master_.Take(waiting));
  if (answer.kind == MasterLink::Answer::Kind::kFinished) {
    finished_ = true;
  }
  if (answer.kind != MasterLink::Answer::Kind::kTask) {
    return std::unique_ptr<Lease>();
  }
  if (answer.task.kind != Task::Kind::kTrain) {
    RETURN_IF_ERROR(Judge(answer.task));
    return std::unique_ptr<Lease>();
  }
  auto lease = std::make_unique<Lease>();
  lease->task = std::move(answer.task);
  RETURN_IF_ERROR(Load(lease.get()));
  return lease->rows == nullptr ? nullptr : std::move(lease);
}

// Without rows when the task has gone to someone else meanwhile.
Status Worker::Load(Lease* lease) {
  lease->rows_read_before = loader_->rows_read();
  lease->next = lease->task.first_batch;
  lease->report.task = lease->task.id;
  lease->report.next_batch = lease->next;
  Status status = loader_->Start(lease->task.shard);
  while (status.ok()) {
    status = Stopped();
    if (!status.ok()) {
      break;
    }
    Result<bool> complete = loader_->Pump(kLoadRows);
    status = complete.status();
    if (status.ok() && *complete) {
      lease->rows = loader_->Finish();
      return Begin(lease);
    }
    // In all-reduce the lanes are held by all together, and nobody reports on his own.
    const bool own_lease = job_.plan.strategy().kind() != plan::Strategy::ALL_REDUCE;
    if (status.ok() && own_lease && !loader_->waiting() && TimeToReport()) {
      // Reading is progress, too: it renews the lease. Waiting for the database is none.
      lease->report.rows_read = loader_->rows_read() - lease->rows_read_before;
      ASSIGN_OR_RETURN(const bool mine, Report(lease, false));
      if (!mine) {
        loader_->Abandon();
        return Status();
      }
    }
  }
  loader_->Abandon();
  return FailTask(lease->task, status);
}

// The rows are there: fixes the order of the batches, and finds where to go on when an earlier
// holder of this shard got further than it could report.
Status Worker::Begin(Lease* lease) {
  const Task& task = lease->task;
  const size_t rows = lease->rows->train.rows;
  lease->order = RowOrder(rows, job_.plan.seed(), task.epoch, task.shard, job_.plan.shuffle());
  lease->batches = static_cast<int64_t>((rows + batch_rows_ - 1) / batch_rows_);
  lease->next = task.first_batch;
  lease->report.task = task.id;
  lease->report.rows_read = loader_->rows_read() - lease->rows_read_before;
  lease->report.batches = lease->batches;
  lease->report.shard_rows = static_cast<int64_t>(rows);
  lease->report.checksum = lease->rows->checksum;
  // In a range that was split off, what an earlier holder could not report is found push by push.
  if (task.attempt > 1 && task.range == 0 && !synchronous_) {
    ASSIGN_OR_RETURN(const int64_t applied, parameters_.AppliedBatches(task.epoch, task.shard));
    while (lease->next < std::min(applied, lease->end())) {
      Count(lease, {});
    }
    lease->report.rows_retried = lease->report.rows;
  }
  lease->report.next_batch = lease->next;
  return Status();
}

void Worker::Count(Lease* lease, const models::LossSum& loss) {
  const int64_t begin = lease->next * static_cast<int64_t>(batch_rows_);
  const int64_t end = std::min<int64_t>(begin + static_cast<int64_t>(batch_rows_),
                                        static_cast<int64_t>(lease->order.size()));
  lease->report.rows += end - begin;
  lease->report.loss += CountedSum(loss.loss);
  lease->report.weight += CountedSum(loss.weight);
  lease->report.next_batch = ++lease->next;
}

BatchIdentity Worker::Identity(const Lease& lease, int64_t batch) const {
  const Task& task = lease.task;
  return {task.epoch,   task.shard, batch,
          task.attempt, task.round, task.lane,
          task.lanes,   task.range, batch + 1 == lease.batches};
}

void Worker::GatherBatch(const Lease& lease, int64_t batch, models::FeatureBatch* out) const {
  const size_t begin = static_cast<size_t>(batch) * batch_rows_;
  const size_t count = std::min(batch_rows_, lease.order.size() - begin);
  GatherRows(lease.rows->train, std::span(lease.order).subspan(begin, count), out);
}

uint64_t Worker::StepSeed(const Lease& lease, int64_t batch) const {
  return MixSeeds(lease.task.epoch, static_cast<uint64_t>(lease.task.shard),
                  static_cast<uint64_t>(batch));
}

bool Worker::TimeToReport() {
  const TimePoint now = clock_.Now();
  if (SecondsBetween(last_report_, now) < kReportSeconds) {
    return false;
  }
  last_report_ = now;
  return true;
}

Result<bool> Worker::Report(Lease* lease, bool done) {
  for (;;) {
    lease->report.done = done;
    lease->report.end_of_shard = done && lease->next >= lease->batches;
    ASSIGN_OR_RETURN(const LeaseStatus lease_status, master_.Report(lease->report));
    if (!lease_status.mine || lease_status.last_batch >= lease->report.next_batch) {
      lease->task.last_batch = std::min(lease->task.last_batch, lease_status.last_batch);
      return lease_status.mine;
    }
    CutShort(lease, lease_status.last_batch);
    done = true;
  }
}

void Worker::CutShort(Lease* lease, int64_t last_batch) const {
  const int64_t first = lease->task.first_batch;
  const int64_t size = static_cast<int64_t>(batch_rows_);
  TaskReport& report = lease->report;
  const int64_t rows =
      (last_batch - first) * size;  // none of them is the shard's last, short batch
  const double share =
      report.rows > 0 ? static_cast<double>(rows) / static_cast<double>(report.rows) : 0;
  report.rows = rows;
  report.rows_retried = std::min(report.rows_retried, rows);
  report.loss *= share;
  report.weight *= share;
  report.next_batch = last_batch;
  lease->task.last_batch = last_batch;
  lease->next = last_batch;
}

Status Worker::LeaveToOthers(Lease* lease) {
  ASSIGN_OR_RETURN(const bool mine, Report(lease, lease->done()));
  if (!mine || !lease->report.done) {
    log::Info("shard {} of epoch {} went to another worker", lease->task.shard, lease->task.epoch);
    master_.Abandon(lease->task.id);
  }
  return Status();
}

Status Worker::Judge(const Task& task) {
  return task.kind == Task::Kind::kCompare ? Compare(task) : Evaluate(task);
}

Status Worker::Compare(const Task& task) {
  TaskReport report;
  report.task = task.id;
  report.done = true;
  const int64_t read_before = loader_->rows_read();
  for (int64_t shard : task.shards) {
    RETURN_IF_ERROR(Stopped());
    const Result<uint64_t> checksum = loader_->Checksum(shard);
    if (!checksum.ok()) {
      return FailTask(task, checksum.status());
    }
    report.checksums.push_back(*checksum);
  }
  report.rows_read = loader_->rows_read() - read_before;
  return master_.Report(report).status();
}

Status Worker::Evaluate(const Task& task) {
  ShardLoader& loader = validation_loader_ != nullptr ? *validation_loader_ : *loader_;
  TaskReport report;
  report.task = task.id;
  report.done = true;
  const int64_t read_before = loader.rows_read();
  do {
    RETURN_IF_ERROR(EvaluateOnce(task, &loader, &report));
  } while (judged_ != report.versions);  // some were trained meanwhile
  report.rows_read = loader.rows_read() - read_before;
  return master_.Report(report).status();
}

// The parameters that were judged first are in the report, those that were judged last in judged_.
Status Worker::EvaluateOnce(const Task& task, ShardLoader* loader, TaskReport* report) {
  models::Metrics metrics(TaskOfModel(job_.plan.model()), network_->outputs());
  judged_.clear();
  report->versions.clear();
  report->checksums.clear();
  report->rows = 0;
  for (int64_t shard : task.shards) {
    RETURN_IF_ERROR(Stopped());
    Result<std::shared_ptr<const ShardRows>> rows = loader->Validation(shard);
    if (!rows.ok()) {
      return FailTask(task, rows.status());
    }
    const Status status = EvaluateRows((*rows)->validation, &metrics, &report->versions);
    if (!status.ok()) {
      return FailTask(task, status);
    }
    report->rows += static_cast<int64_t>((*rows)->validation.rows);
    if (loader == validation_loader_.get()) {
      report->checksums.push_back((*rows)->checksum);
    }
  }
  report->metrics = metrics.Serialize();
  return Status();
}

Status Worker::EvaluateRows(const models::FeatureBatch& rows, models::Metrics* metrics,
                            std::vector<int64_t>* first) {
  const models::LabelPlan& label = job_.plan.model().features().label();
  std::vector<uint32_t> places;
  std::vector<float> predictions;
  for (size_t begin = 0; begin < rows.rows; begin += kEvaluationRows) {
    RETURN_IF_ERROR(Stopped());
    places.clear();
    for (size_t row = begin; row < std::min(rows.rows, begin + kEvaluationRows); ++row) {
      places.push_back(static_cast<uint32_t>(row));
    }
    GatherRows(rows, places, &batch_);
    network_->CollectIds(batch_, &view_);
    RETURN_IF_ERROR(parameters_.Pull({}, Purpose::kEvaluation, &view_));
    judged_ = parameters_.Versions();
    if (first->empty()) {
      *first = judged_;
    }
    if (judged_ != *first) {
      return Status();
    }
    network_->Predict(batch_, view_, &predictions);
    models::RestoreLabelScale(label, &batch_.labels);
    metrics->Add(predictions, batch_.labels, batch_.weights);
  }
  return Status();
}

}  // namespace sluice::elastic
