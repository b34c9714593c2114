#include <fmt/core.h>

#include <utility>

#include "models/families/family.h"
#include "models/families/family_in_batch_softmax.h"
#include "models/model.pb.h"

// Two towers: hidden layers make a vector of what is known of a user, and others one of an item;
// their product says how well they go together. Source: Yi and others, Sampling-Bias-Corrected
// Neural Modeling for Large Corpus Item Recommendations, 2019, section 3, without its correction.
namespace sluice::models::families {
namespace {

Result<GraphValue> Tower(const std::string& name, const std::vector<GraphFeature>& features,
                         int64_t width, const AttributeValues& attributes, GraphWriter* writer) {
  const double l2 = attributes.Number("model.l2").value_or(0);
  std::vector<GraphFeature> own;
  for (const GraphFeature& feature : features) {
    if (feature.tower == name) {
      own.push_back(feature);
    }
  }
  std::vector<GraphValue> parts = {writer->Bounded(writer->Numbers(own, name + "/numbers"))};
  for (const GraphFeature& feature : own) {
    if (feature.category) {
      const int64_t k = attributes.Integer("model.k").value_or(16);
      parts.push_back(writer->Penalised(writer->Embedding(name, feature, k, "normal:0.05"), l2));
    }
  }
  const GraphValue input = writer->Concat(parts, name + "/input");
  if (!input) {
    return InvalidArgument(fmt::format("the tower of the {}s has no features", name))
        .Hint("COLUMN age, city FOR user COLUMN title, price FOR item");
  }
  return writer->Dense(name + "/vector",
                       writer->Hidden(name, input, GraphHiddenLayers::Of(attributes)), width);
}

Result<NetworkGraph> BuildTwoTower(const std::vector<GraphFeature>& features, size_t outputs,
                                   const AttributeValues& attributes) {
  const auto count = static_cast<int64_t>(outputs);
  const int64_t k = attributes.Integer("model.k").value_or(16);
  GraphWriter writer;
  ASSIGN_OR_RETURN(const GraphValue users, Tower("user", features, k * count, attributes, &writer));
  ASSIGN_OR_RETURN(const GraphValue items, Tower("item", features, k * count, attributes, &writer));
  std::vector<GraphValue> products;
  for (int64_t o = 0; o < count; ++o) {
    products.push_back(writer.SumOfRow(writer.Multiply(writer.Slice(users, o * k, (o + 1) * k),
                                                       writer.Slice(items, o * k, (o + 1) * k))));
  }
  const GraphValue product = writer.Concat(products, "products");
  if (attributes.Text("model.loss") == kInBatchSoftmax) {
    RETURN_IF_ERROR(WriteInBatchSoftmax(features, "item", users, items, product, &writer));
    return writer.Take(product);
  }
  const std::string bias = writer.Parameter("bias", {count}, "zeros");
  return writer.Take(writer.Node("Add", {product.name, bias}, count));
}

}  // namespace

Family TwoTower() {
  Family family;
  family.name = "TwoTower";
  family.doc = "a vector of the user and one of the item, each from hidden layers of its own";
  family.towers = {"user", "item"};
  family.losses = {kInBatchSoftmax};
  family.attributes = {EmbeddingWidth("model.k", 16, "numbers of the vector of each value"),
                       Penalty()};
  for (AttributeSpec& spec : HiddenLayers()) {
    family.attributes.push_back(std::move(spec));
  }
  family.build = BuildTwoTower;
  return family;
}

}  // namespace sluice::models::families
