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
#include "executor/client_reporter.h"
#include "executor/cluster.h"
#include "executor/contest.h"
#include "executor/contest_clock.h"
#include "executor/executor.h"
#include "executor/finish_model.h"
#include "executor/job_answer.h"
#include "executor/job_record.h"
#include "executor/label_trials.h"
#include "executor/result_rows.h"
#include "executor/search_on_fleet.h"
#include "executor/store_model.h"
#include "executor/train_again.h"
#include "executor/train_checkpoints.h"
#include "executor/train_here.h"
#include "executor/weight_decay.h"
#include "models/features/feature_transform.h"
#include "models/metrics/decision_table.h"
#include "models/metrics/metric.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

bool OnProcesses(const plan::TrainPlan& plan) {
  return plan.strategy().kind() != plan::Strategy::LOCAL;
}

// From the job's start.
double SecondsUntil(int64_t micros, JobRecord& job) {
  constexpr double kMicros = 1e6;
  return static_cast<double>(micros - job.job().started_micros) / kMicros;
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

// `stop` ends what is found out about the model, and the wait for a database.
Result<catalog::ModelVersion> Commit(const TrainedModel& model, catalog::ModelStore& models,
                                     JobRecord& job, const elastic::TrainOutcome& outcome,
                                     const std::stop_token& stop) {
  plan::TrainPlan plan = model.plan;
  catalog::ModelVersion version;
  version.metrics = outcome.metrics;
  PhaseClock clock(Phase::kFinishing, &job.profile());
  RETURN_IF_ERROR(FinishModel(model, stop, &plan, &version.metrics));
  clock.Enter(Phase::kStoring);
  version.schema = plan.into_schema();
  version.name = plan.into_name();
  version.type = plan.model().type();
  version.statement = plan.statement();
  plan.mutable_model()->mutable_features()->mutable_label()->clear_classes_of_sample();
  version.plan = plan.SerializeAsString();
  version.metrics.emplace_back("train_loss", outcome.loss);
  version.job = job.id();
  version.rows = outcome.rows_trained;
  version.lineage = LineageJson(plan, model.dataset, outcome);
  StorePatience patience;
  patience.away_seconds = plan.database_patience_seconds();
  patience.stop = stop;
  patience.tell = [&job](const std::string& why) { job.Announce("commit_waits", why); };
  return StoreModel(models, version, model.weights, plan.must_be_new(), patience);
}

TrainReport Report(catalog::ModelVersion version, const elastic::TrainOutcome& outcome,
                   double seconds, JobRecord& job) {
  job.job().rows_read = outcome.rows_read;
  job.job().rows_trained = outcome.rows_trained;
  job.job().rows_retried = outcome.rows_retried;
  job.job().rows_skipped = outcome.rows_skipped;
  // As stored, that is after calibration; the loss is shown next to them.
  std::vector<std::pair<std::string, double>> metrics = version.metrics;
  std::erase_if(metrics, [](const auto& one) { return one.first == "train_loss"; });
  for (const auto& [name, value] : metrics) {
    if (!models::IsDecisionMetric(name)) {
      job.Metric(outcome.epochs, name, value);
    }
  }
  TrainReport report;
  report.version = std::move(version);
  report.loss = outcome.loss;
  report.rows = outcome.rows_per_epoch;
  report.epochs = outcome.epochs;
  report.metrics = std::move(metrics);
  report.seconds = seconds;
  return report;
}

// The result of an earlier process, which was lost before it could report it.
TrainReport ReportOfStored(catalog::ModelVersion version, JobRecord& job) {
  elastic::TrainOutcome outcome;
  outcome.rows_per_epoch = version.rows_per_epoch;
  outcome.rows_trained = version.rows;
  if (version.rows_per_epoch > 0) {
    outcome.epochs = static_cast<uint32_t>(version.rows / version.rows_per_epoch);
  }
  for (const auto& [name, value] : version.metrics) {
    outcome.loss = name == "train_loss" ? value : outcome.loss;
  }
  const double seconds = SecondsUntil(version.created_micros, job);
  return Report(std::move(version), outcome, seconds, job);
}

// The metric of this name in the statement; NULL if there were no rows to evaluate, or too many
// classes for it (a curve each: auc).
Value MetricOf(const TrainReport& report, const std::string& name) {
  const std::string canonical = models::Metrics::CanonicalName(name);
  for (const auto& [known, value] : report.metrics) {
    if ((known == name || known == canonical) && !std::isnan(value)) {
      return value;
    }
  }
  return std::monostate{};
}

ResultRows RowOf(const plan::TrainPlan& plan, const TrainReport& report) {
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
  return rows;
}

}  // namespace

bool Datasets::Lost() const {
  return train->Lost() || (validation != nullptr && validation->Lost());
}

Result<Datasets> OpenDatasets(const plan::TrainPlan& plan, catalog::DataSource& source) {
  catalog::DatasetOptions options;
  options.rows_per_shard = plan.rows_per_shard();
  options.many_processes = OnProcesses(plan);
  // Trees do not depend on the order of rows, but their competitors do.
  const auto& candidates = plan.contest().candidates();
  options.mixed = plan.shuffle() || std::any_of(candidates.begin(), candidates.end(),
                                                [](const plan::Candidate& candidate) {
                                                  return candidate.plan().shuffle();
                                                });
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

namespace {

// From the stop of a search until its best model is stored, at most; a master that is asked to stop
// is killed a while later.
constexpr double kKeepSeconds = 2;

Result<TrainReport> SearchAndCommit(const plan::TrainPlan& plan, catalog::DataSource& source,
                                    catalog::Catalog& catalog, JobRecord& job,
                                    const TrainingFleet& place,
                                    const elastic::ProgressCallback& progress) {
  if (place.endpoint.term > elastic::Term::First()) {
    ASSIGN_OR_RETURN(auto stored,
                     FindStored(catalog.models(), plan.into_schema(), plan.into_name(), job.id()));
    if (stored.has_value()) {
      return ReportOfStored(*std::move(stored), job);
    }
  }
  const auto commit = [&](const ContestResult& won, const std::stop_token& stop) {
    return Commit({*won.plan, source, place.dataset, place.validation, won.trained.weights,
                   won.trained.outcome.rows_trained},
                  catalog.models(), job, won.trained.outcome, stop);
  };
  ASSIGN_OR_RETURN(const ContestResult won,
                   SearchOnFleet(plan, source, catalog.jobs(), job, place, progress));
  Result<catalog::ModelVersion> version = Cancelled("the search was stopped");
  if (!job.stop_token().stop_requested()) {
    version = commit(won, job.stop_token());
  }
  if (!version.ok() && job.stop_token().stop_requested() && plan.contest().search()) {
    catalog.HearStop({});
    source.HearStop({});
    job.Announce("search_stopped", "the search was stopped: the best so far is kept");
    const SoftLimit limit({}, kKeepSeconds, true);
    version = commit(won, limit.finish());
  }
  RETURN_IF_ERROR(version.status());
  const double seconds = SecondsUntil(version->created_micros, job);
  return Report(*std::move(version), won.trained.outcome, seconds, job);
}

}  // namespace

Result<TrainReport> TrainOnProcesses(const plan::TrainPlan& plan, catalog::DataSource& source,
                                     catalog::Catalog& catalog, JobRecord& job,
                                     const TrainingFleet& place,
                                     const elastic::ProgressCallback& progress) {
  if (plan.has_contest()) {
    return SearchAndCommit(plan, source, catalog, job, place, progress);
  }
  if (place.endpoint.term == elastic::Term::First()) {
    job.profile().Add(Phase::kStart, SecondsUntil(WallMicros(), job));
  }
  ASSIGN_OR_RETURN(const auto start, StartOf(plan, catalog));
  ASSIGN_OR_RETURN(std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(plan));
  catalog::DatasetSpec data = place.dataset;
  if (checkpoints.has_value()) {
    ASSIGN_OR_RETURN(data, checkpoints->DataToRun(place.dataset, place.validation));
    ReportDamaged(checkpoints, job);
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
    ReportCommittingJob(checkpoints, job);
    const std::string weights = models::SaveWeights(outcome.weights);
    ASSIGN_OR_RETURN(version, Commit({plan, source, place.dataset, place.validation, weights,
                                      outcome.rows_trained},
                                     catalog.models(), job, outcome, job.stop_token()));
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
                             .suspend = place.suspend,
                             .suspended = place.suspended,
                             .held = place.held,
                             .profile = &job.profile(),
                             .checkpoints = checkpoints.has_value() ? &*checkpoints : nullptr},
                            place.fleet, place.endpoint, succession));
  FinishCheckpoints(checkpoints, job);
  const double seconds = SecondsUntil(version->created_micros, job);
  return Report(*std::move(version), outcome, seconds, job);
}

namespace {

// Tries several models and commits the best. A search that is stopped keeps the best so far, and
// from then on waits for nothing.
Result<TrainReport> CompeteAndCommit(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                     const Datasets& datasets, TimePoint started,
                                     const elastic::ProgressCallback& progress) {
  Result<ContestResult> won = RunContest(plan, context.source, datasets, job, progress);
  if (!won.ok()) {
    job.set_snapshot_lost(datasets.Lost());
    return won.status();
  }
  const bool stopped = job.stop_token().stop_requested();
  if (stopped && !plan.contest().search()) {
    return Cancelled("the training was cancelled");
  }
  if (stopped) {
    context.catalog.HearStop({});
    job.Announce("search_stopped", "the search was stopped: the best so far is kept");
  }
  ASSIGN_OR_RETURN(catalog::ModelVersion version,
                   Commit({*won->plan, context.source, datasets.train->spec(),
                           datasets.validation == nullptr ? nullptr : &datasets.validation->spec(),
                           won->trained.weights, won->trained.outcome.rows_trained,
                           won->trained.held_out ? &*won->trained.held_out : nullptr},
                          context.catalog.models(), job, won->trained.outcome, job.stop_token()));
  return Report(std::move(version), won->trained.outcome,
                SecondsBetween(started, SteadyClock().Now()), job);
}

// Opens the dataset, trains in this process, and commits the model version in one transaction.
// Leaves nothing behind on an error.
Result<TrainReport> TrainAndCommit(plan::TrainPlan plan, Context& context, JobRecord& job,
                                   const elastic::ProgressCallback& progress,
                                   std::optional<elastic::JobCheckpoints> checkpoints) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(plan, context.source));
  job.profile().Add(Phase::kStart, SecondsBetween(started, SteadyClock().Now()));
  ReportDamaged(checkpoints, job);
  if (plan.has_contest()) {
    return CompeteAndCommit(plan, context, job, datasets, started, progress);
  }
  const Result<Trained> trained = TrainHere(plan, context.source, context.catalog, datasets, job,
                                            progress, checkpoints ? &*checkpoints : nullptr);
  if (!trained.ok()) {
    job.set_snapshot_lost(datasets.Lost());
    return trained.status();
  }
  if (job.stop_token().stop_requested()) {  // cancelled at the very end: nothing is committed
    return Cancelled("the training was cancelled");
  }
  if (const FoldChoice& choice = trained->choice; !choice.why.empty()) {
    UseWeightDecay(choice.weight_decay, &plan);
    plan.add_told(choice.why);
    job.Announce("weight_decay", choice.why);
  }
  ReportCommittingJob(checkpoints, job);
  const catalog::DatasetSpec* validation =
      datasets.validation == nullptr ? nullptr : &datasets.validation->spec();
  ASSIGN_OR_RETURN(
      catalog::ModelVersion version,
      Commit({plan, context.source, datasets.train->spec(), validation, trained->weights,
              trained->outcome.rows_trained, trained->held_out ? &*trained->held_out : nullptr},
             context.catalog.models(), job, trained->outcome, job.stop_token()));
  FinishCheckpoints(checkpoints, job);
  return Report(std::move(version), trained->outcome, SecondsBetween(started, SteadyClock().Now()),
                job);
}

// Trains in this process, or through a master process. If there is a checkpoint, the plan is the
// one it was made with.
Result<TrainReport> TrainHereOrOnMaster(const plan::TrainPlan& wanted, Context& context,
                                        JobRecord& job, const elastic::ProgressCallback& progress,
                                        std::optional<elastic::JobCheckpoints> checkpoints) {
  return Guarded("training", [&]() -> Result<TrainReport> {
    plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
    if (plan.label_trials_size() > 0) {
      ASSIGN_OR_RETURN(plan, ChooseLabelScale(plan, context.source, job, progress));
    }
    if (!OnProcesses(plan)) {
      return TrainAndCommit(plan, context, job, progress, std::move(checkpoints));
    }
    checkpoints.reset();  // the master opens them to write
    if (context.cluster == nullptr) {
      return Result<TrainReport>(
          FailedPrecondition("this session cannot start processes")
              .Hint("engine.strategy='local' trains in the session's own process"));
    }
    return context.cluster->Train(plan, context, job, progress);
  });
}

}  // namespace

Status ExecuteTrain(const plan::TrainPlan& planned, Context& context, ResultSink& sink) {
  plan::TrainPlan plan = planned;
  if (!plan.chosen_because().empty()) {
    sink.Notice(plan.chosen_because());
  }
  for (const std::string& attribute : plan.without_effect()) {
    sink.Notice(attribute);
  }
  if (const std::string left_out = planner::DescribeLeftOut(plan); !left_out.empty()) {
    sink.Notice(left_out);
  }
  for (const std::string& note : plan.told()) {
    sink.Notice(note);
  }
  for (const std::string& warning : plan.warnings()) {
    sink.Notice("WARNING: " + warning);
  }
  const TimePoint started = SteadyClock().Now();
  // Before there is a job.
  ASSIGN_OR_RETURN(auto checkpoints, OpenCheckpoints(plan, context.catalog.models(), sink));
  ASSIGN_OR_RETURN(const auto job,
                   StartJob(context, "train", plan.into_name(), planner::TrainResult(plan)));
  job->profile().Add(Phase::kPlanning, context.planning_seconds);
  job->profile().Add(Phase::kStart, SecondsBetween(started, SteadyClock().Now()));
  ClientReporter client(sink);
  job->OnNotice([&client](const std::string& text) { client.Notify(text); });
  context.source.HearStop(job->stop_token());
  context.catalog.HearStop(job->stop_token());
  const auto progress = [&client, &job = *job](const elastic::Progress& now) {
    job.Progress(now);
    client.Report(now);
  };
  const auto train = [&]() -> Result<TrainReport> {
    if (context.job.has_value()) {
      ASSIGN_OR_RETURN(auto stored, FindStored(context.catalog.models(), plan.into_schema(),
                                               plan.into_name(), job->id()));
      if (stored.has_value()) {
        return ReportOfStored(*std::move(stored), *job);
      }
    }
    return TrainHereOrOnMaster(plan, context, *job, progress, std::move(checkpoints));
  };
  Result<TrainReport> report = train();
  if (models::IsUnseenClass(report.status()) && context.plan_with_all_classes) {
    job->Announce("training_begins_again", report.status().message());
    Result<plan::Plan> anew = context.plan_with_all_classes();
    if (anew.ok()) {
      plan = std::move(*anew->mutable_train());
    }
    report = anew.ok() ? train() : Result<TrainReport>(anew.status());
  }
  while (!report.ok() && MayResume(plan, *job) &&
         AwaitDatabase(plan, context.catalog.jobs(), *job, report)) {
    auto newer = elastic::JobCheckpoints::Open(plan);
    report = newer.ok() ? TrainHereOrOnMaster(plan, context, *job, progress, *std::move(newer))
                        : Result<TrainReport>(newer.status());
  }
  constexpr const char* kTag = "TRAIN";
  std::optional<ResultRows> answer;
  if (report.ok()) {
    answer = RowOf(plan, *report);
    job->Answer(AnswerBytes(*answer, kTag));
  }
  const Status finished = job->Finish(report.status());
  client.Finish();
  RETURN_IF_ERROR(finished);
  RETURN_IF_ERROR(answer->SendTo(sink));
  sink.Done(kTag);
  return OkStatus();
}

}  // namespace sluice::executor
