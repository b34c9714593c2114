#include "executor/train.h"

#include <fmt/core.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job_checkpoints.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/result_rows.h"
#include "executor/train_on_master.h"
#include "executor/train_trees.h"
#include "models/registry.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

bool OnProcesses(const plan::TrainPlan& plan) {
  return plan.strategy().kind() != plan::Strategy::LOCAL;
}

bool IsTrees(const plan::TrainPlan& plan) {
  const models::ModelType* type = models::FindModelType(plan.model().type());
  return type != nullptr && type->family == models::ModelFamily::kTrees;
}

// The datasets of a job, kept open (with their snapshot) until it ends.
struct Datasets {
  std::unique_ptr<catalog::Dataset> train;
  std::unique_ptr<catalog::Dataset> validation;  // validation.select; else null
};

Result<Datasets> OpenDatasets(const plan::TrainPlan& plan, catalog::DataSource& source) {
  catalog::DatasetOptions options;
  options.rows_per_shard = plan.rows_per_shard();
  options.many_processes = OnProcesses(plan);
  Datasets datasets;
  ASSIGN_OR_RETURN(datasets.train, source.OpenDataset(plan.select(), options));
  if (plan.split().kind() == plan::Split::SELECT) {
    ASSIGN_OR_RETURN(datasets.validation, source.OpenDataset(plan.split().select(), options));
  }
  return datasets;
}

// The weights of the model that USING names; they must have the new model's shape.
Result<std::string> LoadBase(const plan::TrainPlan& plan, catalog::DataSource& source) {
  std::optional<int64_t> wanted;
  if (plan.base_version() != 0) {
    wanted = plan.base_version();
  }
  ASSIGN_OR_RETURN(const catalog::ModelVersion base,
                   source.models().Find(plan.base_schema(), plan.base_name(), wanted));
  return source.models().LoadWeights(base);
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

// The snapshot to train on; a job with checkpoints also knows how many rows it has.
Result<catalog::DatasetSpec> DataToTrainOn(const Datasets& datasets,
                                           elastic::JobCheckpoints* checkpoints) {
  catalog::DatasetSpec data = datasets.train->spec();
  if (checkpoints == nullptr) {
    return data;
  }
  if (data.counted_rows() == 0) {
    ASSIGN_OR_RETURN(const int64_t rows, datasets.train->CountRows());
    data.set_counted_rows(rows);
  }
  return checkpoints->DataToRun(
      data, datasets.validation == nullptr ? nullptr : &datasets.validation->spec());
}

Result<Trained> TrainNetwork(const plan::TrainPlan& plan, catalog::DataSource& source,
                             const Datasets& datasets, JobRecord& job, const TrainingFleet* fleet,
                             const elastic::ProgressCallback& progress,
                             elastic::JobCheckpoints* checkpoints) {
  models::NetworkWeights base;
  if (plan.has_base()) {
    ASSIGN_OR_RETURN(const std::string bytes, LoadBase(plan, source));
    ASSIGN_OR_RETURN(base, models::LoadWeights(bytes));
    ASSIGN_OR_RETURN(const auto network, models::Network::Make(plan.model()));
    RETURN_IF_ERROR(models::CheckShape(base, *network)
                        .Because(fmt::format("continuing from model {}", plan.base_name())));
  }
  const models::NetworkWeights* start = plan.has_base() ? &base : nullptr;
  const catalog::DatasetSpec* validation =
      datasets.validation == nullptr ? nullptr : &datasets.validation->spec();
  elastic::EventCallback events;
  events.on_event = [&job](const std::string& kind, const std::string& detail) {
    job.Event(kind, detail);
  };
  ASSIGN_OR_RETURN(const catalog::DatasetSpec data, DataToTrainOn(datasets, checkpoints));
  Trained trained;
  if (fleet != nullptr) {
    ASSIGN_OR_RETURN(
        trained.outcome,
        elastic::TrainOnFleet(plan, source, fleet->fleet, fleet->seat, data, validation, start,
                              progress, events, job.stop_token(), nullptr, checkpoints));
  } else {
    ASSIGN_OR_RETURN(trained.outcome,
                     elastic::TrainInProcess(plan, source, data, validation, start, progress,
                                             events, job.stop_token(), checkpoints));
  }
  trained.weights = models::SaveWeights(trained.outcome.weights);
  return trained;
}

Result<Trained> Train(const plan::TrainPlan& plan, catalog::DataSource& source,
                      const Datasets& datasets, JobRecord& job, const TrainingFleet* fleet,
                      const elastic::ProgressCallback& progress,
                      elastic::JobCheckpoints* checkpoints) {
  if (!IsTrees(plan)) {
    return TrainNetwork(plan, source, datasets, job, fleet, progress, checkpoints);
  }
  std::string base;
  if (plan.has_base()) {
    ASSIGN_OR_RETURN(base, LoadBase(plan, source));
  }
  Trained trained;
  ASSIGN_OR_RETURN(trained.outcome,
                   TrainTrees(plan, source, *datasets.train, datasets.validation.get(), base,
                              progress, job.stop_token(), &trained.weights));
  return trained;
}

// model, version, job, type, rows, epochs, seconds, loss, <the metrics of the task>
Status SendReport(const TrainReport& report, ResultSink& sink) {
  Schema schema{{{"model", DataType::kText, ""},
                 {"version", DataType::kInt64, ""},
                 {"job", DataType::kInt64, ""},
                 {"type", DataType::kText, ""},
                 {"rows", DataType::kInt64, ""},
                 {"epochs", DataType::kInt64, ""},
                 {"seconds", DataType::kDouble, ""},
                 {"loss", DataType::kDouble, ""}}};
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
  for (const auto& [name, value] : report.metrics) {
    schema.columns.push_back({name, DataType::kDouble, ""});
    row.emplace_back(value);
  }
  ResultRows rows(std::move(schema));
  rows.Add(std::move(row));
  return rows.SendTo(sink);
}

// Before there is a job: says from where it goes on, or why it cannot.
Status LookAtCheckpoints(const plan::TrainPlan& plan, ResultSink& sink) {
  ASSIGN_OR_RETURN(const std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(plan));
  if (!checkpoints.has_value() || !checkpoints->restore().has_value()) {
    return OkStatus();
  }
  for (const std::string& damaged : checkpoints->damaged()) {
    sink.Notice(fmt::format("a damaged checkpoint is passed over: {}", damaged));
  }
  const elastic::CheckpointDirectory::Found& found = *checkpoints->restore();
  sink.Notice(fmt::format("the training goes on from step {} in epoch {}: {}", found.manifest.steps,
                          found.manifest.epoch, found.path));
  return OkStatus();
}

}  // namespace

Result<TrainReport> TrainAndCommit(const plan::TrainPlan& wanted, catalog::DataSource& source,
                                   JobRecord& job, const TrainingFleet* fleet,
                                   const elastic::ProgressCallback& progress) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(wanted));
  const plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
  ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(plan, source));
  if (checkpoints.has_value()) {
    for (const std::string& damaged : checkpoints->damaged()) {
      job.Event("checkpoint_damaged", damaged);
    }
    // A master that takes over (its term is a later one) goes on by the journal instead.
    if (fleet != nullptr && fleet->seat.term > 1) {
      checkpoints->GoOn();
    }
  }
  ASSIGN_OR_RETURN(const Trained trained, Train(plan, source, datasets, job, fleet, progress,
                                                checkpoints ? &*checkpoints : nullptr));
  const elastic::TrainOutcome& outcome = trained.outcome;
  if (job.stop_token().stop_requested()) {  // cancelled at the very end: nothing is committed
    return Cancelled("the training was cancelled");
  }

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
  version.lineage = LineageJson(plan, datasets.train->spec(), outcome);

  TrainReport report;
  ASSIGN_OR_RETURN(report.version,
                   source.models().Put(std::move(version), trained.weights, plan.must_be_new()));
  if (checkpoints.has_value()) {
    // The model is there: what is left behind costs the next run of the statement a moment.
    const Status finished = checkpoints->Finish();
    if (!finished.ok()) {
      job.Event("checkpoint_failed", finished.message());
    }
  }
  report.loss = outcome.loss;
  report.rows = outcome.rows_per_epoch;
  report.epochs = outcome.epochs;
  report.metrics = outcome.metrics;
  report.seconds = SecondsBetween(started, SteadyClock().Now());
  job.job().rows_read = outcome.rows_read;
  job.job().rows_trained = outcome.rows_trained;
  job.job().rows_retried = outcome.rows_retried;
  job.job().rows_skipped = outcome.rows_skipped;
  for (const auto& [name, value] : outcome.metrics) {
    job.Metric(outcome.epochs, name, value);
  }
  return report;
}

Status ExecuteTrain(const plan::TrainPlan& plan, Context& context, ResultSink& sink) {
  if (!plan.chosen_because().empty()) {
    sink.Notice(plan.chosen_because());
  }
  RETURN_IF_ERROR(LookAtCheckpoints(plan, sink));
  catalog::Job description;
  description.kind = "train";
  description.statement = context.statement;
  description.model = plan.into_name();
  description.user = context.user;
  ASSIGN_OR_RETURN(const auto job,
                   JobRecord::Start(context.source.jobs(), description, context.stop));
  const auto progress = [&sink](const elastic::Progress& now) { sink.Progress(now); };
  Result<TrainReport> report = OnProcesses(plan)
                                   ? TrainOnMaster(plan, context, *job, progress)
                                   : TrainAndCommit(plan, context.source, *job, nullptr, progress);
  RETURN_IF_ERROR(job->Finish(report.status()));
  RETURN_IF_ERROR(SendReport(*report, sink));
  sink.Done("TRAIN");
  return OkStatus();
}

}  // namespace sluice::executor
