#include "executor/train.h"

#include <fmt/core.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <optional>

#include "base/clock.h"
#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/job_journal.h"
#include "elastic/job/local_job.h"
#include "elastic/job/optimum_job.h"
#include "executor/client_teller.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/result_rows.h"
#include "executor/store_model.h"
#include "executor/train_again.h"
#include "executor/train_folds.h"
#include "executor/train_on_master.h"
#include "executor/train_trees.h"
#include "models/metrics/metric.h"
#include "models/registry/registry.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

bool OnProcesses(const plan::TrainPlan& plan) {
  return plan.strategy().kind() != plan::Strategy::LOCAL;
}

bool IsTrees(const plan::TrainPlan& plan) {
  const models::ModelType* type = models::FindModelType(plan.model().type());
  return type != nullptr && type->family == models::ModelFamily::kTrees;
}

// The weights of the model that USING names; they must have the new model's shape.
Result<std::string> LoadBase(const plan::TrainPlan& plan, catalog::ModelStore& models) {
  std::optional<int64_t> wanted;
  if (plan.base_version() != 0) {
    wanted = plan.base_version();
  }
  ASSIGN_OR_RETURN(const catalog::ModelVersion base,
                   models.Find(plan.base_schema(), plan.base_name(), wanted));
  return models.LoadWeights(base);
}

std::string LineageJson(const plan::TrainPlan& plan, const catalog::DatasetSpec& dataset,
                        const elastic::TrainOutcome& outcome) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  writer.StartObject();
  writer.Key("snapshot");
  writer.String(dataset.fingerprint().c_str());
  writer.Key("seed");
  writer.Uint64(plan.seed());
  writer.Key("epochs");
  writer.Uint(outcome.epochs);
  writer.Key("rows_per_epoch");
  writer.Int64(outcome.rows_per_epoch);
  writer.Key("validation_rows");
  writer.Int64(outcome.validation_rows);
  writer.Key("rows_skipped");
  writer.Int64(outcome.rows_skipped);
  if (plan.has_base()) {
    writer.Key("continued_from");
    writer.String(plan.base_name().c_str());
  }
  writer.EndObject();
  return buffer.GetString();
}

struct Trained {
  elastic::TrainOutcome outcome;
  std::string weights;
};

// What the training continues from; nullopt: it begins anew.
Result<std::optional<models::NetworkWeights>> StartOf(const plan::TrainPlan& plan,
                                                      catalog::ModelStore& models) {
  if (!plan.has_base()) {
    return std::optional<models::NetworkWeights>();
  }
  ASSIGN_OR_RETURN(const std::string bytes, LoadBase(plan, models));
  ASSIGN_OR_RETURN(models::NetworkWeights base, models::LoadWeights(bytes));
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(plan.model()));
  RETURN_IF_ERROR(models::CheckShape(base, *network)
                      .Because(fmt::format("continuing from model {}", plan.base_name())));
  return std::optional(std::move(base));
}

elastic::EventCallback EventsOf(JobRecord& job) {
  elastic::EventCallback events;
  events.on_event = [&job](const std::string& kind, const std::string& detail) {
    kind == elastic::kDatabaseWaits ? job.Tell(kind, detail) : job.Event(kind, detail);
  };
  return events;
}

Result<Trained> TrainNetwork(const plan::TrainPlan& plan, catalog::DataSource& source,
                             catalog::ModelStore& models, const Datasets& datasets, JobRecord& job,
                             const elastic::ProgressCallback& progress,
                             elastic::JobCheckpoints* checkpoints) {
  ASSIGN_OR_RETURN(const auto start, StartOf(plan, models));
  const catalog::DatasetSpec* validation =
      datasets.validation == nullptr ? nullptr : &datasets.validation->spec();
  ASSIGN_OR_RETURN(catalog::DatasetSpec data, CountedSpec(plan, datasets));
  if (checkpoints != nullptr) {
    ASSIGN_OR_RETURN(data, checkpoints->DataToRun(data, validation));
  }
  Trained trained;
  const elastic::TrainingJob training{.plan = plan,
                                      .source = source,
                                      .dataset = data,
                                      .validation = validation,
                                      .base = start.has_value() ? &*start : nullptr,
                                      .progress = progress,
                                      .events = EventsOf(job),
                                      .stop = job.stop_token(),
                                      .checkpoints = checkpoints};
  ASSIGN_OR_RETURN(trained.outcome, plan.optimum()     ? elastic::TrainToOptimum(training)
                                    : plan.folds() > 0 ? TrainByFolds(training)
                                                       : elastic::TrainInProcess(training));
  trained.weights = models::SaveWeights(trained.outcome.weights);
  return trained;
}

Result<Trained> Train(const plan::TrainPlan& plan, catalog::DataSource& source,
                      catalog::ModelStore& models, const Datasets& datasets, JobRecord& job,
                      const elastic::ProgressCallback& progress,
                      elastic::JobCheckpoints* checkpoints) {
  if (!IsTrees(plan)) {
    return TrainNetwork(plan, source, models, datasets, job, progress, checkpoints);
  }
  std::string base;
  if (plan.has_base()) {
    ASSIGN_OR_RETURN(base, LoadBase(plan, models));
  }
  Trained trained;
  ASSIGN_OR_RETURN(trained.outcome,
                   TrainTrees(plan, source, *datasets.train, datasets.validation.get(), base,
                              progress, job.stop_token(), &trained.weights));
  return trained;
}

Result<catalog::ModelVersion> Commit(const plan::TrainPlan& plan, catalog::ModelStore& models,
                                     JobRecord& job, const catalog::DatasetSpec& dataset,
                                     const elastic::TrainOutcome& outcome,
                                     const std::string& weights) {
  catalog::ModelVersion version;
  version.schema = plan.into_schema();
  version.name = plan.into_name();
  version.type = plan.model().type();
  version.statement = plan.statement();
  version.plan = plan.SerializeAsString();
  version.metrics = outcome.metrics;
  version.metrics.emplace_back("train_loss", outcome.loss);
  version.job = job.id();
  version.rows = outcome.rows_trained;
  version.lineage = LineageJson(plan, dataset, outcome);
  StorePatience patience;
  patience.away_seconds = plan.database_patience_seconds();
  patience.stop = job.stop_token();
  patience.tell = [&job](const std::string& why) { job.Tell("commit_waits", why); };
  return StoreModel(models, version, weights, plan.must_be_new(), patience);
}

TrainReport Report(catalog::ModelVersion version, const elastic::TrainOutcome& outcome,
                   double seconds, JobRecord& job) {
  job.job().rows_read = outcome.rows_read;
  job.job().rows_trained = outcome.rows_trained;
  job.job().rows_retried = outcome.rows_retried;
  job.job().rows_skipped = outcome.rows_skipped;
  for (const auto& [name, value] : outcome.metrics) {
    job.Metric(outcome.epochs, name, value);
  }
  TrainReport report;
  report.version = std::move(version);
  report.loss = outcome.loss;
  report.rows = outcome.rows_per_epoch;
  report.epochs = outcome.epochs;
  report.metrics = outcome.metrics;
  report.seconds = seconds;
  return report;
}

// Of the metric that the statement calls so; NULL where there were no rows to judge by.
Value MetricOf(const TrainReport& report, const std::string& name) {
  const std::string canonical = models::Metrics::CanonicalName(name);
  for (const auto& [known, value] : report.metrics) {
    if (known == name || known == canonical) {
      return value;
    }
  }
  return std::monostate{};
}

Status SendReport(const plan::TrainPlan& plan, const TrainReport& report, ResultSink& sink) {
  Schema schema = planner::TrainResult(plan);
  const std::string& model_schema = report.version.schema;
  std::vector<Value> row = {
      model_schema.empty() ? report.version.name : model_schema + "." + report.version.name,
      report.version.version,
      report.version.job,
      report.version.type,
      report.rows,
      static_cast<int64_t>(report.epochs),
      std::round(report.seconds * 1000) / 1000,
      report.loss};
  for (size_t i = row.size(); i < schema.columns.size(); ++i) {
    row.push_back(MetricOf(report, schema.columns[i].name));
  }
  ResultRows rows(std::move(schema));
  rows.Add(std::move(row));
  return rows.SendTo(sink);
}

void TellDamaged(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job) {
  if (checkpoints.has_value()) {
    for (const std::string& damaged : checkpoints->damaged()) {
      job.Event("checkpoint_damaged", damaged);
    }
  }
}

// Before the model is stored: from then on the checkpoints are left over.
void TellCommittingJob(const std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job) {
  const Status told =
      checkpoints.has_value() ? checkpoints->SetCommittingJob(job.id()) : OkStatus();
  if (!told.ok()) {  // the model counts; the next run may do some of its steps again
    job.Event("checkpoint_failed", told.message());
  }
}

// The model is there: what is left behind would cost the next run of the statement a moment.
void Finish(std::optional<elastic::JobCheckpoints>& checkpoints, JobRecord& job) {
  const Status finished = checkpoints.has_value() ? checkpoints->Finish() : OkStatus();
  if (!finished.ok()) {
    job.Event("checkpoint_failed", finished.message());
  }
}

// The checkpoints that the statement asks for; says where the training goes on. Errors: why it
// cannot.
Result<std::optional<elastic::JobCheckpoints>> OpenCheckpoints(const plan::TrainPlan& plan,
                                                               catalog::ModelStore& models,
                                                               ResultSink& sink) {
  ASSIGN_OR_RETURN(std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(plan));
  if (!checkpoints.has_value() || !checkpoints->restore().has_value()) {
    return checkpoints;
  }
  if (checkpoints->committing_job().has_value()) {
    ASSIGN_OR_RETURN(const auto version, FindStored(models, plan.into_schema(), plan.into_name(),
                                                    *checkpoints->committing_job()));
    if (version.has_value()) {  // everything was lost before they were removed
      sink.Notice(
          fmt::format("the checkpoints in '{}' are left over from job {}, which made "
                      "version {}: they are removed, and the training begins anew",
                      checkpoints->directory().path(), version->job, version->version));
      RETURN_IF_ERROR(checkpoints->Finish());
      checkpoints.reset();  // one opener at a time
      return elastic::JobCheckpoints::Open(plan);
    }
  }
  for (const std::string& damaged : checkpoints->damaged()) {
    sink.Notice(fmt::format("a damaged checkpoint is passed over: {}", damaged));
  }
  const elastic::CheckpointDirectory::Found& found = *checkpoints->restore();
  sink.Notice(fmt::format("the training goes on from step {} in epoch {}: {}", found.manifest.steps,
                          found.manifest.epoch, found.path));
  return checkpoints;
}

}  // namespace

bool Datasets::Lost() const {
  return train->Lost() || (validation != nullptr && validation->Lost());
}

Result<Datasets> OpenDatasets(const plan::TrainPlan& plan, catalog::DataSource& source) {
  catalog::DatasetOptions options;
  options.rows_per_shard = plan.rows_per_shard();
  options.many_processes = OnProcesses(plan);
  options.mixed = plan.shuffle();
  Datasets datasets;
  ASSIGN_OR_RETURN(datasets.train, source.OpenDataset(plan.select(), options));
  if (plan.split().kind() == plan::Split::SELECT) {
    ASSIGN_OR_RETURN(datasets.validation, source.OpenDataset(plan.split().select(), options));
  }
  return datasets;
}

Result<catalog::DatasetSpec> CountedSpec(const plan::TrainPlan& plan, const Datasets& datasets) {
  catalog::DatasetSpec data = datasets.train->spec();
  if (plan.has_checkpoints() && data.counted_rows() == 0) {
    ASSIGN_OR_RETURN(const int64_t rows, datasets.train->CountRows());
    data.set_counted_rows(rows);
  }
  return data;
}

Result<TrainReport> TrainOnProcesses(const plan::TrainPlan& plan, catalog::DataSource& source,
                                     catalog::Catalog& catalog, JobRecord& job,
                                     const TrainingFleet& place,
                                     const elastic::ProgressCallback& progress) {
  ASSIGN_OR_RETURN(const auto start, StartOf(plan, catalog.models()));
  ASSIGN_OR_RETURN(std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(plan));
  catalog::DatasetSpec data = place.dataset;
  if (checkpoints.has_value()) {
    ASSIGN_OR_RETURN(data, checkpoints->DataToRun(place.dataset, place.validation));
    TellDamaged(checkpoints, job);
  }
  std::optional<catalog::ModelVersion> version;
  if (place.endpoint.term > elastic::Term::First()) {
    ASSIGN_OR_RETURN(version,
                     FindStored(catalog.models(), plan.into_schema(), plan.into_name(), job.id()));
  }
  elastic::JobJournal journal(catalog.jobs(), job.id());
  elastic::Succession succession;
  succession.journal = &journal;
  succession.committed = version.has_value();
  succession.commit = [&](const elastic::TrainOutcome& outcome) -> Status {
    TellCommittingJob(checkpoints, job);
    ASSIGN_OR_RETURN(version, Commit(plan, catalog.models(), job, place.dataset, outcome,
                                     models::SaveWeights(outcome.weights)));
    return OkStatus();
  };
  ASSIGN_OR_RETURN(
      const elastic::TrainOutcome outcome,
      elastic::TrainOnFleet({.plan = plan,
                             .source = source,
                             .dataset = data,
                             .validation = place.validation,
                             .base = start.has_value() ? &*start : nullptr,
                             .progress = progress,
                             .events = EventsOf(job),
                             .stop = job.stop_token(),
                             .checkpoints = checkpoints.has_value() ? &*checkpoints : nullptr},
                            place.fleet, place.endpoint, succession));
  Finish(checkpoints, job);
  constexpr double kMicros = 1e6;
  const double seconds =
      static_cast<double>(version->created_micros - job.job().started_micros) / kMicros;
  return Report(*std::move(version), outcome, seconds, job);
}

namespace {

// Opens the dataset, trains in this process, and commits the model version in one transaction.
// Nothing is left behind on an error.
Result<TrainReport> TrainAndCommit(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                   const elastic::ProgressCallback& progress,
                                   std::optional<elastic::JobCheckpoints> checkpoints) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(plan, context.source));
  TellDamaged(checkpoints, job);
  const Result<Trained> trained = Train(plan, context.source, context.catalog.models(), datasets,
                                        job, progress, checkpoints ? &*checkpoints : nullptr);
  if (!trained.ok()) {
    job.set_snapshot_lost(datasets.Lost());
    return trained.status();
  }
  if (job.stop_token().stop_requested()) {  // cancelled at the very end: nothing is committed
    return Cancelled("the training was cancelled");
  }
  TellCommittingJob(checkpoints, job);
  ASSIGN_OR_RETURN(catalog::ModelVersion version,
                   Commit(plan, context.catalog.models(), job, datasets.train->spec(),
                          trained->outcome, trained->weights));
  Finish(checkpoints, job);
  return Report(std::move(version), trained->outcome, SecondsBetween(started, SteadyClock().Now()),
                job);
}

// In this process, or through a master process. Where there is a checkpoint, the plan is the one
// that it was made by.
Result<TrainReport> TrainHereOrOnMaster(const plan::TrainPlan& wanted, Context& context,
                                        JobRecord& job, const elastic::ProgressCallback& progress,
                                        std::optional<elastic::JobCheckpoints> checkpoints) {
  const plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
  return Guarded("training", [&] {
    if (!OnProcesses(plan)) {
      return TrainAndCommit(plan, context, job, progress, std::move(checkpoints));
    }
    checkpoints.reset();  // the master opens them to write
    return TrainOnMaster(plan, context, job, progress);
  });
}

}  // namespace

Status ExecuteTrain(const plan::TrainPlan& plan, Context& context, ResultSink& sink) {
  if (!plan.chosen_because().empty()) {
    sink.Notice(plan.chosen_because());
  }
  for (const std::string& attribute : plan.without_effect()) {
    sink.Notice(attribute);
  }
  // Before there is a job.
  ASSIGN_OR_RETURN(auto checkpoints, OpenCheckpoints(plan, context.catalog.models(), sink));
  ASSIGN_OR_RETURN(const auto job, StartJob(context, "train", plan.into_name()));
  ClientTeller client(sink);
  job->OnTold([&client](const std::string& text) { client.Notify(text); });
  context.source.HearStop(job->stop_token());
  context.catalog.HearStop(job->stop_token());
  const auto progress = [&client, &job = *job](const elastic::Progress& now) {
    job.Progress(now);
    client.Tell(now);
  };
  Result<TrainReport> report =
      TrainHereOrOnMaster(plan, context, *job, progress, std::move(checkpoints));
  while (!report.ok() && MayGoOn(plan, *job) &&
         BackAgain(plan, context.catalog.jobs(), *job, report)) {
    auto newer = elastic::JobCheckpoints::Open(plan);
    report = newer.ok() ? TrainHereOrOnMaster(plan, context, *job, progress, *std::move(newer))
                        : Result<TrainReport>(newer.status());
  }
  const Status finished = job->Finish(report.status());
  client.Finish();
  RETURN_IF_ERROR(finished);
  RETURN_IF_ERROR(SendReport(plan, *report, sink));
  sink.Done("TRAIN");
  return OkStatus();
}

}  // namespace sluice::executor
