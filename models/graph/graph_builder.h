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
class ModelSpec;
class NetworkGraph;

// A feature as the builder of a graph sees it.
struct GraphFeature {
  std::string name;          // as GraphInput.features names it
  bool category = false;     // ids, as many per row as it has; else numbers
  uint32_t width = 0;        // numbers per row, with the indicator of a NULL
  uint32_t buckets = 0;      // ids are [0, buckets)
  uint32_t dimension = 0;    // of EMBEDDING(...), written or chosen; 0: indicator
  std::string combiner;      // of a row's ids: "sum", "mean", "sqrtn"
  std::string initializer;   // of the embedding; "" = the builder's choice
  bool weighted = false;     // its ids have weights
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

// What a model type computes for these features: a graph whose output is [rows, outputs]. The same
// for the same arguments. An error that begins with "attribute model.x " is shown at that
// attribute.
using GraphBuilder = std::function<Result<NetworkGraph>(
    const std::vector<GraphFeature>& features, size_t outputs, const AttributeValues& attributes)>;

// The features of a plan, numbers first, each in the plan's order.
Result<std::vector<GraphFeature>> GraphFeatures(const ModelSpec& spec);

// Builds the graph of a spec that has its features, attributes and loss, and puts it in its place.
// Parameters that only a feature's ids read become tables; what is said of the others is returned.
Result<std::vector<std::string>> BuildGraph(const GraphBuilder& builder, ModelSpec* spec);

}  // namespace sluice::models
