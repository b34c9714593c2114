#include <fmt/core.h>

#include <algorithm>

#include "elastic/master/master.h"

// What follows the last task of an epoch: an evaluation, early stopping, the next epoch or the end.
namespace sluice::elastic {

void Master::Advance(TimePoint now) {
  if (phase_ == Phase::kTraining && queue_.EpochDone() && options_.passes) {
    phase_ = Phase::kBetweenPasses;
    outbox_.Add({Action::Kind::kPassDone, "", kNoIncarnation});
  } else if (phase_ == Phase::kTraining && queue_.EpochDone()) {
    meter_.EndEpoch(queue_.totals());
    outbox_.AddEvent("epoch_done",
                     fmt::format("epoch {}: {} rows, loss {:.6g}", queue_.epoch(),
                                 queue_.rows_per_epoch().back(), meter_.epoch_loss()));
    if (options_.evaluation_shards > 0) {
      phase_ = Phase::kEvaluating;
      evaluation_.Start(queue_.epoch());
      return;
    }
    EndEpoch(now);
  } else if (phase_ == Phase::kEvaluating && evaluation_.Done()) {
    const Status same = validation_.Set(evaluation_.metrics().Values(options_.further_metrics),
                                        evaluation_.rows(), evaluation_.checksum());
    early_stopping_.SetJudged(evaluation_.versions());
    if (options_.patience > 0 && options_.needs_validation && !options_.metric.empty() &&
        validation_.rows() == 0) {
      Abort(InvalidArgument("there are no rows to validate on, which say when to stop")
                .Hint("leave out train.early_stopping_rounds, or see to it that there are some"));
      return;
    }
    if (!same.ok()) {
      Abort(same);
      return;
    }
    const std::string when = options_.passes ? "" : fmt::format("epoch {}: ", queue_.epoch());
    std::string text = fmt::format("{}{} rows", when, validation_.rows());
    for (const auto& [name, value] : validation_.metrics()) {
      if (name.find('@') != std::string::npos) {  // from a table of thresholds: too much for a line
        continue;
      }
      text += fmt::format(", {} {:.6g}", name, value);
    }
    outbox_.AddEvent("evaluation_done", text);
    EndEpoch(now);
  } else if (phase_ == Phase::kComparing && evaluation_.Done()) {
    Conclude();
  }
}

uint32_t Master::RateCuts() const {
  const std::vector<uint32_t>& given = options_.rate_cuts;
  if (given.empty()) {
    return early_stopping_.RateCuts(queue_.epoch());
  }
  return given[std::min<size_t>(queue_.epoch().value(), given.size()) - 1];
}

void Master::EndEpoch(TimePoint now) {
  rate_cuts_.push_back(RateCuts());
  Progress progress = Describe(now);
  progress.loss = meter_.epoch_loss();
  outbox_.AddEpochEnd(std::move(progress));
  if (early_stopping_.EndEpoch(queue_.epoch(), meter_.epoch_loss(), validation_.metrics())) {
    if (rounds_.has_value()) {
      early_stopping_.SetStep(rounds_->world().closed);  // kept before the members continue
      AfterEpoch();
      return;
    }
    phase_ = Phase::kKeeping;  // the parameter servers keep these weights first
    OrderKeep();
    return;
  }
  AfterEpoch();
}

void Master::OrderKeep() {
  Action keep{Action::Kind::kKeepWeights, "", kNoIncarnation};
  keep.keep = early_stopping_.order();
  outbox_.Add(std::move(keep));
}

void Master::OnWeightsKept(const std::string& digest, TimePoint) {
  if (phase_ == Phase::kKeeping) {
    early_stopping_.SetDigest(digest);
    AfterEpoch();
  }
}

void Master::AfterEpoch() {
  const bool patience_over = early_stopping_.PatienceOver(queue_.epoch());
  if (patience_over) {
    outbox_.AddEvent("early_stop",
                     fmt::format("no improvement since epoch {}", early_stopping_.best().epoch));
  }
  if (patience_over || ends_with_epoch_ || queue_.LastEpoch() || queue_.BudgetSpent()) {
    Finish();
    return;
  }
  phase_ = Phase::kTraining;
  queue_.StartNextEpoch();
}

// Compares what was trained and evaluated with the database's own count.
Status Master::CheckSnapshot() const {
  const bool all_known = queue_.ledger().skipped().empty() && !queue_.BudgetSpent() &&
                         (!options_.splits || options_.evaluation_shards > 0);
  if (options_.snapshot_rows < 0 || !all_known) {
    return Status();
  }
  const int64_t rows = queue_.RowsOfSnapshot() + (options_.splits ? validation_.rows() : 0);
  if (rows == options_.snapshot_rows) {
    return Status();
  }
  return Status(Code::kAborted,
                fmt::format("{} rows were trained or evaluated; the snapshot has {}: the source "
                            "changed while the job ran",
                            rows, options_.snapshot_rows))
      .SqlState("40001");
}

void Master::Finish() {
  StartComparing();
  if (evaluation_.Done()) {
    Conclude();
  }
}

// A checkpoint belongs to certain rows: those not read since it was taken may have changed, or
// belong to another database.
void Master::StartComparing() {
  phase_ = Phase::kComparing;
  std::vector<ShardId> unread = queue_.ledger().Unread();
  std::erase_if(unread, [this](ShardId shard) { return queue_.state().GivenUp(shard); });
  if (!unread.empty()) {
    outbox_.AddEvent("rows_compared",
                     fmt::format("{} shards were read before the checkpoint, and are read "
                                 "again to be compared",
                                 unread.size()));
  }
  evaluation_.StartComparing(queue_.epoch(), std::move(unread));
}

Status Master::CompareRows(const TaskReport& report) {
  const std::vector<ShardId> shards = evaluation_.ShardsOf(report.task);
  if (!shards.empty() && report.checksums.size() != shards.size()) {
    return InvalidArgument(
        fmt::format("{} checksums of {} shards", report.checksums.size(), shards.size()));
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    Status same = queue_.ledger().Compare(shards[i], report.checksums[i]);
    if (!same.ok()) {
      Abort(same);
      return same;
    }
  }
  return Status();
}

void Master::Conclude() {
  if (options_.staleness.has_value()) {
    outbox_.AddEvent("staleness",
                     fmt::format("a worker was at most {} batches ahead; the bound is {}",
                                 staleness_.widest(), *options_.staleness));
  }
  result_ = queue_.CheckLedger();
  if (result_.ok()) {
    result_ = CheckSnapshot();
  }
  if (result_.ok() && queue_.totals().rows == 0) {
    const bool given_up = !queue_.ledger().skipped().empty();
    result_ =
        given_up ? Internal(fmt::format("code fails on every shard; the first that was given up is "
                                        "shard {}",
                                        queue_.ledger().skipped().front().shard))
                 : InvalidArgument("there are no rows to train on").SqlState("02000");
  }
  phase_ = result_.ok() ? Phase::kSucceeded : Phase::kFailed;
  if (result_.ok() && rounds_.has_value()) {
    phase_ = Phase::kExporting;
  }
}

}  // namespace sluice::elastic
