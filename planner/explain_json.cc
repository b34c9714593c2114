#include <string>
#include <string_view>
#include <utility>

#include "base/value.h"
#include "models/registry/registry.h"
#include "planner/explain.h"
#include "planner/explain_internal.h"
#include "planner/indented_json_internal.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::planner {
namespace {

void PutAttribute(const models::Attribute& attribute, IndentedJson* json) {
  const std::string& name = attribute.name();
  switch (attribute.value_case()) {
    case models::Attribute::kFlag:
      json->Put(name, attribute.flag());
      break;
    case models::Attribute::kInteger:
      json->Put(name, attribute.integer());
      break;
    case models::Attribute::kNumber:
      json->Put(name, attribute.number());
      break;
    case models::Attribute::kText:
      json->Put(name, attribute.text());
      break;
    case models::Attribute::kNumbers:
      json->OpenList(name);
      for (const double number : attribute.numbers().values()) {
        json->Item(number);
      }
      json->CloseList();
      break;
    case models::Attribute::kTexts:
      json->OpenList(name);
      for (const std::string& text : attribute.texts().values()) {
        json->Item(text);
      }
      json->CloseList();
      break;
    default:
      break;
  }
}

void PutFeatures(const models::FeaturePlan& plan, IndentedJson* json) {
  json->OpenList("features");
  for (const models::Feature& feature : plan.features()) {
    json->Open();
    json->Put("name", feature.name());
    json->OpenList("columns");
    for (const uint32_t input : feature.inputs()) {
      json->Item(plan.inputs(static_cast<int>(input)).name());
    }
    json->CloseList();
    json->Put("kind", models::Feature::Kind_Name(feature.kind()));
    json->Put("part", models::Feature::Part_Name(feature.part()));
    json->Put("how", DescribeFeature(feature, plan).how);
    if (feature.kind() == models::Feature::CATEGORY) {
      json->Put("representation", models::Feature::Representation_Name(feature.representation()));
      json->Put("buckets", feature.categorizer().buckets());
      json->Put("vocabulary", feature.categorizer().vocabulary_size());
      json->Put("dimension", feature.dimension());
    } else {
      json->Put("offset", feature.offset());
      json->Put("scale", feature.scale());
    }
    json->Close();
  }
  json->CloseList();
}

void PutOptimizer(std::string_view key, const models::OptimizerSpec& optimizer,
                  IndentedJson* json) {
  json->Open(key);
  json->Put("name", optimizer.name());
  for (const models::Attribute& argument : optimizer.arguments()) {
    PutAttribute(argument, json);
  }
  json->Close();
}

void PutTexts(std::string_view key, const google::protobuf::RepeatedPtrField<std::string>& texts,
              IndentedJson* json) {
  json->OpenList(key);
  for (const std::string& text : texts) {
    json->Item(text);
  }
  json->CloseList();
}

void PutNumbers(std::string_view key, const google::protobuf::RepeatedField<double>& numbers,
                IndentedJson* json) {
  json->OpenList(key);
  for (const double number : numbers) {
    json->Item(number);
  }
  json->CloseList();
}

void PutLabel(const models::LabelPlan& label, IndentedJson* json) {
  json->Open("label");
  json->Put("column", label.column());
  json->Put("kind", models::LabelPlan::Kind_Name(label.kind()));
  PutTexts("classes", label.classes(), json);
  json->Put("mean", label.mean());
  json->Put("scale", label.scale());
  if (label.curve() != models::LabelPlan::STRAIGHT) {
    json->Put("curve", models::LabelPlan::Curve_Name(label.curve()));
  }
  if (label.scales_size() > 0) {
    PutNumbers("means", label.means(), json);
    PutNumbers("scales", label.scales(), json);
  }
  json->Close();
}

void PutGraph(const models::NetworkGraph& graph, IndentedJson* json) {
  const GraphLines lines = DescribeGraph(graph);
  json->Open("graph");
  json->Put("operators", lines.operators);
  for (const auto& [key, list] :
       {std::pair{"layers", &lines.layers}, std::pair{"parameters", &lines.parameters},
        std::pair{"tables", &lines.tables}}) {
    json->OpenList(key);
    for (const std::string& line : *list) {
      json->Item(line);
    }
    json->CloseList();
  }
  json->Close();
}

void PutModel(const plan::TrainPlan& plan, IndentedJson* json) {
  const models::ModelSpec& model = plan.model();
  json->Open("model");
  json->Put("type", model.type());
  json->Put("parameters", plan.parameter_count());
  json->Open("attributes");
  for (const models::Attribute& attribute : model.attributes()) {
    PutAttribute(attribute, json);
  }
  json->Close();
  if (model.has_graph()) {
    PutGraph(model.graph(), json);
  }
  if (!models::IsTrees(model)) {
    json->Put("loss", model.loss());
    PutOptimizer("deep_optimizer", model.deep_optimizer(), json);
    PutOptimizer("wide_optimizer", model.wide_optimizer(), json);
  }
  json->Close();
}

void PutStrategy(const plan::TrainPlan& plan, IndentedJson* json) {
  const plan::Strategy& strategy = plan.strategy();
  json->Open("strategy");
  json->Put("kind", AddsUp(strategy) ? "PASSES" : plan::Strategy::Kind_Name(strategy.kind()));
  json->Put("mode", plan::Strategy::Mode_Name(strategy.mode()));
  json->Put("workers", strategy.workers());
  json->Put("min_workers", strategy.min_workers());
  json->Put("max_workers", strategy.max_workers());
  json->Put("parameter_servers", strategy.parameter_servers());
  if (strategy.max_parameter_servers() > 0) {
    json->Put("max_parameter_servers", strategy.max_parameter_servers());
  }
  json->Put("micro_batches", strategy.micro_batches());
  json->Put("outlives", DescribeSurvival(plan));
  json->Put("repeats", DescribeRepetition(strategy));
  json->Put("reason", strategy.reason());
  json->Close();
}

void PutContest(const plan::Contest& contest, IndentedJson* json) {
  json->Open("contest");
  json->Put("seconds", contest.seconds());
  json->Put("metric", contest.metric());
  json->Put("folds", contest.folds());
  json->Put("blends", contest.blends());
  json->Put("search", contest.search());
  json->Put("halves", contest.halves());
  json->OpenList("candidates");
  for (const plan::Candidate& candidate : contest.candidates()) {
    json->Open();
    json->Put("name", candidate.name());
    json->Put("kind", candidate.kind());
    json->Put("settings", candidate.settings());
    json->Close();
  }
  json->CloseList();
  json->Close();
}

void PutTrain(const plan::TrainPlan& plan, IndentedJson* json) {
  json->Put("statement", plan.statement());
  json->Put("model_name", ModelNameOf(plan.into_schema(), plan.into_name(), 0));
  json->Put("choice", plan.chosen_because());
  if (plan.has_contest()) {
    PutContest(plan.contest(), json);
  }
  json->Put("rows", plan.estimated_rows());
  json->Put("rows_exact", plan.exact_rows());
  json->Put("cut", plan.cut_method());
  json->Put("shards", plan.estimated_shards());
  json->Put("rows_per_shard", plan.rows_per_shard());
  json->Open("split");
  json->Put("kind", plan::Split::Kind_Name(plan.split().kind()));
  json->Put("fraction", plan.split().fraction());
  json->Put("column", DescribeSplitColumns(plan.split()));
  json->Put("select", plan.split().select());
  json->Close();
  PutLabel(plan.model().features().label(), json);
  if (!plan.model().features().exposure_column().empty()) {
    json->Put("exposure_column", plan.model().features().exposure_column());
  }
  json->Put("weight_column", plan.model().features().weight_column());
  json->Put("group_column", plan.model().features().group_column());
  PutFeatures(plan.model().features(), json);
  PutModel(plan, json);
  json->Put("epochs", plan.epochs());
  json->Put("batch_size", plan.batch_size());
  json->Put("optimum", plan.optimum());
  json->Put("folds", plan.folds());
  if (plan.weight_decays_size() > 0) {
    PutNumbers("weight_decays", plan.weight_decays(), json);
  }
  json->Put("early_stopping", plan.early_stopping().patience());
  json->Put("plateau", plan.early_stopping().plateau());
  PutTexts("metrics", plan.metrics(), json);
  PutStrategy(plan, json);
  if (plan.has_checkpoints()) {
    json->Open("checkpoints");
    json->Put("directory", plan.checkpoints().directory());
    json->Put("every_steps", plan.checkpoints().every_steps());
    json->Put("keep", plan.checkpoints().keep());
    json->Close();
  }
  json->Put("memory_bytes", plan.estimated_memory_bytes());
  if (plan.estimated_server_memory_bytes() > 0) {
    json->Put("server_memory_bytes", plan.estimated_server_memory_bytes());
  }
  if (plan.estimated_spilled_bytes() > 0) {
    json->Put("spilled_bytes", plan.estimated_spilled_bytes());
  }
  json->Put("seed", plan.seed());
  json->OpenList("left_out");
  for (const plan::LeftOut& column : plan.left_out()) {
    json->Open();
    json->Put("column", column.column());
    json->Put("reason", column.reason());
    json->Close();
  }
  json->CloseList();
  json->Put("threshold", plan.threshold());
  json->Put("calibrate", plan.model().calibration().method());
  json->Put("baseline", plan.baseline());
  PutTexts("warnings", plan.warnings(), json);
  PutTexts("told", plan.told(), json);
  PutTexts("notes", plan.notes(), json);
}

void PutTable(bool has_table, const plan::ResultTable& table, IndentedJson* json) {
  json->Put("table", has_table ? ResultName(table) : "");
  if (has_table) {
    json->Put("table_action", ResultActionName(table));
  }
}

void PutPredict(const plan::PredictPlan& plan, IndentedJson* json) {
  json->Put("statement", plan.statement());
  json->Put("model_name",
            ModelNameOf(plan.model_schema(), plan.model_name(), plan.model_version()));
  json->Put("rows", plan.estimated_rows());
  PutTable(plan.has_table(), plan.table(), json);
  json->Put("column", plan.column());
  json->Put("type", DataTypeName(static_cast<DataType>(plan.prediction_type())));
  json->OpenList("pass_through");
  for (const catalog::ColumnDescription& column : plan.pass_through()) {
    json->Item(column.name());
  }
  json->CloseList();
  json->OpenList("extra_outputs");
  for (const plan::PredictPlan::ExtraOutput& output : plan.extra_outputs()) {
    json->Item(output.column());
  }
  json->CloseList();
  if (plan.quantile_columns_size() > 0) {
    PutTexts("quantiles", plan.quantile_columns(), json);
  }
}

void PutEvaluate(const plan::EvaluatePlan& plan, IndentedJson* json) {
  json->Put("statement", plan.statement());
  json->Put("model_name",
            ModelNameOf(plan.model_schema(), plan.model_name(), plan.model_version()));
  json->Put("rows", plan.estimated_rows());
  json->Put("label", plan.label());
  PutTexts("metrics", plan.metrics(), json);
  PutTable(plan.has_table(), plan.table(), json);
}

void PutReport(const plan::ModelReportPlan& plan, IndentedJson* json) {
  json->Put("statement", plan.statement());
  json->Put("model_name",
            ModelNameOf(plan.model_schema(), plan.model_name(), plan.model_version()));
  json->Put("explainer", plan.explainer());
  PutTable(plan.has_table(), plan.table(), json);
}

}  // namespace

std::string ExplainJson(const plan::Plan& plan) {
  IndentedJson json;
  json.Open();
  switch (plan.kind_case()) {
    case plan::Plan::kTrain:
      json.Open("train");
      PutTrain(plan.train(), &json);
      json.Close();
      break;
    case plan::Plan::kPredict:
      json.Open("predict");
      PutPredict(plan.predict(), &json);
      json.Close();
      break;
    case plan::Plan::kEvaluate:
      json.Open("evaluate");
      PutEvaluate(plan.evaluate(), &json);
      json.Close();
      break;
    case plan::Plan::kReport:
      json.Open("explain");
      PutReport(plan.report(), &json);
      json.Close();
      break;
    default:
      break;
  }
  json.Close();
  return json.Take();
}

}  // namespace sluice::planner
