#include "executor/train_trees.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/worker/split.h"
#include "executor/scorer.h"
#include "models/features/label_scale.h"
#include "models/metrics/metric.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// libxgboost reads its rows more than once (cut points first, bins second). Transformed rows up to
// this many bytes are kept for the later passes; a larger table is read again from the same
// snapshot.
constexpr size_t kKeptBytes = 512U << 20U;
constexpr size_t kRowsPerBatch = 8192;

Result<std::vector<size_t>> FindColumns(const catalog::DatasetSpec& spec,
                                        const std::vector<std::string>& names) {
  Schema schema;
  for (const auto& column : spec.columns()) {
    schema.columns.push_back({column.name(), static_cast<DataType>(column.type()), ""});
  }
  std::vector<size_t> columns;
  for (const std::string& name : names) {
    const auto found = schema.Find(name);
    if (!found) {
      return ColumnNotFound(fmt::format("the select has no column '{}'", name));
    }
    columns.push_back(*found);
  }
  return columns;
}

// Appends the rows of `batch` whose mark in `chosen` is `wanted`.
void AppendRows(const models::FeatureBatch& batch, const std::vector<uint8_t>& chosen,
                uint8_t wanted, models::FeatureBatch* to) {
  size_t begin = 0;
  while (begin < batch.rows) {
    size_t end = begin;
    while (end < batch.rows && (chosen[end] == wanted) == (chosen[begin] == wanted)) {
      ++end;
    }
    if (chosen[begin] == wanted) {
      to->Append(batch.Slice(begin, end));
    }
    begin = end;
  }
}

// The rows of one dataset as feature batches, pass after pass; validation rows go aside in the
// first.
class FeatureRows {
 public:
  FeatureRows(catalog::DataSource& source, const catalog::DatasetSpec& spec,
              const models::FeatureTransform& transform, elastic::SplitRule split,
              std::function<void()> on_rows, std::stop_token stop)
      : source_(source),
        spec_(spec),
        transform_(transform),
        split_(std::move(split)),
        places_(elastic::PlacesOf(spec)),
        on_rows_(std::move(on_rows)),
        stop_(std::move(stop)) {}

  Status Open() {
    std::vector<std::string> names = transform_.ColumnNames(/*with_label=*/true);
    if (!split_.column().empty()) {
      names.push_back(split_.column());
    }
    ASSIGN_OR_RETURN(columns_, FindColumns(spec_, names));
    ASSIGN_OR_RETURN(reader_, source_.OpenReader(spec_));
    return OkStatus();
  }

  models::GradientBoosting::BatchSource AsSource() {
    return {[this] { return Next(); }, [this] { return Rewind(); }};
  }
  int64_t rows() const { return rows_; }
  int64_t rows_read() const { return rows_read_; }
  models::FeatureBatch& validation() { return validation_; }

 private:
  Result<const models::FeatureBatch*> Next() {
    if (stop_.stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    if (complete_) {
      return position_ < kept_.size() ? &kept_[position_++] : &end_;
    }
    while (true) {
      if (stream_ == nullptr) {
        if (shard_ == spec_.shards_size()) {
          return EndOfPass();
        }
        ASSIGN_OR_RETURN(stream_, reader_->Read(spec_.shards(shard_), columns_));
        place_ = places_[static_cast<size_t>(shard_)];
      }
      RETURN_IF_ERROR(stream_->Next(kRowsPerBatch, &raw_));
      if (raw_.rows == 0) {
        stream_.reset();
        ++shard_;
        continue;
      }
      RETURN_IF_ERROR(Transform());
      if (train_.rows > 0) {
        return &train_;
      }
    }
  }

  const models::FeatureBatch* EndOfPass() {
    first_pass_ = false;
    complete_ = keep_;
    return &end_;
  }

  // raw_ -> train_ (and, in the first pass, validation_).
  Status Transform() {
    const RowBatch::Column* split_column = nullptr;
    RowBatch::Column lent;
    if (!split_.column().empty()) {
      lent = std::move(raw_.columns.back());
      raw_.columns.pop_back();
      split_column = &lent;
    }
    const Status applied = transform_.Apply(raw_, /*with_label=*/true, &all_);
    aside_.assign(raw_.rows, 0);
    for (size_t r = 0; r < raw_.rows; ++r) {
      const int64_t place = place_ + static_cast<int64_t>(r);
      aside_[r] = split_.IsValidation(place, split_column, r) ? 1 : 0;
    }
    place_ += static_cast<int64_t>(raw_.rows);
    if (split_column != nullptr) {
      raw_.columns.push_back(std::move(lent));
    }
    RETURN_IF_ERROR(applied);
    rows_read_ += static_cast<int64_t>(raw_.rows);
    on_rows_();
    train_.Clear();
    AppendRows(all_, aside_, 0, &train_);
    if (first_pass_) {
      AppendRows(all_, aside_, 1, &validation_);
      rows_ += static_cast<int64_t>(train_.rows);
    }
    if (keep_ && train_.rows > 0) {
      kept_bytes_ += train_.Bytes();
      if (kept_bytes_ > kKeptBytes) {
        keep_ = false;
        kept_ = {};
      } else {
        kept_.push_back(train_);
      }
    }
    return OkStatus();
  }

  Status Rewind() {
    position_ = 0;
    if (!complete_) {
      stream_.reset();
      shard_ = 0;
      if (!first_pass_) {
        return OkStatus();
      }
      // A pass that was not finished starts over: nothing of it counts.
      rows_ = 0;
      kept_.clear();
      kept_bytes_ = 0;
      validation_.Clear();
    }
    return OkStatus();
  }

  catalog::DataSource& source_;
  const catalog::DatasetSpec& spec_;
  const models::FeatureTransform& transform_;
  const elastic::SplitRule split_;
  const std::vector<int64_t> places_;    // by shard: of its first row in the dataset
  const std::function<void()> on_rows_;  // after each batch that was read
  const std::stop_token stop_;
  std::vector<size_t> columns_;
  std::unique_ptr<catalog::ShardReader> reader_;
  std::unique_ptr<catalog::RowStream> stream_;
  int shard_ = 0;
  int64_t place_ = 0;  // of the next row
  RowBatch raw_;
  models::FeatureBatch all_, train_, validation_, end_;
  std::vector<uint8_t> aside_;
  std::vector<models::FeatureBatch> kept_;
  size_t kept_bytes_ = 0;
  size_t position_ = 0;
  bool keep_ = true;
  bool first_pass_ = true;
  bool complete_ = false;
  int64_t rows_ = 0;
  int64_t rows_read_ = 0;
};

// One batch, again and again.
models::GradientBoosting::BatchSource OneBatch(const models::FeatureBatch& batch, bool* given) {
  static const models::FeatureBatch end;
  return {[&batch, given]() -> Result<const models::FeatureBatch*> {
            const models::FeatureBatch* answer = *given ? &end : &batch;
            *given = true;
            return answer;
          },
          [given] {
            *given = false;
            return OkStatus();
          }};
}

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
  models::Metrics metrics(TaskOf(spec), trees.outputs());
  std::vector<float> scores;
  RETURN_IF_ERROR(trees.Predict(batch, &scores));
  std::vector<float> labels = batch.labels;
  models::RestoreLabelScale(spec.features().label(), &labels);
  metrics.Add(scores, labels, batch.weights, batch.groups);
  std::vector<std::string> further;
  for (const std::string& name : plan.metrics()) {
    further.push_back(models::Metrics::CanonicalName(name));
  }
  outcome->metrics = metrics.Values(further);
  outcome->validation_rows = static_cast<int64_t>(batch.rows);
  return OkStatus();
}

}  // namespace

Result<elastic::TrainOutcome> TrainTrees(const plan::TrainPlan& plan, catalog::DataSource& source,
                                         const catalog::Dataset& dataset,
                                         const catalog::Dataset* validation,
                                         const std::string& base,
                                         const elastic::ProgressCallback& progress,
                                         std::stop_token stop, std::string* weights) {
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
    progress(now);
  };
  const FeatureRows* training = nullptr;
  const auto on_rows = [&] {
    rows_read = training->rows_read();
    if (SecondsBetween(shown, SteadyClock().Now()) >= 1) {
      tell();
    }
  };
  FeatureRows rows(source, dataset.spec(), trees->transform(), split, on_rows, stop);
  training = &rows;
  RETURN_IF_ERROR(rows.Open());

  models::FeatureBatch held_out;
  if (validation != nullptr) {
    ASSIGN_OR_RETURN(const elastic::SplitRule none, elastic::SplitRule::Make(plan::Split()));
    FeatureRows other(
        source, validation->spec(), trees->transform(), none, [] {}, stop);
    RETURN_IF_ERROR(other.Open());
    const auto batches = other.AsSource();
    while (true) {
      ASSIGN_OR_RETURN(const models::FeatureBatch* batch, batches.next());
      if (batch->rows == 0) {
        break;
      }
      held_out.Append(*batch);
    }
  }
  // The split's own validation rows are complete once libxgboost has drained the training rows.
  models::FeatureBatch& validation_rows = validation != nullptr ? held_out : rows.validation();
  bool given = false;
  const bool has_validation = validation != nullptr || split.splits();
  const models::GradientBoosting::BatchSource validation_source =
      has_validation ? OneBatch(validation_rows, &given) : models::GradientBoosting::BatchSource{};

  elastic::TrainOutcome outcome;
  const auto on_round = [&](const models::GradientBoosting::Round& round) {
    outcome.epochs = static_cast<uint32_t>(round.round);
    outcome.loss = round.metrics.empty() ? 0 : round.metrics.front().second;
    const TimePoint time = SteadyClock().Now();
    now = ToProgress(round, rows.rows(), SecondsBetween(started, time));
    if (round.round == round.rounds || SecondsBetween(shown, time) >= 1) {
      tell();
    }
  };
  const Status trained = trees->Train(rows.AsSource(), validation_source, on_round, stop);
  if (!trained.ok()) {
    tell();  // how far it came
    return trained;
  }
  if (rows.rows() == 0) {
    return InvalidArgument("no rows to train on: the select is empty");
  }
  RETURN_IF_ERROR(Evaluate(*trees, plan, validation_rows, &outcome));
  outcome.rows_per_epoch = rows.rows();
  outcome.rows_trained = rows.rows() * outcome.epochs;
  outcome.rows_read = rows.rows_read();
  ASSIGN_OR_RETURN(*weights, trees->Save());
  return outcome;
}

}  // namespace sluice::executor
