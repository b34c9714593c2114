#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/parameters/lane_tree.h"
#include "elastic/queue/evaluation.h"
#include "elastic/queue/shard_order.h"
#include "elastic/worker/loader_options.h"
#include "elastic/worker/passes.h"
#include "elastic/worker/row_selection.h"
#include "elastic/worker/worker_tasks_internal.h"
#include "models/metrics/metric.h"
#include "models/model.pb.h"
#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// How often progress is reported to the master: it limits what is computed again when a worker
// dies, and renews the lease long before it ends.
constexpr double kReportSeconds = 0.1;
// Batches of smaller shards are not made ahead: handing them over would cost more than it saves.
constexpr size_t kRowsAhead = 4096;
// Rows predicted at a time in an evaluation.
constexpr size_t kEvaluationRows = 4096;

// Synchronous: the lanes of a step share the batch that the user asked for. A pass adds up a shard
// at a time.
size_t BatchRows(const plan::TrainPlan& plan) {
  if (MakesPasses(plan)) {
    return size_t{1} << 40;
  }
  const plan::Strategy& strategy = plan.strategy();
  const bool synchronous = strategy.mode() == plan::Strategy::SYNCHRONOUS;
  const uint32_t lanes = synchronous ? std::max(1U, strategy.micro_batches()) : 1;
  return (std::max<uint32_t>(1, plan.batch_size()) + lanes - 1) / lanes;
}

}  // namespace

WorkerTasks::WorkerTasks(const Worker::Job& job, MasterLink& master, ParameterLink* parameters)
    : job_(job), master_(master), parameters_(parameters), batch_rows_(BatchRows(job.plan)) {}

Result<std::unique_ptr<WorkerTasks>> WorkerTasks::Make(const Worker::Job& job, MasterLink& master,
                                                       ParameterLink* parameters) {
  std::unique_ptr<WorkerTasks> tasks(new WorkerTasks(job, master, parameters));
  if (models::IsTrees(job.plan.model())) {
    ASSIGN_OR_RETURN(tasks->trees_, models::GradientBoosting::Make(job.plan.model()));
  } else {
    ASSIGN_OR_RETURN(tasks->network_, models::Network::Make(job.plan.model()));
  }
  RETURN_IF_ERROR(tasks->MakeLoaders());
  return tasks;
}

Status WorkerTasks::MakeLoaders() {
  ASSIGN_OR_RETURN(const SplitRule split, SplitRule::Make(job_.plan.split()));
  ShardLoader::Options options = LoaderOptionsOf(job_);
  options.keep_rows = job_.plan.epochs() > 1 || MakesPasses(job_.plan);
  options.judge_training = trees_ != nullptr;  // trees learn what other models are judged by
  if (job_.plan.strategy().memory_bytes() > 0) {
    const int64_t without = job_.plan.estimated_memory_bytes() - job_.plan.estimated_kept_bytes();
    options.most_kept = std::max<int64_t>(0, job_.plan.strategy().memory_bytes() - without);
  }
  // Other processes read the same shards: workers, or a job that resumes from a checkpoint.
  options.checksum = SharesWork() || job_.plan.has_checkpoints();
  ASSIGN_OR_RETURN(loader_,
                   ShardLoader::Make(job_.source, job_.dataset, transform(), split, options));
  if (job_.reads_beside) {
    reader_ = std::make_unique<ReaderThread>(*loader_, job_.profile);
  }
  if (job_.validation == nullptr) {
    return Status();
  }
  options.all_validation = true;
  ASSIGN_OR_RETURN(validation_loader_,
                   ShardLoader::Make(job_.source, *job_.validation, transform(), split, options));
  return Status();
}

WorkerTasks::~WorkerTasks() = default;

const models::FeatureTransform& WorkerTasks::transform() const {
  return trees_ != nullptr ? trees_->transform() : network_->transform();
}

size_t WorkerTasks::outputs() const {
  return trees_ != nullptr ? trees_->outputs() : network_->outputs();
}

void WorkerTasks::HearStop(std::stop_token stop) {
  stop_ = std::move(stop);
  loader_->HearStop(stop_);
  if (validation_loader_ != nullptr) {
    validation_loader_->HearStop(stop_);
  }
}

bool WorkerTasks::SharesWork() const {
  return job_.plan.strategy().kind() != plan::Strategy::LOCAL;
}

Status WorkerTasks::Stopped() const {
  return stop_.stop_requested() ? Cancelled("the training was stopped") : Status();
}

Status WorkerTasks::Fail(const Task& task, const Status& cause) {
  // For a stop or a lost connection no shard is charged: the task goes back.
  if (cause.code() != Code::kCancelled && cause.code() != Code::kUnavailable) {
    const Status told = master_.Fail(task, cause);
    if (!told.ok()) {
      log::Warn("the master cannot be told of a failed task: {}", told.message());
    }
  }
  return cause;
}

Result<std::vector<Task>> WorkerTasks::AskForShards() {
  ASSIGN_OR_RETURN(MasterLink::Answer answer, master_.Take(true));
  finished_ = answer.kind == MasterLink::Answer::Kind::kFinished;
  std::vector<Task> tasks = std::move(answer.further);
  if (answer.kind == MasterLink::Answer::Kind::kTask) {
    tasks.push_back(std::move(answer.task));
  }
  return tasks;
}

Result<std::optional<Task>> WorkerTasks::Ask(bool waiting) {
  ASSIGN_OR_RETURN(MasterLink::Answer answer, master_.Take(waiting));
  finished_ = answer.kind == MasterLink::Answer::Kind::kFinished;
  if (answer.kind != MasterLink::Answer::Kind::kTask) {
    return std::optional<Task>();
  }
  return std::optional<Task>(std::move(answer.task));
}

Result<std::unique_ptr<Lease>> WorkerTasks::Take(bool waiting) {
  ASSIGN_OR_RETURN(std::optional<Task> task, Ask(waiting));
  if (!task.has_value()) {
    return std::unique_ptr<Lease>();
  }
  if (task->kind != Task::Kind::kTrain) {
    RETURN_IF_ERROR(Judge(*task));
    return std::unique_ptr<Lease>();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Lease> lease, Start(*std::move(task)));
  ASSIGN_OR_RETURN(const bool mine, ReadRest(lease.get()));
  return mine ? std::move(lease) : nullptr;
}

Result<std::unique_ptr<Lease>> WorkerTasks::Start(Task task) {
  auto lease = std::make_unique<Lease>(std::move(task));
  lease->rows_read_before = loader_->rows_read();
  const Status started = loader_->Start(lease->task.shard);
  if (!started.ok()) {
    return Fail(lease->task, started);
  }
  if (reader_ != nullptr && (!loader_->kept() || loader_->complete().train.rows >= kRowsAhead)) {
    lease->ahead = std::make_shared<BatchesAhead>();
    reader_->Begin([this, task = lease->task, ahead = lease->ahead](PhaseClock* clock) {
      return MakeAhead(task, ahead.get(), clock);
    });
  }
  return lease;
}

std::vector<uint32_t> WorkerTasks::OrderOf(const Task& task, const ShardRows& rows) const {
  return RowOrder(rows.train.rows, job_.plan.seed(), task.epoch, task.shard, job_.plan.shuffle());
}

// On the reader's thread, which has completed the shard.
Status WorkerTasks::MakeAhead(const Task& task, BatchesAhead* ahead, PhaseClock* clock) {
  const models::FeatureBatch& rows = loader_->complete().train;
  if (rows.rows < kRowsAhead) {
    return Status();
  }
  const PhaseScope making(clock, Phase::kBatches);
  if (network_ahead_ == nullptr) {
    ASSIGN_OR_RETURN(network_ahead_, models::Network::Make(job_.plan.model()));
  }
  ahead->Make(rows, OrderOf(task, loader_->complete()), batch_rows_, task.first_batch,
              network_ahead_.get());
  return Status();
}

Result<bool> WorkerTasks::Read(Lease* lease, size_t rows) {
  Result<bool> complete = TryRead(lease, rows);
  return complete.ok() ? complete : Fail(lease->task, complete.status());
}

Result<bool> WorkerTasks::TryRead(Lease* lease, size_t rows) {
  const Status stopped = Stopped();
  Result<bool> complete = stopped.ok() ? Load(rows) : stopped;
  if (!complete.ok()) {
    Abandon();
    return complete;
  }
  if (*complete) {
    std::shared_ptr<const ShardRows> read = loader_->Finish();
    std::vector<uint32_t> order =
        lease->ahead == nullptr ? std::vector<uint32_t>() : lease->ahead->TakeOrder();
    if (order.empty()) {
      order = OrderOf(lease->task, *read);
    }
    lease->Begin(std::move(read), std::move(order), batch_rows_,
                 loader_->rows_read() - lease->rows_read_before);
    lease->report.read_seconds = loader_->reading_seconds();
  }
  return complete;
}

Result<bool> WorkerTasks::ReadRest(Lease* lease) {
  while (lease->rows == nullptr) {
    ASSIGN_OR_RETURN(const bool complete, Read(lease, kLoadRows));
    if (!complete && !waiting_for_database() && TimeToReport()) {
      // Reading is progress, too, and renews the lease. Waiting for the database is not.
      lease->report.rows_read = loader_->rows_read() - lease->rows_read_before;
      ASSIGN_OR_RETURN(const bool mine, Report(lease, false));
      if (!mine) {
        Abandon();
        return false;
      }
    }
  }
  return true;
}

Result<bool> WorkerTasks::Load(size_t rows) {
  if (!reads_beside()) {
    return loader_->Pump(rows);
  }
  const PhaseScope waiting(clock(), Phase::kRows);
  return reader_->Wait();
}

void WorkerTasks::Abandon() {
  if (reader_ != nullptr) {
    reader_->Stop();
  }
  if (loader_->loading()) {
    loader_->Abandon();
  }
}

bool WorkerTasks::TimeToReport() {
  const TimePoint now = clock_.Now();
  if (SecondsBetween(last_report_, now) < kReportSeconds) {
    return false;
  }
  last_report_ = now;
  return true;
}

Result<bool> WorkerTasks::Report(Lease* lease, bool done) {
  for (;;) {
    lease->report.done = done;
    lease->report.end_of_shard = done && lease->next >= EndOf(lease->batches);
    ASSIGN_OR_RETURN(const LeaseStatus answer, master_.Report(lease->report));
    if (!answer.mine || answer.last_batch >= lease->report.next_batch) {
      lease->task.last_batch = std::min(lease->task.last_batch, answer.last_batch);
      return answer.mine;
    }
    lease->CutShort(answer.last_batch);
    done = true;
  }
}

std::vector<Task> WorkerTasks::LanesAfter(const Task& task, Rank rank, size_t members) const {
  const int64_t shards = job_.dataset.shards_size();
  const uint32_t lanes = std::max(1U, job_.plan.strategy().micro_batches());
  const int64_t first = (task.round.value() + 1) * lanes;
  const auto count = static_cast<uint32_t>(std::clamp<int64_t>(shards - first, 0, lanes));
  const auto [begin, end] = LanesOf(count, rank, members);
  const ShardOrder order(shards, job_.plan.seed(), task.epoch, job_.plan.shuffle());
  std::vector<Task> coming;
  for (uint32_t lane = begin; lane < end; ++lane) {
    Task next;
    next.epoch = task.epoch;
    next.shard = order.At(ShardPosition(first + lane));
    coming.push_back(std::move(next));
  }
  return coming;
}

Status WorkerTasks::Judge(const Task& task) {
  return task.kind == Task::Kind::kCompare ? Compare(task) : Evaluate(task);
}

Status WorkerTasks::Compare(const Task& task) {
  TaskReport report;
  report.task = task.id;
  report.done = true;
  const int64_t read_before = loader_->rows_read();
  for (ShardId shard : task.shards) {
    RETURN_IF_ERROR(Stopped());
    const Result<uint64_t> checksum = loader_->Checksum(shard);
    if (!checksum.ok()) {
      return Fail(task, checksum.status());
    }
    report.checksums.push_back(*checksum);
  }
  report.rows_read = loader_->rows_read() - read_before;
  return master_.Report(report).status();
}

Status WorkerTasks::Evaluate(const Task& task) {
  const PhaseScope evaluating(clock(), Phase::kEvaluation);
  ShardLoader& loader = validation_loader_ != nullptr ? *validation_loader_ : *loader_;
  TaskReport report;
  report.task = task.id;
  report.done = true;
  const int64_t read_before = loader.rows_read();
  do {
    RETURN_IF_ERROR(EvaluateOnce(task, &loader, &report));
  } while (judged_ != report.versions);  // others trained meanwhile
  report.rows_read = loader.rows_read() - read_before;
  return master_.Report(report).status();
}

// The report has the versions that were judged first, judged_ those that were judged last.
Status WorkerTasks::EvaluateOnce(const Task& task, ShardLoader* loader, TaskReport* report) {
  models::Metrics metrics(job_.plan.model(), outputs());
  judged_.clear();
  report->versions.clear();
  report->checksums.clear();
  report->rows = 0;
  for (ShardId shard : task.shards) {
    RETURN_IF_ERROR(Stopped());
    Result<std::shared_ptr<const ShardRows>> rows = loader->Validation(shard);
    if (!rows.ok()) {
      return Fail(task, rows.status());
    }
    const Status status = EvaluateRows((*rows)->validation, &metrics, &report->versions);
    if (!status.ok()) {
      return Fail(task, status);
    }
    report->rows += static_cast<int64_t>((*rows)->validation.rows);
    if (loader == validation_loader_.get()) {
      report->checksums.push_back((*rows)->checksum);
    }
  }
  report->metrics = metrics.Serialize();
  return Status();
}

Status WorkerTasks::EvaluateRows(const models::FeatureBatch& rows, models::Metrics* metrics,
                                 std::vector<int64_t>* first) {
  if (trees_ != nullptr) {
    return EvaluateTrees(rows, metrics, first);
  }
  std::vector<uint32_t> places;
  std::vector<double> predictions;
  for (size_t begin = 0; begin < rows.rows; begin += kEvaluationRows) {
    RETURN_IF_ERROR(Stopped());
    places.clear();
    for (size_t row = begin; row < std::min(rows.rows, begin + kEvaluationRows); ++row) {
      places.push_back(static_cast<uint32_t>(row));
    }
    GatherRows(rows, places, &batch_);
    network_->CollectIds(batch_, &view_);
    RETURN_IF_ERROR(parameters_->Pull({}, Purpose::kEvaluation, &view_));
    judged_ = parameters_->Versions();
    if (first->empty()) {
      *first = judged_;
    }
    if (judged_ != *first) {
      return Status();
    }
    const models::LossSum loss = network_->Predict(batch_, view_, &predictions);
    metrics->Add(predictions, batch_.OwnLabels(), batch_.weights);
    if (models::HasOwnLoss(job_.plan.model())) {
      metrics->AddOwnLoss(loss.loss, loss.weight);
    }
  }
  return Status();
}

Status WorkerTasks::EvaluateTrees(const models::FeatureBatch& rows, models::Metrics* metrics,
                                  std::vector<int64_t>* first) {
  if (!std::exchange(has_forest_, true)) {
    ASSIGN_OR_RETURN(const std::string bytes, job_.forest());
    RETURN_IF_ERROR(trees_->Load(bytes));
  }
  *first = judged_ = {1};
  std::vector<double> predictions;
  for (size_t begin = 0; begin < rows.rows; begin += kEvaluationRows) {
    RETURN_IF_ERROR(Stopped());
    const models::FeatureBatch part =
        rows.Slice(begin, std::min(rows.rows, begin + kEvaluationRows));
    RETURN_IF_ERROR(trees_->Predict(part, &predictions));
    metrics->Add(predictions, part.OwnLabels(), part.weights, part.groups);
  }
  return Status();
}

}  // namespace sluice::elastic
