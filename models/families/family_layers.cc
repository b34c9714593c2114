#include "models/families/family_layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "models/families/family_layer_settings.h"
#include "models/graph/graph_writer.h"
#include "models/model.pb.h"
#include "models/registry/registry.h"

namespace sluice::models::families {
namespace {

// Features with up to this many ids share a table, so that there are few tables to pull; larger
// ones have their own, so that the shared one stays small enough for a stamp per row.
constexpr uint32_t kLargestShared = 1 << 16;
constexpr int64_t kLargestSharedTable = 1 << 20;
constexpr uint32_t kWidestEmbedding = 1 << 18;

using Features = std::vector<GraphFeature>;

template <typename Predicate>
Features Where(const Features& features, Predicate predicate) {
  Features chosen;
  std::copy_if(features.begin(), features.end(), std::back_inserter(chosen), predicate);
  return chosen;
}

bool IsIndicator(const GraphFeature& feature) {
  return feature.category && feature.dimension == 0;
}
bool IsEmbedding(const GraphFeature& feature) {
  return feature.category && feature.dimension > 0;
}

// Those that have a table in common, in the order of the tables. A table is called by its first
// feature.
std::vector<Features> ShareTables(const Features& features) {
  struct Shared {
    Features members;
    int64_t rows = 0;
  };
  std::vector<Shared> tables;
  for (const GraphFeature& feature : features) {
    const auto fits = [&](const Shared& table) {
      const GraphFeature& first = table.members.front();
      return feature.buckets <= kLargestShared && first.buckets <= kLargestShared &&
             first.dimension == feature.dimension && first.initializer == feature.initializer &&
             table.rows + feature.buckets <= kLargestSharedTable;
    };
    auto table = std::find_if(tables.begin(), tables.end(), fits);
    if (table == tables.end()) {
      table = tables.insert(tables.end(), Shared());
    }
    table->members.push_back(feature);
    table->rows += feature.buckets;
  }
  std::vector<Features> shared;
  for (Shared& table : tables) {
    shared.push_back(std::move(table.members));
  }
  return shared;
}

// `value` + the sum of the rows of all features, of tables "scope/feature".
GraphValue AddRows(const std::string& scope, Features features, int64_t width,
                   const std::string& initializer, const std::string& combiner, GraphValue value,
                   GraphWriter* writer) {
  for (GraphFeature& feature : features) {  // as indicators, whatever they are elsewhere
    feature.dimension = 0;
    feature.initializer = initializer;
  }
  for (const Features& members : ShareTables(features)) {
    const std::string table =
        writer->Table(scope + "/" + members.front().name, members, width, initializer);
    value = writer->Rows(table, members, width, combiner, value.name);
  }
  return value;
}

GraphValue WriteWide(const Features& features, int64_t outputs, const std::string& combiner,
                     GraphWriter* writer) {
  writer->SetWide(true);
  const GraphValue numbers = writer->Numbers(features, "wide/numbers");
  GraphValue sum = numbers
                       ? writer->Dense("wide", numbers, outputs, "zeros")
                       : GraphValue{writer->Parameter("wide/bias", {outputs}, "zeros"), outputs};
  sum = AddRows("wide", Where(features, [](const auto& own) { return own.category; }), outputs,
                "zeros", combiner, sum, writer);
  writer->SetWide(false);
  return sum;
}

// The embeddings of all features side by side.
Result<std::vector<GraphValue>> WriteEmbeddings(const Features& features, GraphWriter* writer) {
  for (const GraphFeature& feature : features) {
    if (feature.dimension > kWidestEmbedding) {
      return InvalidArgument(fmt::format("the embedding of '{}' has dimension {}: between 1 and {}",
                                         feature.name, feature.dimension, kWidestEmbedding));
    }
    RETURN_IF_ERROR(
        CheckCombiner(feature.combiner, fmt::format("embedding of '{}'", feature.name)).status());
  }
  std::map<std::string, std::string> tables;  // by feature
  for (const Features& members : ShareTables(features)) {
    const GraphFeature& first = members.front();
    const std::string table =
        writer->Table("embedding/" + first.name, members, first.dimension, first.initializer);
    for (const GraphFeature& member : members) {
      tables.emplace(member.name, table);
    }
  }
  std::vector<GraphValue> values;
  for (const GraphFeature& feature : features) {
    values.push_back(
        writer->Rows(tables.at(feature.name), {feature}, feature.dimension, feature.combiner));
  }
  return values;
}

// An indicator is a row of the first layer's kernel, and counts once as its input: a multi-hot
// input is never materialised. Source of the initial values: Glorot and Bengio, 2010.
Result<GraphValue> WriteDeep(const ModelSpec& spec, const Features& features, int64_t outputs,
                             GraphWriter* writer) {
  ASSIGN_OR_RETURN(const GraphHiddenLayers layers, HiddenLayersOf(spec));
  if (!(spec.input_bound() >= 0) || !std::isfinite(spec.input_bound())) {
    return InvalidArgument(fmt::format("inputs are bounded by {}", spec.input_bound()));
  }
  ASSIGN_OR_RETURN(std::vector<GraphValue> inputs,
                   WriteEmbeddings(Where(features, IsEmbedding), writer));
  GraphValue numbers = writer->Numbers(features, "numbers");
  if (const auto bound = static_cast<float>(spec.input_bound()); bound > 0) {
    numbers = writer->Bounded(numbers, bound);
  }
  inputs.push_back(numbers);
  const GraphValue input = writer->Concat(inputs, "deep/input");
  const Features indicators = Where(features, IsIndicator);
  if (!input && indicators.empty()) {
    return InvalidArgument(fmt::format("no feature goes into the deep part of {}", spec.type()));
  }
  const auto units = static_cast<int64_t>(layers.units.front());
  const std::string initializer =
      GlorotUniform(input.width + static_cast<int64_t>(indicators.size()), units);
  const GraphValue first =
      input ? writer->Layer("deep/0", input, units, initializer)
            : GraphValue{writer->Parameter("deep/0/bias", {units}, "zeros"), units};
  const GraphValue hidden = writer->HiddenAfter(
      "deep", AddRows("indicator", indicators, units, initializer, "sum", first, writer), layers);
  return writer->Dense("deep/logits", hidden, outputs);
}

// Which parts a type has.
struct Parts {
  bool wide = false;
  bool deep = false;
};

Result<Parts> PartsOf(const std::string& name) {
  const ModelType* type = FindModelType(name);
  if (type == nullptr || type->build || type->family == ModelFamily::kTrees) {
    return NotFound(fmt::format("no network of type '{}'", name))
        .Hint("networks: Linear..., DNN..., DNNLinearCombined... Classifier or Regressor");
  }
  return Parts{type->family != ModelFamily::kDeep, type->family != ModelFamily::kLinear};
}

}  // namespace

std::string GlorotUniform(int64_t inputs, int64_t units) {
  return fmt::format("uniform:{:.9g}", std::sqrt(6.0 / static_cast<double>(inputs + units)));
}

bool IsLinear(const ModelSpec& spec) {
  const Result<Parts> parts = PartsOf(spec.type());
  return parts.ok() && parts->wide && !parts->deep;
}

Result<NetworkGraph> GraphOfLayers(const ModelSpec& spec, const FeatureTransform& transform,
                                   size_t outputs) {
  ASSIGN_OR_RETURN(const Parts parts, PartsOf(spec.type()));
  const auto width = static_cast<int64_t>(outputs);
  const bool both = parts.wide && parts.deep;
  const Features features = GraphFeatures(spec, transform);
  if (features.empty()) {
    return InvalidArgument(fmt::format("{} needs a feature", spec.type()))
        .Hint("select a column in addition to the label");
  }
  GraphWriter writer;
  GraphValue logits;
  if (parts.wide) {
    ASSIGN_OR_RETURN(const std::string combiner, WideCombiner(spec));
    logits = WriteWide(Where(features, [&](const auto& own) { return !both || own.in_wide; }),
                       width, combiner, &writer);
  }
  if (parts.deep) {
    ASSIGN_OR_RETURN(
        const GraphValue deep,
        WriteDeep(spec, Where(features, [&](const auto& own) { return !both || own.in_deep; }),
                  width, &writer));
    logits = writer.Add(logits, deep);
  }
  return writer.Take(logits);
}

}  // namespace sluice::models::families
