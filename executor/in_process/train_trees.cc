#include "executor/in_process/train_trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/further_metrics.h"
#include "elastic/job/tree_checkpoints.h"
#include "elastic/worker/feature_reader.h"
#include "elastic/worker/split.h"
#include "executor/scoring/scorer.h"
#include "models/metrics/metric.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr size_t kRowsPerBatch = 8192;

// The rows of one dataset as feature batches, pass after pass; the first pass sets validation rows
// aside.
class FeatureRows {
 public:
  // `on_rows`: called after each batch.
  FeatureRows(int shards, std::function<void()> on_rows, std::stop_token stop)
      : shards_(shards), on_rows_(std::move(on_rows)), stop_(std::move(stop)) {}
  // Tells it of each shard that is read for the first time.
  void CompareBy(elastic::LocalTreeCheckpoints* checkpoints) { checkpoints_ = checkpoints; }

  // `clock`: of the thread that takes the rows.
  Status Open(catalog::DataSource& source, const catalog::DatasetSpec& spec,
              const models::FeatureTransform& transform, const elastic::SplitRule& split,
              PhaseClock* clock) {
    elastic::FeatureReader::Options options;
    options.split = split;
    options.clock = clock;
    ASSIGN_OR_RETURN(reader_, elastic::FeatureReader::Make(source, spec, transform, options));
    return OkStatus();
  }

  models::GradientBoosting::BatchSource AsSource() {
    return {.next = [this] { return Next(); }, .rewind = [this] { return Rewind(); }};
  }
  int64_t rows() const { return rows_; }
  int64_t rows_read() const { return rows_read_; }
  models::FeatureBatch& validation() { return validation_; }

 private:
  Result<const models::FeatureBatch*> Next() {
    if (stop_.stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    while (true) {
      if (!reader_->open()) {
        if (shard_ == shards_) {
          first_pass_ = false;
          return &end_;
        }
        RETURN_IF_ERROR(reader_->Open(elastic::ShardId(shard_)));
      }
      ASSIGN_OR_RETURN(const bool more, reader_->Next(kRowsPerBatch));
      if (!more) {
        RETURN_IF_ERROR(EndShard());
        ++shard_;
        continue;
      }
      Take();
      if (train_.rows > 0) {
        return &train_;
      }
    }
  }

  // Distributes the batch to train_ and, in the first pass, validation_.
  void Take() {
    rows_read_ += static_cast<int64_t>(reader_->rows());
    on_rows_();
    train_.Clear();
    if (first_pass_ && checkpoints_ != nullptr) {
      checkpoints_->AddRows(reader_->features());
    }
    reader_->AppendTraining(&train_);
    if (first_pass_) {
      reader_->AppendValidation(&validation_);
      rows_ += static_cast<int64_t>(train_.rows);
    }
  }

  Status EndShard() {
    const int64_t rows = rows_ - std::exchange(rows_before_, rows_);
    return checkpoints_ != nullptr && first_pass_
               ? checkpoints_->EndShard(elastic::ShardId(shard_), rows)
               : OkStatus();
  }

  Status Rewind() {
    reader_->Close();
    shard_ = 0;
    if (first_pass_) {  // it was interrupted and starts over: none of it counts
      rows_ = rows_before_ = 0;
      validation_.Clear();
      if (checkpoints_ != nullptr) {
        checkpoints_->ForgetRows();
      }
    }
    return OkStatus();
  }

  const int shards_;
  const std::function<void()> on_rows_;
  const std::stop_token stop_;
  std::unique_ptr<elastic::FeatureReader> reader_;
  int shard_ = 0;
  models::FeatureBatch train_, validation_, end_;
  bool first_pass_ = true;
  int64_t rows_ = 0, rows_before_ = 0;  // before the shard that is being read
  int64_t rows_read_ = 0;
  elastic::LocalTreeCheckpoints* checkpoints_ = nullptr;
};

// Rows in memory, a few at a time, pass after pass.
class BatchParts {
 public:
  explicit BatchParts(const models::FeatureBatch& batch) : batch_(batch) {}
  // The next ones; none at the end.
  const models::FeatureBatch& Next() {
    const size_t end = std::min(next_ + kRowsPerBatch, batch_.rows);
    part_ = batch_.Slice(next_, end);
    next_ = end;
    return part_;
  }
  models::GradientBoosting::BatchSource AsSource() {
    return {.next = [this]() -> Result<const models::FeatureBatch*> { return &Next(); },
            .rewind =
                [this] {
                  next_ = 0;
                  return OkStatus();
                },
            .most_kept = 0};
  }

 private:
  const models::FeatureBatch& batch_;
  models::FeatureBatch part_;
  size_t next_ = 0;
};

elastic::Progress ToProgress(const models::GradientBoosting::Round& round, int64_t rows,
                             double seconds) {
  elastic::Progress progress;
  progress.epoch = elastic::Epoch(static_cast<uint32_t>(round.round));
  progress.epochs = static_cast<uint32_t>(round.rounds);
  progress.rows_done = rows * round.round;
  progress.rows_total = rows * round.rounds;
  progress.rows_per_second = seconds > 0 ? static_cast<double>(progress.rows_done) / seconds : 0;
  progress.seconds_left = seconds / std::max(1, round.round) * (round.rounds - round.round);
  progress.workers = 1;
  progress.metrics = round.metrics;
  progress.loss = round.metrics.empty() ? 0 : round.metrics.front().second;
  return progress;
}

Status Evaluate(models::GradientBoosting& trees, const plan::TrainPlan& plan,
                models::FeatureBatch& batch, elastic::TrainOutcome* outcome) {
  const models::ModelSpec& spec = plan.model();
  if (batch.rows == 0) {
    return OkStatus();
  }
  models::Metrics metrics(spec, trees.outputs());
  std::vector<double> scores;
  BatchParts parts(batch);
  while (true) {
    const models::FeatureBatch& part = parts.Next();
    if (part.rows == 0) {
      break;
    }
    RETURN_IF_ERROR(trees.Predict(part, &scores));
    metrics.Add(scores, part.OwnLabels(), part.weights, part.groups);
  }
  outcome->metrics = metrics.Values(elastic::FurtherMetrics(plan));
  outcome->validation_rows = static_cast<int64_t>(batch.rows);
  return OkStatus();
}

}  // namespace

Result<elastic::TrainOutcome> TrainTrees(const elastic::TrainingJob& job, const std::string& base,
                                         std::string* weights) {
  PhaseClock clock(Phase::kStart, job.profile);
  const plan::TrainPlan& plan = job.plan;
  ASSIGN_OR_RETURN(const auto trees, models::GradientBoosting::Make(plan.model()));
  if (!base.empty()) {
    RETURN_IF_ERROR(trees->Load(base));
  }
  ASSIGN_OR_RETURN(const elastic::SplitRule split, elastic::SplitRule::Make(plan.split()));
  const TimePoint started = SteadyClock().Now();
  TimePoint shown = started;
  elastic::Progress now;
  int64_t rows_read = 0;  // of the training rows
  const auto tell = [&] {
    now.rows_read = rows_read;
    shown = SteadyClock().Now();
    if (job.progress) {
      job.progress(now);
    }
  };
  const FeatureRows* training = nullptr;
  const auto on_rows = [&] {
    rows_read = training->rows_read();
    if (SecondsBetween(shown, SteadyClock().Now()) >= 1) {
      tell();
    }
  };
  std::unique_ptr<elastic::LocalTreeCheckpoints> checkpoints;
  if (job.checkpoints != nullptr) {
    checkpoints = std::make_unique<elastic::LocalTreeCheckpoints>(job);
    RETURN_IF_ERROR(checkpoints->Restore());
  }
  FeatureRows rows(job.dataset.shards_size(), on_rows, job.stop);
  rows.CompareBy(checkpoints.get());
  training = &rows;
  RETURN_IF_ERROR(rows.Open(job.source, job.dataset, trees->transform(), split, &clock));

  models::FeatureBatch held_out;
  if (job.validation != nullptr) {
    FeatureRows other(
        job.validation->shards_size(), [] {}, job.stop);
    RETURN_IF_ERROR(other.Open(job.source, *job.validation, trees->transform(), {}, &clock));
    const auto batches = other.AsSource();
    while (true) {
      ASSIGN_OR_RETURN(const models::FeatureBatch* batch, batches.next());
      if (batch->rows == 0) {
        break;
      }
      if (checkpoints != nullptr) {
        checkpoints->AddRows(*batch);
      }
      held_out.Append(*batch);
    }
    if (checkpoints != nullptr) {
      RETURN_IF_ERROR(checkpoints->EndJudges());
    }
  }
  // The split's own validation rows are complete once libxgboost has read all training rows.
  models::FeatureBatch& validation_rows = job.validation != nullptr ? held_out : rows.validation();
  BatchParts validation_parts(validation_rows);
  const bool has_validation = job.validation != nullptr || split.splits();
  const models::GradientBoosting::BatchSource validation_source =
      has_validation ? validation_parts.AsSource() : models::GradientBoosting::BatchSource{};

  elastic::TrainOutcome outcome;
  const auto on_round = [&](const models::GradientBoosting::Round& round) {
    outcome.epochs = static_cast<uint32_t>(round.round);
    outcome.best_epoch = static_cast<uint32_t>(round.best);
    outcome.loss = round.metrics.empty() ? 0 : round.metrics.front().second;
    const TimePoint time = SteadyClock().Now();
    now = ToProgress(round, rows.rows(), SecondsBetween(started, time));
    if (round.round == round.rounds || SecondsBetween(shown, time) >= 1) {
      tell();
    }
  };
  models::TrainingMemory memory;
  if (checkpoints != nullptr) {
    memory.remembered = checkpoints->remembered();
    memory.remember = [&](std::string what) { checkpoints->Remember(std::move(what)); };
  }
  clock.Enter(Phase::kLearning);
  const Status trained =
      trees->Train(rows.AsSource(), validation_source, on_round, job.stop, job.finish, memory);
  checkpoints.reset();  // the last one is on disk
  if (!trained.ok()) {
    tell();  // report how far it came
    return trained;
  }
  if (rows.rows() == 0) {
    return InvalidArgument("no rows to train on: the select is empty");
  }
  clock.Enter(Phase::kEvaluation);
  RETURN_IF_ERROR(Evaluate(*trees, plan, validation_rows, &outcome));
  clock.Enter(Phase::kFinishing);
  outcome.rows_per_epoch = rows.rows();
  outcome.rows_trained = rows.rows() * outcome.epochs;
  outcome.rows_read = rows.rows_read();
  ASSIGN_OR_RETURN(*weights, trees->Save());
  return outcome;
}

}  // namespace sluice::executor
