#include <utility>

#include "models/families/family.h"
#include "models/families/family_interactions.h"
#include "models/families/family_layers.h"
#include "models/model.pb.h"

// The sum of a factorization machine and hidden layers over the same vectors.
// Source: Guo and others, DeepFM, 2017.
namespace sluice::models::families {
namespace {

// The first layer is the sum of two products, of the vectors and of the numbers, each with its part
// of the layer's kernel. In one product, all vectors would be copied beside the numbers.
GraphValue WriteHidden(const Interactions& parts, const AttributeValues& attributes,
                       GraphWriter* writer) {
  const GraphHiddenLayers layers = GraphHiddenLayers::Of(attributes);
  if (layers.units.empty() || !parts.numbers || !parts.vectors) {
    const GraphValue input = writer->Concat({parts.numbers, parts.vectors}, "deep/input");
    return input ? writer->Hidden("deep", input, layers) : input;
  }
  const auto width = static_cast<int64_t>(layers.units.front());
  const std::string initializer = GlorotUniform(parts.numbers.width + parts.vectors.width, width);
  const GraphValue of_numbers =
      writer->Dense("deep/numbers", parts.numbers, width, initializer, false);
  const GraphValue of_vectors = writer->Layer("deep/0", parts.vectors, width, initializer);
  return writer->HiddenAfter("deep", writer->Add(of_vectors, of_numbers), layers);
}

Result<NetworkGraph> BuildDeepFm(const std::vector<GraphFeature>& features, size_t outputs,
                                 const AttributeValues& attributes) {
  GraphWriter writer;
  const Interactions parts =
      WriteInteractions(features, outputs, attributes, Vectors::kOfCategories, &writer);
  GraphValue deep = WriteHidden(parts, attributes, &writer);
  if (deep) {
    deep = writer.Dense("deep/logits", deep, static_cast<int64_t>(outputs));
  }
  return writer.Take(writer.Add(writer.Add(parts.linear, parts.pairs), deep));
}

}  // namespace

Family DeepFm() {
  Family family;
  family.name = "DeepFM";
  family.doc = "a factorization machine beside hidden layers that read the same vectors";
  family.attributes = {EmbeddingWidth("model.k", 16, "numbers of the vector of each value"),
                       Penalty()};
  for (AttributeSpec& spec : HiddenLayers()) {
    family.attributes.push_back(std::move(spec));
  }
  family.learning_rate = kLearningRate;
  family.build = BuildDeepFm;
  return family;
}

}  // namespace sluice::models::families
