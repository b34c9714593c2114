#include "executor/model_description.h"

#include <fmt/core.h>

#include "base/value.h"
#include "catalog/model_store.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

std::string CategorizerText(const models::Categorizer& categorizer) {
  const uint32_t buckets = categorizer.buckets();
  switch (categorizer.kind()) {
    case models::Categorizer::VOCABULARY:
      return fmt::format("vocabulary of {}", categorizer.vocabulary_size());
    case models::Categorizer::IDENTITY:
      return fmt::format("ids below {}", buckets);
    case models::Categorizer::HASH:
      return fmt::format("hashed into {}", buckets);
    case models::Categorizer::BUCKET:
      return fmt::format("cut at {} boundaries", categorizer.boundaries_size());
    case models::Categorizer::CROSS:
      return fmt::format("cross of {} into {}", categorizer.members_size(), buckets);
    case models::Categorizer::TIME_PART:
      return fmt::format("{} of the time", categorizer.time_part());
    default:  // a plan that a newer version wrote
      return fmt::format("{} buckets", buckets);
  }
}

std::string FeatureText(const models::Feature& feature) {
  std::string text;
  switch (feature.kind()) {
    case models::Feature::NUMERIC:
      text = feature.logarithm() ? "numeric, log scale" : "numeric";
      text += feature.null_indicator() ? ", NULL indicator" : "";
      break;
    case models::Feature::TENSOR:
      text = fmt::format("tensor of {} numbers", feature.width());
      break;
    default:
      text = "category, " + CategorizerText(feature.categorizer());
      text += feature.representation() == models::Feature::EMBEDDING
                  ? fmt::format(", embedding of {}", feature.dimension())
                  : ", indicator";
      break;
  }
  if (feature.part() == models::Feature::WIDE) {
    text += ", wide part only";
  } else if (feature.part() == models::Feature::DEEP) {
    text += ", deep part only";
  }
  return text;
}

std::string LabelText(const models::LabelPlan& label) {
  if (label.kind() != models::LabelPlan::CLASS) {
    return label.column();
  }
  constexpr int kShownClasses = 10;  // a thousand classes do not help a reader
  std::string text = fmt::format("{} with {} classes: ", label.column(), label.classes_size());
  for (int i = 0; i < label.classes_size() && i < kShownClasses; ++i) {
    text += (i == 0 ? "" : ", ") + label.classes(i);
  }
  return text + (label.classes_size() > kShownClasses ? ", ..." : "");
}

std::string OptimizerText(const models::OptimizerSpec& optimizer) {
  std::string text = optimizer.name();
  for (const models::Attribute& argument : optimizer.arguments()) {
    text += fmt::format(" {}={}", argument.name(), planner::DescribeAttribute(argument));
  }
  return text;
}

}  // namespace

std::vector<DescriptionLine> DescribeVersion(const catalog::ModelVersion& version,
                                             const plan::TrainPlan& plan) {
  std::vector<DescriptionLine> lines;
  const auto add = [&lines](std::string section, std::string name, std::string value) {
    lines.push_back({std::move(section), std::move(name), std::move(value)});
  };
  const models::ModelSpec& model = plan.model();
  add("model", "name", version.name);
  add("model", "version",
      fmt::format("{}{}", version.version, version.live ? " (live)" : " (not live)"));
  add("model", "type", version.type);
  if (model.features().label().kind() != models::LabelPlan::NONE) {
    add("model", "label", LabelText(model.features().label()));
  }
  if (plan.parameter_count() > 0) {  // trees have none that could be counted beforehand
    add("model", "parameters", fmt::format("{}", plan.parameter_count()));
  }
  add("model", "bytes", fmt::format("{}", version.weights_bytes));
  add("model", "loss", model.loss());
  for (const models::Feature& feature : model.features().features()) {
    add("feature", feature.name(), FeatureText(feature));
  }
  for (const models::Attribute& attribute : model.attributes()) {
    add("attribute", attribute.name(), planner::DescribeAttribute(attribute));
  }
  if (plan.optimum()) {
    add("attribute", "optimizer", "none: these weights have the least loss over all rows");
  }
  if (!plan.optimum() && !model.deep_optimizer().name().empty()) {
    add("attribute", "optimizer", OptimizerText(model.deep_optimizer()));
  }
  if (!plan.optimum() && !model.wide_optimizer().name().empty()) {
    add("attribute", "wide optimizer", OptimizerText(model.wide_optimizer()));
  }
  for (const auto& [name, value] : version.metrics) {
    add("metric", name, FormatDouble(value));
  }
  add("lineage", "statement", version.statement);
  add("lineage", "job", fmt::format("{}", version.job));
  add("lineage", "rows trained", fmt::format("{}", version.rows));
  add("lineage", "created", FormatTimestamp(version.created_micros));
  add("lineage", "sha256 of the weights", version.weights_sha256);
  if (!version.lineage.empty()) {
    add("lineage", "details", version.lineage);
  }
  return lines;
}

}  // namespace sluice::executor
