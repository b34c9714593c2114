#include "models/graph/graph_builder.h"

#include <memory>
#include <utility>

#include "models/features/feature_transform.h"
#include "models/graph/graph_tables.h"
#include "models/model.pb.h"
#include "models/networks/loss.h"

namespace sluice::models {

const Attribute* AttributeValues::Find(std::string_view name) const {
  for (const Attribute& attribute : spec_.attributes()) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  return nullptr;
}

std::optional<bool> AttributeValues::Flag(std::string_view name) const {
  const Attribute* found = Find(name);
  return found != nullptr && found->value_case() == Attribute::kFlag ? std::optional(found->flag())
                                                                     : std::nullopt;
}

std::optional<int64_t> AttributeValues::Integer(std::string_view name) const {
  const Attribute* found = Find(name);
  return found != nullptr && found->value_case() == Attribute::kInteger
             ? std::optional<int64_t>(found->integer())
             : std::nullopt;
}

std::optional<double> AttributeValues::Number(std::string_view name) const {
  const Attribute* found = Find(name);
  if (found != nullptr && found->value_case() == Attribute::kInteger) {
    return static_cast<double>(found->integer());
  }
  return found != nullptr && found->value_case() == Attribute::kNumber
             ? std::optional(found->number())
             : std::nullopt;
}

std::optional<std::string> AttributeValues::Text(std::string_view name) const {
  const Attribute* found = Find(name);
  return found != nullptr && found->value_case() == Attribute::kText ? std::optional(found->text())
                                                                     : std::nullopt;
}

std::vector<double> AttributeValues::Numbers(std::string_view name) const {
  const Attribute* found = Find(name);
  return found == nullptr ? std::vector<double>{}
                          : std::vector<double>(found->numbers().values().begin(),
                                                found->numbers().values().end());
}

std::vector<std::string> AttributeValues::Texts(std::string_view name) const {
  const Attribute* found = Find(name);
  return found == nullptr ? std::vector<std::string>{}
                          : std::vector<std::string>(found->texts().values().begin(),
                                                     found->texts().values().end());
}

std::vector<GraphFeature> GraphFeatures(const ModelSpec& spec, const FeatureTransform& transform) {
  const auto plan_of = [&spec](size_t feature) -> const Feature& {
    return spec.features().features(static_cast<int>(feature));
  };
  std::vector<GraphFeature> features;
  for (const DenseColumn& column : transform.dense_columns()) {
    GraphFeature& feature = features.emplace_back();
    feature.name = plan_of(column.feature).name();
    feature.width = static_cast<uint32_t>(column.width);
    feature.tower = plan_of(column.feature).tower();
    feature.in_wide = column.in_wide;
    feature.in_deep = column.in_deep;
  }
  for (const SlotColumn& column : transform.slots()) {
    const Feature& plan = plan_of(column.feature);
    GraphFeature& feature = features.emplace_back();
    feature.name = plan.name();
    feature.category = true;
    feature.buckets = column.buckets;
    feature.dimension = column.embedding ? column.dimension : 0;
    feature.combiner = column.combiner.empty() ? "sum" : column.combiner;
    feature.initializer = column.initializer;
    feature.weighted = plan.weighted();
    feature.tower = plan.tower();
    feature.in_wide = column.in_wide;
    feature.in_deep = column.in_deep;
    feature.several_ids = plan.format().kind() != TensorFormat::NONE ||
                          plan.categorizer().null_bucket() < 0 ||
                          plan.categorizer().oov_bucket() < 0;
  }
  return features;
}

Result<std::vector<std::string>> BuildGraph(const GraphBuilder& builder, ModelSpec* spec) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FeatureTransform> transform,
                   FeatureTransform::Make(spec->features(), FeatureTransform::Target::kNetwork));
  ASSIGN_OR_RETURN(const Loss loss, Loss::Make(*spec));
  ASSIGN_OR_RETURN(NetworkGraph graph, builder(GraphFeatures(*spec, *transform), loss.outputs(),
                                               AttributeValues(*spec)));
  std::vector<std::string> notes = MakeTables(&graph);
  *spec->mutable_graph() = std::move(graph);
  return notes;
}

}  // namespace sluice::models
