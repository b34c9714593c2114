#include <utility>

#include "models/families/family.h"
#include "models/families/family_interactions.h"
#include "models/model.pb.h"

// Factorization machine: a linear model plus, for each pair of features, the product of their
// vectors. Source: Rendle, Factorization Machines, 2010; the sum over pairs as half of (sum squared
// - sum of squares), equation 5.
namespace sluice::models::families {
namespace {

Result<NetworkGraph> BuildFm(const std::vector<GraphFeature>& features, size_t outputs,
                             const AttributeValues& attributes) {
  GraphWriter writer;
  const Interactions parts =
      WriteInteractions(features, outputs, attributes, Vectors::kOfAll, &writer);
  return writer.Take(writer.Add(parts.linear, parts.pairs));
}

}  // namespace

Family Fm() {
  Family family;
  family.name = "FM";
  family.doc = "factorization machine: a linear model with the interaction of each two features";
  family.attributes = {EmbeddingWidth("model.k", 16, "numbers of the vector of each value"),
                       Penalty()};
  family.learning_rate = kLearningRate;
  family.build = BuildFm;
  return family;
}

}  // namespace sluice::models::families
