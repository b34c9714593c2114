#include <fmt/core.h>

#include <utility>

#include "models/families/family.h"
#include "models/model.pb.h"

// Deep and cross network, version 2: cross layers x0 * (W x + b) + x in parallel to hidden layers.
// With a rank, W is the product of two narrow matrices. Source: Wang and others, DCN V2, 2021,
// equation 1 and section 3.2 without the mixture of experts.
namespace sluice::models::families {
namespace {

Result<NetworkGraph> BuildDcn(const std::vector<GraphFeature>& features, size_t outputs,
                              const AttributeValues& attributes) {
  // As small as the vectors of FM, since cross layers multiply them.
  constexpr char kSmall[] = "normal:0.01";
  const int64_t k = attributes.Integer("model.k").value_or(16);
  const int64_t rank = attributes.Integer("model.cross_rank").value_or(0);
  const double l2 = attributes.Number("model.l2").value_or(0);
  GraphWriter writer;
  std::vector<GraphValue> inputs = {writer.Bounded(writer.Numbers(features, "numbers"))};
  for (const GraphFeature& feature : features) {
    if (feature.category) {
      inputs.push_back(writer.Penalised(writer.Embedding("embedding", feature, k, kSmall), l2));
    }
  }
  const GraphValue x0 = writer.Concat(inputs, "input");
  if (!x0) {
    return writer.Take(x0);
  }
  GraphValue x = x0;
  for (int64_t layer = 0; layer < attributes.Integer("model.cross_layers").value_or(2); ++layer) {
    const std::string name = fmt::format("cross/{}", layer);
    const bool narrow = rank > 0 && rank < x0.width;
    const GraphValue from =
        narrow ? writer.Dense(name + "/down", x, rank, "glorot_uniform", false) : x;
    const GraphValue turned = writer.Dense(name, from, x0.width);
    x = writer.Add(writer.Multiply(x0, turned), x);
  }
  const GraphValue deep = writer.Hidden("deep", x0, GraphHiddenLayers::Of(attributes));
  const GraphValue both = writer.Concat({x, deep}, "both");
  return writer.Take(writer.Dense("logits", both, static_cast<int64_t>(outputs)));
}

}  // namespace

Family Dcn() {
  Family family;
  family.name = "DCN";
  family.doc =
      "deep and cross network (v2): products of features, layer by layer, and hidden layers";
  family.attributes = {
      EmbeddingWidth("model.k", 16, "numbers of the vector of each value"),
      Integer("model.cross_layers", int64_t{2}, Between(0, 16),
              "layers of products: with each the products are of one more feature"),
      Integer("model.cross_rank", int64_t{0}, Between(0, 65'536),
              "numbers that a cross layer's matrix goes through: fewer cost less; 0: it is square"),
      Penalty()};
  for (AttributeSpec& spec : HiddenLayers()) {
    family.attributes.push_back(std::move(spec));
  }
  family.build = BuildDcn;
  return family;
}

}  // namespace sluice::models::families
