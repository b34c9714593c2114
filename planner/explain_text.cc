#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/value.h"
#include "models/registry/registry.h"
#include "planner/explain.h"
#include "planner/explain_internal.h"
#include "planner/grouped_number.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::planner {
namespace {

// Longer names do not widen their column.
constexpr size_t kWidestName = 28;

// "key       value", one line each.
class Lines {
 public:
  void Title(const std::string& title) { text_ += title + "\n"; }
  void Line(std::string_view key, const std::string& value) {
    text_ += fmt::format("  {:<10} {}\n", key, value);
  }
  void Inner(const std::string& text) { text_ += fmt::format("    {}\n", text); }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void AddFeatures(const models::FeaturePlan& plan, Lines* lines) {
  std::vector<FeatureLine> features;
  size_t name_width = 0;
  size_t reads_width = 0;
  for (const models::Feature& feature : plan.features()) {
    features.push_back(DescribeFeature(feature, plan));
    name_width = std::max(name_width, std::min(features.back().name.size(), kWidestName));
    reads_width = std::max(reads_width, std::min(features.back().reads.size(), kWidestName));
  }
  lines->Line("features", GroupDigits(plan.features_size()));
  for (const FeatureLine& feature : features) {
    lines->Inner(fmt::format("{:<{}}  {:<{}}  {}", feature.name, name_width, feature.reads,
                             reads_width, feature.how));
  }
}

void AddGraph(const models::NetworkGraph& graph, Lines* lines) {
  const GraphLines all = DescribeGraph(graph);
  lines->Line("graph", fmt::format("{} operators", GroupDigits(all.operators)));
  for (const std::string& layer : all.layers) {
    lines->Inner(layer);
  }
  lines->Line("parameters", fmt::format("{}, {} numbers", GroupDigits(graph.parameters_size()),
                                        GroupDigits(all.numbers)));
  for (const std::string& parameter : all.parameters) {
    lines->Inner(parameter);
  }
  lines->Line("tables",
              fmt::format("{}, {} rows", GroupDigits(graph.tables_size()), GroupDigits(all.rows)));
  for (const std::string& table : all.tables) {
    lines->Inner(table);
  }
}

void AddModel(const plan::TrainPlan& plan, Lines* lines) {
  const models::ModelSpec& model = plan.model();
  const bool trees = models::IsTrees(model);
  lines->Line("model", trees ? model.type()
                             : fmt::format("{}, {} parameters", model.type(),
                                           GroupDigits(plan.parameter_count())));
  std::vector<std::string> attributes;
  for (const models::Attribute& attribute : model.attributes()) {
    if (IsWorthShowing(attribute, model)) {
      attributes.push_back(fmt::format("{}={}", attribute.name(), DescribeAttribute(attribute)));
    }
  }
  std::sort(attributes.begin(), attributes.end());
  for (const std::string& attribute : attributes) {
    lines->Inner(attribute);
  }
  if (trees) {
    return;
  }
  if (model.has_graph()) {
    AddGraph(model.graph(), lines);
  }
  lines->Line("loss", model.loss());
  if (plan.optimum()) {
    return;
  }
  const bool two =
      model.deep_optimizer().SerializeAsString() != model.wide_optimizer().SerializeAsString();
  lines->Line("optimizer", (two ? "deep: " : "") + DescribeOptimizer(model.deep_optimizer()));
  if (two) {
    lines->Line("", "wide: " + DescribeOptimizer(model.wide_optimizer()));
  }
}

// Which models are tried, and how; the rest of the plan is for the type that suits the table's
// shape.
void AddContest(const plan::TrainPlan& plan, Lines* lines) {
  const plan::Contest& contest = plan.contest();
  lines->Line(
      "tries",
      fmt::format("for at most {:.6g} s, judged by {}{}{}", contest.seconds(), contest.metric(),
                  contest.sample_rows() > 0
                      ? fmt::format(", on about {} rows", GroupDigits(contest.sample_rows()))
                      : "",
                  contest.halves() ? ", by successive halving" : ""));
  for (const plan::Candidate& candidate : contest.candidates()) {
    const bool told = candidate.settings().empty() || candidate.settings() == candidate.name();
    lines->Inner(candidate.name() + (told ? "" : fmt::format(" ({})", candidate.settings())));
  }
  if (contest.blends()) {
    lines->Inner("a blend of them, if it is better by more than chance");
  }
  if (contest.refits()) {
    lines->Inner("the best is trained once more, on all rows, if time is left");
  }
  if (plan.strategy().kind() != plan::Strategy::LOCAL) {
    lines->Inner("one after the other, each on all of the job's processes");
  }
  lines->Line("shown", fmt::format("below, the first: {}", plan.model().type()));
}

std::string ExplainTrain(const plan::TrainPlan& plan) {
  Lines lines;
  const models::FeaturePlan& features = plan.model().features();
  const plan::Contest& contest = plan.contest();
  const std::string what = plan.has_contest()
                               ? fmt::format("the best of {} models", contest.candidates_size())
                               : plan.model().type();
  lines.Title(
      fmt::format("Train {} into {}", what, ModelNameOf(plan.into_schema(), plan.into_name(), 0)));
  if (!plan.chosen_because().empty()) {
    lines.Line("choice", plan.chosen_because());
  }
  if (plan.has_contest()) {
    AddContest(plan, &lines);
  }
  if (plan.has_base()) {
    lines.Line("continues", ModelNameOf(plan.base_schema(), plan.base_name(), plan.base_version()));
  }
  lines.Line("rows", fmt::format("{}{}", GroupDigits(plan.estimated_rows()),
                                 plan.exact_rows() ? "" : " (estimated)"));
  lines.Line("read", fmt::format("{}, {} shard{} of {} rows", plan.cut_method(),
                                 GroupDigits(plan.estimated_shards()),
                                 plan.estimated_shards() == 1 ? "" : "s",
                                 GroupDigits(plan.rows_per_shard())));
  lines.Line("validation", DescribeValidation(plan));
  lines.Line("label", DescribeLabel(features.label()));
  if (!features.exposure_column().empty()) {
    lines.Line("exposure", features.exposure_column());
  }
  if (!features.weight_column().empty()) {
    lines.Line("weight", features.weight_column());
  }
  if (!features.group_column().empty()) {
    lines.Line("group", features.group_column());
  }
  AddFeatures(features, &lines);
  if (plan.left_out_size() > 0) {
    lines.Line("left out", GroupDigits(plan.left_out_size()));
    for (const plan::LeftOut& column : plan.left_out()) {
      lines.Inner(fmt::format("{}: {}", column.column(), column.reason()));
    }
  }
  AddModel(plan, &lines);
  for (const auto& [name, text] : DescribeSchedule(plan)) {
    lines.Line(name, text);
  }
  if (!plan.threshold().empty()) {
    lines.Line("decides", DescribeThreshold(plan));
  }
  if (!plan.model().calibration().method().empty()) {
    lines.Line("calibrates", DescribeCalibration(plan.model().calibration()));
  }
  if (plan.metrics_size() > 0) {
    lines.Line("metrics", fmt::format("{}", fmt::join(plan.metrics(), ", ")));
  }
  lines.Line("runs",
             fmt::format("{}: {}", DescribeStrategy(plan.strategy()), plan.strategy().reason()));
  if (const std::string survival = DescribeSurvival(plan); !survival.empty()) {
    lines.Line("outlives", survival);
    lines.Line("repeats", DescribeRepetition(plan.strategy()));
  }
  if (plan.has_checkpoints()) {
    lines.Line("saved", "checkpoints in " + DescribeCheckpoints(plan.checkpoints()));
  }
  const std::string memory = FormatBytes(plan.estimated_memory_bytes());
  lines.Line("memory", plan.estimated_server_memory_bytes() == 0
                           ? fmt::format("about {} a process", memory)
                           : fmt::format("about {} a worker, {} a parameter server", memory,
                                         FormatBytes(plan.estimated_server_memory_bytes())));
  if (plan.estimated_spilled_bytes() > 0) {
    lines.Line("kept", fmt::format("about {} of rows in local files, for later epochs{}",
                                   FormatBytes(plan.estimated_spilled_bytes()),
                                   plan.disk_cache() == plan::TrainPlan::CACHE
                                       ? ""
                                       : ", where that is faster than the database"));
  }
  lines.Line("seed", fmt::format("{}", plan.seed()));
  for (const std::string& warning : plan.warnings()) {
    lines.Line("warning", warning);
  }
  for (const auto* notes : {&plan.told(), &plan.notes()}) {
    for (const std::string& note : *notes) {
      lines.Line("note", note);
    }
  }
  for (const std::string& attribute : plan.without_effect()) {
    lines.Line("note", attribute);
  }
  return lines.Take();
}

std::string ExplainPredict(const plan::PredictPlan& plan) {
  Lines lines;
  lines.Title(fmt::format("Predict with {}", ModelNameOf(plan.model_schema(), plan.model_name(),
                                                         plan.model_version())));
  lines.Line("rows", GroupDigits(plan.estimated_rows()) + " (estimated)");
  lines.Line("result", plan.has_table() ? DescribeResult(plan.table()) : "rows to the client");
  const Schema result = PredictResult(plan);
  const size_t begin = ColumnsBeforePrediction(plan);
  const size_t end = begin + PredictedColumns(plan).size();
  const size_t extras = end - static_cast<size_t>(plan.extra_outputs_size());
  for (size_t i = 0; i < result.columns.size(); ++i) {
    const ColumnInfo& column = result.columns[i];
    lines.Inner(i >= extras && i < end
                    ? fmt::format("{}, predicted", column.name)
                    : fmt::format("{} ({}){}", column.name, DataTypeName(column.type),
                                  i >= begin && i < end ? ", predicted" : ""));
  }
  return lines.Take();
}

std::string ExplainEvaluate(const plan::EvaluatePlan& plan) {
  Lines lines;
  lines.Title(fmt::format(
      "Evaluate {}", ModelNameOf(plan.model_schema(), plan.model_name(), plan.model_version())));
  lines.Line("rows", GroupDigits(plan.estimated_rows()) + " (estimated)");
  if (plan.report() == plan::EvaluatePlan::DRIFT) {
    lines.Line("report", "how each column is unlike the training's");
  } else {
    lines.Line("label", plan.label());
    lines.Line("metrics", plan.metrics_size() == 0
                              ? "all of the model's task"
                              : fmt::format("{}", fmt::join(plan.metrics(), ", ")));
  }
  lines.Line("result", plan.has_table() ? DescribeResult(plan.table()) : "rows to the client");
  return lines.Take();
}

std::string ExplainReport(const plan::ModelReportPlan& plan) {
  Lines lines;
  lines.Title(fmt::format(
      "Explain {}", ModelNameOf(plan.model_schema(), plan.model_name(), plan.model_version())));
  lines.Line("explainer", plan.explainer());
  lines.Line("result", plan.has_table() ? DescribeResult(plan.table()) : "rows to the client");
  return lines.Take();
}

}  // namespace

std::string ExplainText(const plan::Plan& plan) {
  switch (plan.kind_case()) {
    case plan::Plan::kTrain:
      return ExplainTrain(plan.train());
    case plan::Plan::kPredict:
      return ExplainPredict(plan.predict());
    case plan::Plan::kEvaluate:
      return ExplainEvaluate(plan.evaluate());
    case plan::Plan::kReport:
      return ExplainReport(plan.report());
    default:
      return "";
  }
}

}  // namespace sluice::planner
