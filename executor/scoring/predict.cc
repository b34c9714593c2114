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
#include "executor/scoring/dataset_scan.h"
#include "executor/scoring/decision_threshold.h"
#include "executor/scoring/prediction_columns.h"
#include "executor/scoring/result_table.h"
#include "executor/scoring/scorer.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"

namespace sluice::executor {

Schema OutputColumns(const plan::PredictPlan& plan) {
  Schema output = planner::PredictResult(plan);
  for (int i = 0; i < plan.pass_through_size() && !plan.has_table(); ++i) {
    ColumnInfo& column = output.columns[static_cast<size_t>(i)];
    column.type = catalog::ShownType(column);
  }
  return output;
}

namespace {

// The columns that are passed through.
Result<catalog::CopiedColumns> FindCopied(const DatasetScan& scan, const plan::PredictPlan& plan) {
  catalog::CopiedColumns copied;
  copied.purpose = plan.has_table() ? catalog::CopiedColumns::Purpose::kWrite
                                    : catalog::CopiedColumns::Purpose::kShow;
  for (const catalog::ColumnDescription& description : plan.pass_through()) {
    const bool label = !plan.actual().empty() && description.name() == "actual";
    const std::string& name = label ? plan.actual() : description.name();
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

// Scores batch after batch and passes the finished rows to `emit`.
Result<int64_t> ScoreRows(DatasetScan& scan, Scorer& scorer, const catalog::CopiedColumns& copied,
                          const Schema& schema, PredictionColumns& predictions, JobRecord& job,
                          const std::function<Status(const RowBatch&)>& emit) {
  RowBatch output;
  output.Reset(schema, DatasetScan::kRowsPerBatch);
  std::vector<float> scores;
  const auto visit = [&](elastic::FeatureReader& read) -> Status {
    job.Rows(scan.rows_read(), 0);
    for (size_t c = 0; c < copied.columns.size(); ++c) {
      // Swap buffers, so that the next batch can reuse this one's memory.
      std::swap(read.copied(c), output.columns[c]);
    }
    RETURN_IF_ERROR(scorer.Score(read.features(), &scores));
    predictions.Fill(scores, read.rows(), &output, copied.columns.size());
    output.rows = read.rows();
    return emit(output);
  };
  elastic::FeatureReader::Options options;
  options.with_label = false;
  options.copied = &copied;
  scan.set_rows_per_batch(scorer.rows_per_batch());
  const Status read = scan.ForEach(scorer.transform(), options, visit, job.stop_token());
  job.Rows(scan.rows_read(), 0);  // even if the batch is unusable
  RETURN_IF_ERROR(read);
  return scan.rows_read();
}

std::string TagOf(int64_t rows) {
  return fmt::format("PREDICT {}", rows);
}

// `rows`: number of predictions that have arrived.
Status RunPredict(const plan::PredictPlan& plan, Context& context, JobRecord& job, ResultSink& sink,
                  int64_t* rows) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(
      const catalog::ModelVersion version,
      context.catalog.models().Find(plan.model_schema(), plan.model_name(), plan.model_version()));
  ASSIGN_OR_RETURN(const plan::TrainPlan trained, planner::ReadStoredPlan(version.plan));
  ASSIGN_OR_RETURN(const auto scorer,
                   Scorer::Load(context.catalog.models(), version, context.memory_bytes()));
  ASSIGN_OR_RETURN(
      PredictionColumns predictions,
      PredictionColumns::Make(plan, trained.model().features().label(), scorer->outputs(),
                              plan.has_threshold() ? std::optional(plan.threshold())
                                                   : DecisionThreshold(trained, version)));
  const Schema output = OutputColumns(plan);
  // Open it before there is a writer: the session's own connection does one thing at a time.
  ASSIGN_OR_RETURN(const auto scan,
                   DatasetScan::Open(context.source, plan.select(), plan.rows_per_shard(),
                                     plan.has_table() ? catalog::CopiedColumns::Purpose::kWrite
                                                      : catalog::CopiedColumns::Purpose::kShow));
  std::unique_ptr<catalog::TableWriter> writer;
  if (plan.has_table()) {
    ASSIGN_OR_RETURN(writer, OpenResultTable(plan.table(), output, "predict", job.id(), context));
  }
  ASSIGN_OR_RETURN(const catalog::CopiedColumns copied, FindCopied(*scan, plan));

  if (writer == nullptr) {
    RETURN_IF_ERROR(sink.Header(output));
    ASSIGN_OR_RETURN(job.job().rows_read,
                     ScoreRows(*scan, *scorer, copied, output, predictions, job,
                               [&](const RowBatch& batch) { return sink.Rows(batch); }));
    *rows = job.job().rows_read;
    return OkStatus();
  }
  ASSIGN_OR_RETURN(job.job().rows_read,
                   ScoreRows(*scan, *scorer, copied, output, predictions, job,
                             [&](const RowBatch& batch) { return writer->Write(batch); }));
  RETURN_IF_ERROR(writer->Commit(job.stop_token()));
  *rows = writer->rows_arrived().value_or(job.job().rows_read);

  ResultRows answer(planner::PredictTableResult());
  answer.Add({ResultTableName(plan.table()), plan.model_name(), version.version, *rows,
              SecondsBetween(started, SteadyClock().Now())});
  job.Answer(AnswerBytes(answer, TagOf(*rows)));
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
  ASSIGN_OR_RETURN(const auto job,
                   BeginJob(context, "predict", plan.model_name(),
                            plan.has_table() ? planner::PredictTableResult() : Schema()));
  context.source.HearStop(job->stop_token());
  context.catalog.HearStop(job->stop_token());
  int64_t rows = 0;
  RETURN_IF_ERROR(job->Finish(
      Guarded("predicting", [&] { return RunPredict(plan, context, *job, sink, &rows); })));
  sink.Done(TagOf(rows));
  return OkStatus();
}

}  // namespace sluice::executor
