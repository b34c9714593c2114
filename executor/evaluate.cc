#include "executor/evaluate.h"

#include <fmt/core.h>

#include "base/guarded.h"
#include "catalog/data_source.h"
#include "executor/dataset_scan.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/result_rows.h"
#include "executor/result_table.h"
#include "executor/scorer.h"
#include "models/features/label_scale.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

// Positions of the model's columns in the scan; the label may go by another name here than in
// training.
Result<std::vector<size_t>> FindColumns(const DatasetScan& scan, const Scorer& scorer,
                                        const std::string& trained_label,
                                        const std::string& label) {
  std::vector<size_t> columns;
  for (const std::string& name : scorer.transform().ColumnNames(/*with_label=*/true)) {
    ASSIGN_OR_RETURN(const size_t column, scan.Column(name == trained_label ? label : name));
    columns.push_back(column);
  }
  return columns;
}

Result<models::Metrics> ScoreRows(const plan::EvaluatePlan& plan, Scorer& scorer,
                                  const models::ModelSpec& spec, DatasetScan& scan,
                                  JobRecord& job) {
  const std::string& trained_label = spec.features().label().column();
  const std::string& label = plan.label().empty() ? trained_label : plan.label();
  ASSIGN_OR_RETURN(const std::vector<size_t> columns,
                   FindColumns(scan, scorer, trained_label, label));
  models::Metrics metrics(TaskOf(spec), scorer.outputs());
  models::FeatureBatch batch;
  std::vector<float> scores;
  int64_t rows = 0;
  const auto visit = [&](RowBatch& input, int64_t, int64_t) -> Status {
    rows += static_cast<int64_t>(input.rows);
    job.Rows(rows, 0);
    RETURN_IF_ERROR(scorer.transform().Apply(input, /*with_label=*/true, &batch));
    RETURN_IF_ERROR(scorer.Score(batch, &scores));
    models::RestoreLabelScale(spec.features().label(), &batch.labels);
    metrics.Add(scores, batch.labels, batch.weights, batch.groups);
    return OkStatus();
  };
  scan.set_rows_per_batch(scorer.rows_per_batch());
  RETURN_IF_ERROR(scan.ForEach(columns, {}, visit, job.stop_token()));
  if (rows == 0) {
    return InvalidArgument("no rows to evaluate: the select is empty").SqlState("02000");
  }
  job.job().rows_read = rows;
  return metrics;
}

ResultRows MetricRow(const models::Metrics& metrics, models::Task task,
                     const plan::EvaluatePlan& plan) {
  std::vector<Value> row;
  for (const planner::ToldMetric& told : planner::ToldMetrics(plan, task)) {
    row.emplace_back(metrics.Value(told.metric));
  }
  ResultRows rows(planner::EvaluateResult(plan, task));
  rows.Add(std::move(row));
  return rows;
}

Status RunEvaluate(const plan::EvaluatePlan& plan, Context& context, JobRecord& job,
                   ResultSink& sink) {
  ASSIGN_OR_RETURN(
      const catalog::ModelVersion version,
      context.source.models().Find(plan.model_schema(), plan.model_name(), plan.model_version()));
  ASSIGN_OR_RETURN(const plan::TrainPlan trained, planner::ReadStoredPlan(version.plan));
  ASSIGN_OR_RETURN(const auto scorer,
                   Scorer::Load(context.source, version, context.memory_bytes()));
  std::unique_ptr<catalog::TableWriter> writer;
  if (plan.has_table()) {
    ASSIGN_OR_RETURN(writer, OpenResultTable(plan.table(),
                                             planner::EvaluateResult(plan, TaskOf(trained.model())),
                                             "evaluate", job.id(), context.source));
  }
  ASSIGN_OR_RETURN(const auto scan,
                   DatasetScan::Open(context.source, plan.select(), plan.rows_per_shard()));
  ASSIGN_OR_RETURN(const models::Metrics metrics,
                   ScoreRows(plan, *scorer, trained.model(), *scan, job));
  const ResultRows rows = MetricRow(metrics, TaskOf(trained.model()), plan);
  if (writer != nullptr) {
    RETURN_IF_ERROR(writer->Write(rows.ToBatch()));
    RETURN_IF_ERROR(writer->Commit(job.stop_token()));
  }
  return rows.SendTo(sink);
}

}  // namespace

Status ExecuteEvaluate(const plan::EvaluatePlan& plan, Context& context, ResultSink& sink) {
  ASSIGN_OR_RETURN(const auto job, StartJob(context, "evaluate", plan.model_name()));
  context.source.HearStop(job->stop_token());
  RETURN_IF_ERROR(
      job->Finish(Guarded("evaluating", [&] { return RunEvaluate(plan, context, *job, sink); })));
  sink.Done(fmt::format("EVALUATE {}", job->job().rows_read));
  return OkStatus();
}

}  // namespace sluice::executor
