#include "models/families/family.h"
#include "models/model.pb.h"

// A family that only a test has: one file in a folder, and nothing else.
namespace sluice::models::families {
namespace {

Result<NetworkGraph> BuildTwoMeans(const std::vector<GraphFeature>& features, size_t outputs,
                                   const AttributeValues& attributes) {
  GraphWriter writer;
  const GraphValue numbers =
      writer.Scale(writer.Numbers(features, "numbers"),
                   static_cast<float>(attributes.Number("model.factor").value_or(1)));
  return writer.Take(writer.Dense("out", numbers, static_cast<int64_t>(outputs)));
}

}  // namespace

Family TwoMeans() {
  Family family;
  family.name = "TwoMeans";
  family.doc = "numbers times a factor, added up";
  family.attributes = {Number("model.factor", 2.0, Between(0, 10), "what numbers are times")};
  family.build = BuildTwoMeans;
  return family;
}

}  // namespace sluice::models::families
