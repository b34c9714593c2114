#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::models {

class Attribute;
class FeatureTransform;
class ModelSpec;
class NetworkGraph;

// A feature, as far as the builder of a graph needs to know it.
struct GraphFeature {
  std::string name;         // as GraphInput.features names it
  bool category = false;    // any number of ids per row; else numbers
  uint32_t width = 0;       // numbers per row, including the NULL indicator
  uint32_t buckets = 0;     // ids are in [0, buckets)
  uint32_t dimension = 0;   // of EMBEDDING(...), written or chosen; 0: indicator
  std::string combiner;     // of a row's ids: "sum", "mean", "sqrtn"
  std::string initializer;  // of the embedding; "" = the builder's choice
  bool weighted = false;    // its ids have weights
  std::string tower;        // Feature.tower
  bool in_wide = true;      // Feature.part
  bool in_deep = true;
  bool several_ids = false;  // a row may have none or more than one
};

// The attributes of a model, defaults included, by their full names ("model.k").
class AttributeValues {
 public:
  explicit AttributeValues(const ModelSpec& spec) : spec_(spec) {}
  std::optional<bool> Flag(std::string_view name) const;
  std::optional<int64_t> Integer(std::string_view name) const;
  std::optional<double> Number(std::string_view name) const;  // integers too
  std::optional<std::string> Text(std::string_view name) const;
  std::vector<double> Numbers(std::string_view name) const;
  std::vector<std::string> Texts(std::string_view name) const;

 private:
  const Attribute* Find(std::string_view name) const;
  const ModelSpec& spec_;
};

// Builds the graph that a model type computes from these features; its output is [rows, outputs].
// Equal arguments give equal graphs. An error that begins with "attribute model.x " is shown at
// that attribute.
using GraphBuilder = std::function<Result<NetworkGraph>(
    const std::vector<GraphFeature>& features, size_t outputs, const AttributeValues& attributes)>;

// The features of a plan, numbers first, each in the plan's order. `transform`: of the spec, for
// networks.
std::vector<GraphFeature> GraphFeatures(const ModelSpec& spec, const FeatureTransform& transform);

// Builds the graph of a spec whose features, attributes and loss are known, and stores it in the
// spec. Parameters that are read only by a feature's ids become tables; returns notes on the
// others.
Result<std::vector<std::string>> BuildGraph(const GraphBuilder& builder, ModelSpec* spec);

}  // namespace sluice::models
