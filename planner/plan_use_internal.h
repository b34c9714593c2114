#pragma once

#include <string>

#include "base/status.h"
#include "catalog/data_source.h"
#include "catalog/model_store.h"
#include "parser/ast.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"

// Plans of statements that use a model or are about the catalog; only .cc files of this folder
// include this.
namespace sluice::planner {

Result<plan::Plan> PlanPredict(const parser::PredictStatement& statement,
                               catalog::DataSource& source, catalog::ModelStore& models,
                               const Options& options);
Result<plan::Plan> PlanEvaluate(const parser::EvaluateStatement& statement,
                                catalog::DataSource& source, catalog::ModelStore& models,
                                const Options& options);
Result<plan::Plan> PlanReport(const parser::ModelReportStatement& statement,
                              catalog::DataSource& source, catalog::ModelStore& models);

// Statements about the catalog itself (plan_catalog.cc): names are looked up when they run.
plan::Plan PlanShow(const parser::ShowStatement& statement);
plan::Plan PlanDescribe(const parser::DescribeStatement& statement);
// The source is read now, so that its errors are reported at once.
Result<plan::Plan> PlanCreateModelType(const parser::CreateModelTypeStatement& statement,
                                       const Options& options);
plan::Plan PlanDropModel(const parser::DropModelStatement& statement);
Result<plan::Plan> PlanAlterModel(const parser::AlterModelStatement& statement);
Result<plan::Plan> PlanModelGrant(const parser::ModelGrantStatement& statement,
                                  const catalog::DataSource& source);
// The end of a file's name says its format.
Result<plan::Plan> PlanExportModel(const parser::ExportModelStatement& statement);
Result<plan::Plan> PlanImportModel(const parser::ImportModelStatement& statement);
plan::Plan PlanJob(const parser::JobStatement& statement);

// Rows of one query when applying a model, where no batches have to be aligned.
inline constexpr int64_t kRowsPerUseShard = 20'000;

template <typename UsePlan>
Status EstimateRows(const std::string& select, catalog::DataSource& source, UsePlan* plan) {
  catalog::DatasetOptions options;
  options.rows_per_shard = kRowsPerUseShard;
  ASSIGN_OR_RETURN(const catalog::CutEstimate cut, source.EstimateCut(select, options));
  plan->set_rows_per_shard(options.rows_per_shard);
  plan->set_estimated_rows(cut.estimated_rows);
  return OkStatus();
}

}  // namespace sluice::planner
