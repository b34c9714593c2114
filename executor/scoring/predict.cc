#include "executor/scoring/predict.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/column_description.h"
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
#include "executor/scoring/prediction_columns.h"
#include "executor/scoring/result_table.h"
#include "executor/scoring/scorer.h"
#include "executor/scoring/scorer_cache.h"
#include "executor/scoring/used_model.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"

namespace sluice::executor {

Schema OutputColumns(const plan::PredictPlan& plan) {
  Schema output = planner::PredictResult(plan);
  const size_t begin = planner::ColumnsBeforePrediction(plan);
  const size_t end = begin + planner::PredictedColumns(plan).size();
  for (size_t i = 0; i < output.columns.size() && !plan.has_table(); ++i) {
    if (i < begin || i >= end) {
      output.columns[i].type = catalog::ShownType(output.columns[i]);
    }
  }
  return output;
}

namespace {

// The name in the select of a column that is passed through.
const std::string& SelectedName(const plan::PredictPlan& plan, size_t column) {
  return column == planner::ColumnsBeforePrediction(plan)
             ? plan.actual()
             : plan.pass_through(static_cast<int>(column)).name();
}

// The columns that the client wants in binary form, by their names in the select.
std::vector<std::string> BinaryColumns(const plan::PredictPlan& plan, const Schema& output,
                                       ResultSink& sink) {
  const size_t before = planner::ColumnsBeforePrediction(plan);
  const size_t predicted = planner::PredictedColumns(plan).size();
  const std::vector<bool> wanted = sink.InBinary(output);
  std::vector<std::string> names;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] && (i < before || i >= before + predicted)) {
      names.push_back(SelectedName(plan, i < before ? i : i - predicted));
    }
  }
  return names;
}

// The columns that are passed through.
Result<catalog::CopiedColumns> FindCopied(const DatasetScan& scan, const plan::PredictPlan& plan,
                                          const catalog::DatasetOptions& options) {
  catalog::CopiedColumns copied;
  copied.purpose = *options.copies;
  copied.binary = options.binary_copies;
  for (const catalog::ColumnDescription& description : plan.pass_through()) {
    const std::string& name = SelectedName(plan, copied.columns.size());
    ASSIGN_OR_RETURN(const size_t column, catalog::FindColumn(scan.schema(), name));
    copied.columns.push_back(column);
    if (scan.schema().columns[column].type != static_cast<DataType>(description.type())) {
      return Status(Code::kAborted, fmt::format("column '{}' changed while the statement began",
                                                description.name()))
          .SqlState("40001")
          .Hint("run the statement again");
    }
  }
  return copied;
}

// The client, as the writer of rows that go into no table.
class SinkWriter final : public catalog::RowWriter {
 public:
  explicit SinkWriter(ResultSink& sink) : sink_(sink) {}
  using RowWriter::Write;
  Status Write(const RowBatch& batch) override { return sink_.Rows(batch); }

 private:
  ResultSink& sink_;
};

std::string TagOf(int64_t rows) {
  return fmt::format("PREDICT {}", rows);
}

// `job`: null if the rows only go to the client. `rows`: number of predictions that have arrived.
Status RunPredict(const plan::PredictPlan& plan, Context& context, JobRecord* job, ResultSink& sink,
                  int64_t* rows) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(const auto model, FindUsedModel(plan, context));
  const catalog::ModelVersion& version = *model;
  ASSIGN_OR_RETURN(const plan::TrainPlan trained, planner::ReadStoredPlan(version.plan));
  ASSIGN_OR_RETURN(const auto scorer, LoadScorer(context, version));
  ASSIGN_OR_RETURN(
      const PredictionColumns predictions,
      PredictionColumns::Make(plan, trained.model().features().label(), scorer->outputs(),
                              plan.has_threshold() ? std::optional(plan.threshold())
                                                   : DecisionThreshold(trained, version)));
  const Schema output = OutputColumns(plan);
  // Open it before there is a writer: the session's own connection does one thing at a time.
  const catalog::DatasetOptions options = {
      .rows_per_shard = plan.rows_per_shard(),
      .copies = plan.has_table() ? catalog::CopiedColumns::Purpose::kWrite
                                 : catalog::CopiedColumns::Purpose::kShow,
      .binary_copies =
          plan.has_table() ? std::vector<std::string>() : BinaryColumns(plan, output, sink),
      .readers = MostPredictWorkers()};
  ASSIGN_OR_RETURN(const auto scan, DatasetScan::Open(context.source, plan.select(), options));
  if (context.on_snapshot) {
    context.on_snapshot(scan->snapshot());
  }
  ASSIGN_OR_RETURN(const catalog::CopiedColumns copied, FindCopied(*scan, plan, options));
  Drift drift(trained.model().features(), scorer->transform().ColumnNames(/*with_label=*/false));
  const auto may_inspect = [&] { return MayInspect(version, context); };
  const PredictedRows made = {copied, predictions, planner::ColumnsBeforePrediction(plan), output,
                              drift};
  if (job == nullptr) {
    RETURN_IF_ERROR(sink.Header(output));
    SinkWriter writer(sink);
    ASSIGN_OR_RETURN(*rows, PredictRows(
                                *scan, *scorer, made, context.source, context.stop,
                                [](int64_t /*rows*/) {}, writer));
    TellDrift(drift, may_inspect, sink);
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const auto writer,
                   OpenResultTable(plan.table(), output, "predict", job->id(), context, sink));
  ASSIGN_OR_RETURN(job->job().rows_read,
                   PredictRows(
                       *scan, *scorer, made, context.source, job->stop_token(),
                       [job](int64_t counted) { job->Rows(counted, 0); }, *writer));
  RETURN_IF_ERROR(writer->Commit(job->stop_token()));
  TellDrift(drift, may_inspect, sink);
  *rows = writer->rows_arrived().value_or(job->job().rows_read);

  ResultRows answer(planner::PredictTableResult());
  answer.Add({ResultTableName(plan.table()), plan.model_name(), version.version, *rows,
              SecondsBetween(started, SteadyClock().Now())});
  job->Answer(AnswerBytes(answer, TagOf(*rows)));
  return answer.SendTo(sink);
}

}  // namespace

Status ExecutePredict(const plan::PredictPlan& plan, Context& context, ResultSink& sink) {
  for (const std::string& attribute : plan.without_effect()) {
    sink.Notice(attribute);
  }
  for (const std::string& note : plan.told()) {
    sink.Notice(note);
  }
  std::unique_ptr<JobRecord> job;
  if (plan.has_table()) {
    ASSIGN_OR_RETURN(
        job, BeginJob(context, "predict", plan.model_name(), planner::PredictTableResult()));
    context.source.HearStop(job->stop_token());
    context.catalog.HearStop(job->stop_token());
  }
  int64_t rows = 0;
  const Status ended = Guarded("predicting", [&] {
    return WithBadRows(RunPredict(plan, context, job.get(), sink, &rows), plan.select(),
                       context.source);
  });
  RETURN_IF_ERROR(job == nullptr ? ended : job->Finish(ended));
  sink.Done(TagOf(rows));
  return OkStatus();
}

}  // namespace sluice::executor
