#include "models/families/family_layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "models/graph/graph_writer.h"
#include "models/model.pb.h"

namespace sluice::models::families {
namespace {

std::vector<GraphFeature> Where(const std::vector<GraphFeature>& features,
                                bool GraphFeature::*part) {
  std::vector<GraphFeature> chosen;
  std::copy_if(features.begin(), features.end(), std::back_inserter(chosen),
               [part](const GraphFeature& feature) { return feature.*part; });
  return chosen;
}

// An indicator is a row of the first layer's kernel, and counts once as its input.
Result<GraphValue> WriteDeep(const std::vector<GraphFeature>& features, int64_t outputs,
                             const AttributeValues& attributes, const std::string& prefix,
                             GraphWriter* writer) {
  const std::string attribute = "model." + prefix + "hidden_units";
  const std::vector<double> units = attributes.Numbers(attribute);
  if (units.empty()) {
    return InvalidArgument(fmt::format("attribute {} must be a list of at least one layer", attribute))
        .Hint("for example [64, 32]");
  }
  const GraphValue numbers = writer->Numbers(features, "numbers");
  std::vector<GraphValue> inputs = {writer->Bounded(numbers)};
  int64_t width = numbers.width;
  for (const GraphFeature& feature : features) {
    if (feature.category && feature.dimension > 0) {
      inputs.push_back(writer->Embedding("embedding", feature, feature.dimension,
                                         feature.initializer));
    }
    width += !feature.category ? 0 : feature.dimension > 0 ? feature.dimension : 1;
  }
  GraphFirstLayer first;
  first.initializer = GlorotUniform(width, units.front());
  for (const GraphFeature& feature : features) {
    if (feature.category && feature.dimension == 0) {
      first.sum = writer->Add(first.sum,
                              writer->Embedding("indicator", feature,
                                                static_cast<int64_t>(units.front()),
                                                first.initializer));
    }
  }
  if (width == 0) {
    return InvalidArgument("the deep part reads no feature");
  }
  const GraphValue hidden =
      writer->Hidden("deep", writer->Concat(inputs, "deep/input"), attributes, first, prefix);
  return writer->Dense("deep/logits", hidden, outputs);
}

GraphValue WriteWide(const std::vector<GraphFeature>& features, int64_t outputs,
                     GraphWriter* writer) {
  writer->SetWide(true);
  GraphValue sum = writer->Numbers(features, "wide/numbers");
  sum = sum ? writer->Dense("wide", sum, outputs, "zeros")
            : GraphValue{writer->Parameter("wide/bias", {outputs}, "zeros"), outputs};
  for (const GraphFeature& feature : features) {
    if (feature.category) {
      sum = writer->Add(sum, writer->Embedding("wide", feature, outputs, "zeros"));
    }
  }
  return sum;
}

GraphBuilder HiddenLayersOf(ModelFamily family) {
  return [family](const std::vector<GraphFeature>& features, size_t outputs,
                  const AttributeValues& attributes) -> Result<NetworkGraph> {
    const auto width = static_cast<int64_t>(outputs);
    GraphWriter writer;
    if (family == ModelFamily::kDeep) {
      ASSIGN_OR_RETURN(const GraphValue deep, WriteDeep(features, width, attributes, "", &writer));
      return writer.Take(deep);
    }
    ASSIGN_OR_RETURN(const GraphValue deep, WriteDeep(Where(features, &GraphFeature::in_deep),
                                                      width, attributes, "dnn_", &writer));
    const GraphValue wide = WriteWide(Where(features, &GraphFeature::in_wide), width, &writer);
    return writer.Take(writer.Add(deep, wide));
  };
}

}  // namespace

std::string GlorotUniform(int64_t inputs, double units) {
  return fmt::format("uniform:{:.9g}", std::sqrt(6.0 / (static_cast<double>(inputs) + units)));
}

void AddHiddenLayers(std::vector<ModelType>* types) {
  for (ModelType& type : *types) {
    const bool deep = type.family == ModelFamily::kDeep || type.family == ModelFamily::kWideDeep;
    if (deep && !type.build) {
      type.build_normalised = HiddenLayersOf(type.family);
    }
  }
}

}  // namespace sluice::models::families
