#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/value.h"
#include "planner/explain.h"
#include "planner/explain_internal.h"
#include "planner/grouped_number.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

// Names longer than this do not push the other columns aside.
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

// Attributes that say nothing about this model: they hold for every one of its kind.
bool IsWorthTelling(const models::Attribute& attribute, const models::ModelSpec& model) {
  const std::string& name = attribute.name();
  return name != "model.loss_reduction" && name != "train.nthread" && name != "verbosity" &&
         name != "importance_type" && (name != "loss.delta" || model.loss() == "Huber");
}

void AddModel(const plan::TrainPlan& plan, Lines* lines) {
  const models::ModelSpec& model = plan.model();
  const bool trees = IsTrees(model);
  lines->Line("model", trees ? model.type()
                             : fmt::format("{}, {} parameters", model.type(),
                                           GroupDigits(plan.parameter_count())));
  std::vector<std::string> attributes;
  for (const models::Attribute& attribute : model.attributes()) {
    if (IsWorthTelling(attribute, model)) {
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

std::string ScheduleOf(const plan::TrainPlan& plan) {
  if (plan.optimum()) {
    return "to the least loss over all training rows";
  }
  const bool open = plan.early_stopping().plateau() > 0 || plan.folds() > 0;
  std::string text = fmt::format("{}{} epoch{} of batches of {}{}", open ? "at most " : "",
                                 plan.epochs(), plan.epochs() == 1 ? "" : "s", plan.batch_size(),
                                 plan.shuffle() ? ", shuffled" : "");
  if (plan.folds() > 0) {
    text += "; then on all rows for as many as were best over the folds";
  }
  if (plan.max_steps() > 0) {
    text += fmt::format(", at most {} steps", GroupDigits(plan.max_steps()));
  }
  return text;
}

std::string ExplainTrain(const plan::TrainPlan& plan) {
  Lines lines;
  const models::FeaturePlan& features = plan.model().features();
  lines.Title(fmt::format("Train {} into {}", plan.model().type(),
                          ModelNameOf(plan.into_schema(), plan.into_name(), 0)));
  if (!plan.chosen_because().empty()) {
    lines.Line("choice", plan.chosen_because());
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
  lines.Line("validation",
             plan.folds() == 0
                 ? DescribeSplit(plan.split())
                 : fmt::format("{} folds (seed {}), each judged by a network of the others",
                               plan.folds(), plan.split().seed()));
  lines.Line("label", DescribeLabel(features.label()));
  if (!features.weight_column().empty()) {
    lines.Line("weight", features.weight_column());
  }
  if (!features.group_column().empty()) {
    lines.Line("group", features.group_column());
  }
  AddFeatures(features, &lines);
  AddModel(plan, &lines);
  if (!IsTrees(plan.model())) {
    lines.Line("schedule", ScheduleOf(plan));
  }
  if (plan.early_stopping().patience() > 0) {
    lines.Line(
        "stops",
        fmt::format("after {} {} without a better {}", plan.early_stopping().patience(),
                    IsTrees(plan.model()) ? "rounds" : "epochs", plan.early_stopping().metric()));
  }
  if (const uint32_t plateau = plan.early_stopping().plateau(); plateau > 0) {
    lines.Line("slows",
               fmt::format("learning rate x 0.3 after {} epoch{} without a better {}", plateau,
                           plateau == 1 ? "" : "s", plan.early_stopping().metric()));
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
  lines.Line("seed", fmt::format("{}", plan.seed()));
  for (const std::string& note : plan.notes()) {
    lines.Line("note", note);
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
  for (const catalog::ColumnDescription& column : plan.pass_through()) {
    lines.Inner(
        fmt::format("{} ({})", column.name(), DataTypeName(static_cast<DataType>(column.type()))));
  }
  lines.Inner(fmt::format("{} ({}), predicted", plan.column(),
                          DataTypeName(static_cast<DataType>(plan.prediction_type()))));
  for (const std::string& output : plan.extra_outputs()) {
    lines.Inner(fmt::format("{}, predicted", output));
  }
  return lines.Take();
}

std::string ExplainEvaluate(const plan::EvaluatePlan& plan) {
  Lines lines;
  lines.Title(fmt::format(
      "Evaluate {}", ModelNameOf(plan.model_schema(), plan.model_name(), plan.model_version())));
  lines.Line("rows", GroupDigits(plan.estimated_rows()) + " (estimated)");
  lines.Line("label", plan.label());
  lines.Line("metrics", plan.metrics_size() == 0
                            ? "all of the model's task"
                            : fmt::format("{}", fmt::join(plan.metrics(), ", ")));
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
