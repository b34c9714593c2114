#include "executor/training/search_ledger.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/job_store.h"
#include "executor/jobs/job_answer.h"
#include "executor/training/search.pb.h"

namespace sluice::executor {
namespace {

// Far below what a database takes as one value.
constexpr size_t kBytesPerRecord = 16U << 20U;

std::string TrainingName(uint32_t training) {
  return fmt::format("search/training/{}", training);
}

std::string WeightsName(uint32_t training, size_t part) {
  return fmt::format("search/weights/{}/{}", training, part);
}

SearchedTraining ToProto(const Trial& trial) {
  const elastic::TrainOutcome& outcome = trial.trained.outcome;
  SearchedTraining record;
  record.set_error(trial.status.ok() ? "" : AnswerBytes(trial.status));
  record.set_value(trial.value);
  record.set_seconds(trial.seconds);
  record.set_cut_short(trial.cut_short);
  for (const auto& [name, value] : outcome.metrics) {
    SearchedTraining::Metric* metric = record.add_metrics();
    metric->set_name(name);
    metric->set_value(value);
  }
  record.set_loss(outcome.loss);
  record.set_epochs(outcome.epochs);
  record.set_best_epoch(outcome.best_epoch);
  record.set_rows_per_epoch(outcome.rows_per_epoch);
  record.set_validation_rows(outcome.validation_rows);
  record.set_rows_trained(outcome.rows_trained);
  record.set_rows_read(outcome.rows_read);
  record.set_rows_retried(outcome.rows_retried);
  record.set_rows_skipped(outcome.rows_skipped);
  return record;
}

Status ErrorOf(const SearchedTraining& record) {
  if (record.error().empty()) {
    return OkStatus();
  }
  Status failed = ErrorOfAnswer(record.error());
  return failed.ok() ? InvalidArgument(record.error()) : failed;  // an earlier version's has a text
}

Trial FromProto(const SearchedTraining& record) {
  Trial trial;
  trial.tried = true;
  trial.status = ErrorOf(record);
  trial.value = record.value();
  trial.seconds = record.seconds();
  trial.cut_short = record.cut_short();
  trial.rows_read = record.rows_read();
  elastic::TrainOutcome& outcome = trial.trained.outcome;
  for (const SearchedTraining::Metric& metric : record.metrics()) {
    outcome.metrics.emplace_back(metric.name(), metric.value());
  }
  outcome.loss = record.loss();
  outcome.epochs = record.epochs();
  outcome.best_epoch = record.best_epoch();
  outcome.rows_per_epoch = record.rows_per_epoch();
  outcome.validation_rows = record.validation_rows();
  outcome.rows_trained = record.rows_trained();
  outcome.rows_read = record.rows_read();
  outcome.rows_retried = record.rows_retried();
  outcome.rows_skipped = record.rows_skipped();
  return trial;
}

// The record of that training; nullopt: there is none of these rows.
Result<std::optional<SearchedTraining>> Read(catalog::JobStore& jobs, int64_t job,
                                             const std::string& rows, uint32_t training) {
  const std::string name = TrainingName(training);
  ASSIGN_OR_RETURN(const auto records, jobs.Records(job, name));
  const auto found = records.find(name);
  SearchedTraining record;
  if (found == records.end()) {
    return std::optional<SearchedTraining>();
  }
  if (!record.ParseFromString(found->second)) {
    return Internal(fmt::format("what job {} has recorded of its search is damaged", job));
  }
  return record.rows() == rows ? std::optional(std::move(record)) : std::nullopt;
}

}  // namespace

Result<std::optional<Trial>> SearchLedger::Find(uint32_t training) const {
  ASSIGN_OR_RETURN(const auto record, Read(jobs_, job_, rows_, training));
  return record ? std::optional(FromProto(*record)) : std::nullopt;
}

Result<std::string> SearchLedger::Weights(uint32_t training) const {
  ASSIGN_OR_RETURN(const auto record, Read(jobs_, job_, rows_, training));
  std::string weights;
  for (size_t part = 0; record && part < record->weights(); ++part) {
    const std::string name = WeightsName(training, part);
    ASSIGN_OR_RETURN(const auto records, jobs_.Records(job_, name));
    const auto found = records.find(name);
    weights += found != records.end() ? found->second : "";
  }
  if (weights.empty()) {
    return Internal(fmt::format("job {} has not recorded the best model of its search", job_));
  }
  return weights;
}

Status SearchLedger::Keep(uint32_t training, const Trial& trial, bool best) {
  SearchedTraining record = ToProto(trial);
  record.set_rows(rows_);
  const std::string& weights = trial.trained.weights;
  if (best) {
    size_t parts = 0;
    for (size_t at = 0; at < weights.size(); at += kBytesPerRecord) {
      RETURN_IF_ERROR(jobs_.KeepRecord(job_, WeightsName(training, parts++),
                                       weights.substr(at, kBytesPerRecord)));
    }
    record.set_weights(static_cast<uint32_t>(parts));
  }
  // Last: with this record the training is over.
  RETURN_IF_ERROR(jobs_.KeepRecord(job_, TrainingName(training), record.SerializeAsString()));
  if (best) {
    const std::optional<uint32_t> before = std::exchange(kept_, training);
    ASSIGN_OR_RETURN(const auto old, before
                                         ? Read(jobs_, job_, rows_, *before)
                                         : Result<std::optional<SearchedTraining>>(std::nullopt));
    for (size_t part = 0; old && part < old->weights(); ++part) {
      RETURN_IF_ERROR(jobs_.KeepRecord(job_, WeightsName(*before, part), ""));
    }
  }
  return OkStatus();
}

SearchJournal::SearchJournal(elastic::JournalStore& whole, uint32_t training)
    : whole_(whole), mark_(fmt::format("{}:", training)) {}

Status SearchJournal::Append(elastic::JournalTerm term, const std::vector<std::string>& entries,
                             bool anew) {
  std::vector<std::string> marked;
  marked.reserve(entries.size());
  std::transform(entries.begin(), entries.end(), std::back_inserter(marked),
                 [this](const std::string& entry) { return mark_ + entry; });
  return whole_.Append(term, marked, anew);
}

Result<std::vector<std::string>> SearchJournal::ReadAll() {
  ASSIGN_OR_RETURN(std::vector<std::string> entries, whole_.ReadAll());
  std::erase_if(entries, [this](const std::string& entry) { return !entry.starts_with(mark_); });
  for (std::string& entry : entries) {
    entry.erase(0, mark_.size());
  }
  return entries;
}

}  // namespace sluice::executor
