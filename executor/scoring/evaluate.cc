#include "executor/scoring/evaluate.h"

#include <fmt/core.h>

#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/jobs/begin_job.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"
#include "executor/result_rows.h"
#include "executor/scoring/bad_rows.h"
#include "executor/scoring/dataset_scan.h"
#include "executor/scoring/decision_threshold.h"
#include "executor/scoring/drift.h"
#include "executor/scoring/drift_notices.h"
#include "executor/scoring/predict_rows.h"
#include "executor/scoring/result_table.h"
#include "executor/scoring/scorer.h"
#include "executor/scoring/scorer_cache.h"
#include "executor/scoring/used_model.h"
#include "models/features/query_order.h"
#include "models/metrics/confusion.h"
#include "models/metrics/decision_table.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

// The result of an EVALUATE.
struct Found {
  models::Metrics metrics;
  models::ConfusionMatrix confusion;
};

Status NoRows() {
  return InvalidArgument("no rows to evaluate: the select is empty").SqlState("02000");
}

Result<Found> ScoreRows(const plan::EvaluatePlan& plan, Scorer& scorer,
                        const models::ModelSpec& spec, std::optional<double> threshold,
                        DatasetScan& scan, const std::stop_token& stop, const RowsCounted& counted,
                        Drift& drift) {
  elastic::FeatureReader::Options options;
  options.names = scorer.transform().ColumnNames(/*with_label=*/true);
  Found found{models::Metrics(spec, scorer.outputs()),
              models::ConfusionMatrix(scorer.outputs(), threshold)};
  if (threshold) {
    found.metrics.DecideFrom(*threshold);
  }
  std::vector<double> scores;
  const bool ranks = models::TaskOf(spec) == models::Task::kRanking;
  models::QueryOrder order(spec.features().group_column());
  const auto visit = [&](elastic::FeatureReader& read) -> Status {
    counted(scan.rows_read());
    const models::FeatureBatch& batch = read.features();
    for (size_t r = 0; ranks && r < batch.groups.size(); ++r) {
      RETURN_IF_ERROR(order.Begins(batch.groups[r]).status());
    }
    drift.Add(read);
    RETURN_IF_ERROR(scorer.Score(batch, &scores));
    const std::vector<double> labels = batch.OwnLabels();
    found.metrics.Add(scores, labels, batch.weights, batch.groups);
    if (const auto own = scorer.own_loss()) {
      found.metrics.AddOwnLoss(own->loss, own->weight);
    }
    if (plan.report() == plan::EvaluatePlan::CONFUSION) {
      found.confusion.Add(scores, labels, batch.weights);
    }
    return OkStatus();
  };
  scan.set_rows_per_batch(scorer.rows_per_batch());
  const Status read = scan.ForEach(scorer.transform(), options, visit, stop);
  counted(scan.rows_read());  // even if the batch is unusable
  RETURN_IF_ERROR(read);
  if (scan.rows_read() == 0) {
    return NoRows();
  }
  return found;
}

// Reads the rows without their labels, and scores none.
Status CompareRows(const Scorer& scorer, DatasetScan& scan, const std::stop_token& stop,
                   const RowsCounted& counted, Drift& drift) {
  elastic::FeatureReader::Options options;
  options.with_label = false;
  const auto visit = [&](elastic::FeatureReader& read) -> Status {
    counted(scan.rows_read());
    drift.Add(read);
    return OkStatus();
  };
  const Status read = scan.ForEach(scorer.transform(), options, visit, stop);
  counted(scan.rows_read());
  RETURN_IF_ERROR(read);
  return scan.rows_read() == 0 ? NoRows() : OkStatus();
}

ResultRows RowsOf(const Found& found, const models::ModelSpec& model,
                  const plan::EvaluatePlan& plan) {
  ResultRows rows(planner::EvaluateResult(plan, model));
  if (plan.report() == plan::EvaluatePlan::CONFUSION) {
    const auto& classes = model.features().label().classes();
    for (const auto& [cell, weight] : found.confusion.cells()) {
      rows.Add(
          {classes[static_cast<int>(cell.first)], classes[static_cast<int>(cell.second)], weight});
    }
    return rows;
  }
  if (plan.report() == plan::EvaluatePlan::THRESHOLDS) {
    const auto metrics = found.metrics.Values(models::DecisionMetrics());
    for (const models::Decision& one : models::DecisionTable(metrics)) {
      rows.Add({one.threshold, one.taken(), one.precision(), one.recall(), one.f1(),
                one.true_positives, one.false_positives, one.true_negatives, one.false_negatives});
    }
    return rows;
  }
  std::vector<Value> row;
  for (const planner::NamedMetric& metric : planner::EvaluatedMetrics(plan, model)) {
    row.emplace_back(found.metrics.Value(metric.metric));
  }
  rows.Add(std::move(row));
  return rows;
}

std::string EvaluatedTag(int64_t rows) {
  return fmt::format("EVALUATE {}", rows);
}

// `job`: null if the rows only go to the client. `rows_read`: by then.
Status RunEvaluate(const plan::EvaluatePlan& plan, Context& context, JobRecord* job,
                   ResultSink& sink, int64_t* rows_read) {
  ASSIGN_OR_RETURN(const auto model, FindUsedModel(plan, context));
  const catalog::ModelVersion& version = *model;
  ASSIGN_OR_RETURN(const plan::TrainPlan trained, planner::ReadStoredPlan(version.plan));
  ASSIGN_OR_RETURN(const auto scorer, LoadScorer(context, version, plan.label()));
  // Open it before there is a writer: the session's own connection does one thing at a time.
  ASSIGN_OR_RETURN(const auto scan, DatasetScan::Open(context.source, plan.select(),
                                                      {.rows_per_shard = plan.rows_per_shard()}));
  if (context.on_snapshot) {
    context.on_snapshot(scan->snapshot());
  }
  std::unique_ptr<catalog::TableWriter> writer;
  if (job != nullptr) {
    ASSIGN_OR_RETURN(writer,
                     OpenResultTable(plan.table(), planner::EvaluateResult(plan, trained.model()),
                                     "evaluate", job->id(), context, sink));
  }
  const std::stop_token stop = job == nullptr ? context.stop : job->stop_token();
  const auto counted = [job, rows_read](int64_t rows) {
    *rows_read = rows;
    if (job != nullptr) {
      job->Rows(rows, 0);
    }
  };
  const bool labelled = plan.report() != plan::EvaluatePlan::DRIFT;
  Drift drift(trained.model().features(), scorer->transform().ColumnNames(labelled));
  ResultRows rows(Schema{});
  if (labelled) {
    ASSIGN_OR_RETURN(const Found found,
                     ScoreRows(plan, *scorer, trained.model(), DecisionThreshold(trained, version),
                               *scan, stop, counted, drift));
    rows = RowsOf(found, trained.model(), plan);
  } else {
    RETURN_IF_ERROR(CompareRows(*scorer, *scan, stop, counted, drift));
    rows = DriftRows(drift);
  }
  if (job != nullptr) {
    job->job().rows_read = *rows_read;
    job->Answer(AnswerBytes(rows, EvaluatedTag(*rows_read)));
    RETURN_IF_ERROR(writer->Write(rows.ToBatch()));
    RETURN_IF_ERROR(writer->Commit(stop));
  }
  if (labelled) {
    const auto may_inspect = [&] { return MayInspect(version, context); };
    if (plan.select() == trained.select() && may_inspect()) {
      sink.Notice(
          "the model was trained on this select: DESCRIBE MODEL shows its metrics on the rows that "
          "were held out");
    }
    TellDrift(drift, may_inspect, sink);
  }
  return rows.SendTo(sink);
}

}  // namespace

Result<Schema> EvaluateColumns(const plan::EvaluatePlan& plan, Context& context) {
  ASSIGN_OR_RETURN(const auto model, FindUsedModel(plan, context));
  ASSIGN_OR_RETURN(const plan::TrainPlan trained, planner::ReadStoredPlan(model->plan));
  return planner::EvaluateResult(plan, trained.model());
}

Status ExecuteEvaluate(const plan::EvaluatePlan& plan, Context& context, ResultSink& sink) {
  std::unique_ptr<JobRecord> job;
  if (plan.has_table()) {  // the job may continue without its client
    const auto columns = EvaluateColumns(plan, context);
    // An error here becomes the job's error.
    ASSIGN_OR_RETURN(
        job, BeginJob(context, "evaluate", plan.model_name(), columns.ok() ? *columns : Schema()));
    context.source.HearStop(job->stop_token());
    context.catalog.HearStop(job->stop_token());
  }
  int64_t rows = 0;
  const Status ended = Guarded("evaluating", [&] {
    return WithBadRows(RunEvaluate(plan, context, job.get(), sink, &rows), plan.select(),
                       context.source);
  });
  RETURN_IF_ERROR(job == nullptr ? ended : job->Finish(ended));
  sink.Done(EvaluatedTag(rows));
  return OkStatus();
}

}  // namespace sluice::executor
