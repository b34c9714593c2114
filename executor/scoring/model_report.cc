#include "executor/scoring/model_report.h"

#include <algorithm>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/result_rows.h"
#include "executor/scoring/result_table.h"
#include "executor/scoring/scorer.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {

Status ExecuteModelReport(const plan::ModelReportPlan& plan, Context& context, ResultSink& sink) {
  for (const std::string& attribute : plan.without_effect()) {
    sink.Notice(attribute);
  }
  ASSIGN_OR_RETURN(
      const catalog::ModelVersion version,
      context.catalog.models().Find(plan.model_schema(), plan.model_name(), plan.model_version()));
  ASSIGN_OR_RETURN(const auto scorer,
                   Scorer::Load(context.catalog.models(), version, context.memory_bytes()));
  ASSIGN_OR_RETURN(auto importance, scorer->FeatureImportance());
  std::stable_sort(importance.begin(), importance.end(),
                   [](const auto& a, const auto& b) { return a.gain > b.gain; });
  ResultRows rows(planner::ReportResult());
  for (const auto& feature : importance) {
    rows.Add({feature.feature, feature.splits, feature.gain});
  }
  if (plan.has_table()) {
    ASSIGN_OR_RETURN(const auto writer, OpenResultTable(plan.table(), rows.schema(), "explain",
                                                        /*job=*/0, context, sink));
    RETURN_IF_ERROR(writer->Write(rows.ToBatch()));
    RETURN_IF_ERROR(writer->Commit(context.stop));
  }
  RETURN_IF_ERROR(rows.SendTo(sink));
  sink.Done("EXPLAIN");
  return OkStatus();
}

}  // namespace sluice::executor
