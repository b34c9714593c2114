#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/graph/graph_builder.h"
#include "models/graph/hidden_layers.h"

namespace sluice::models {

class GraphAttribute;
class GraphNode;

// A value of a graph that is being built: its name, and its numbers per row. Width 0: the value
// does not exist (there is no numeric feature), and operators ignore it.
struct GraphValue {
  std::string name;
  int64_t width = 0;
  explicit operator bool() const { return width > 0; }
};

// Builds the graph of a family, operator by operator. Parameters are named by layer, as in
// "deep/0/kernel". Not thread-safe.
class GraphWriter {
 public:
  GraphWriter();
  ~GraphWriter();

  // The numeric features, concatenated; of width 0 if there are none.
  GraphValue Numbers(const std::vector<GraphFeature>& features, const std::string& name);
  // For each row, the row of the feature's own table; several ids are combined by its combiner.
  // `initializer` is used if the feature has none of its own.
  GraphValue Embedding(const std::string& scope, const GraphFeature& feature, int64_t dimension,
                       const std::string& initializer);
  // The same in several values, of these widths: as many neighbouring columns of the table each.
  std::vector<GraphValue> EmbeddingParts(const std::string& scope, const GraphFeature& feature,
                                         const std::vector<int64_t>& widths,
                                         const std::string& initializer);
  // One table for several features, each of which has rows of its own in it, in their order;
  // returns its value's name. `name` may be that of a parameter: columns have any names.
  std::string Table(const std::string& name, const std::vector<GraphFeature>& features,
                    int64_t dimension, const std::string& initializer);
  // For each row, the sum of the table's rows of these features; several ids of a feature are
  // combined by `combiner`. `start`, of the table's dimension or a row of it for all, is added; "":
  // nothing.
  GraphValue Rows(const std::string& table, const std::vector<GraphFeature>& features,
                  int64_t dimension, const std::string& combiner, const std::string& start = "");
  // The id of each row, [rows], of a feature that has one per row.
  GraphValue Ids(const GraphFeature& feature);
  // The label, [rows]: only for the loss.
  GraphValue Label();
  // A trained dense tensor.
  std::string Parameter(const std::string& name, const std::vector<int64_t>& shape,
                        const std::string& initializer);
  std::string Scalar(float value);
  // Whether parameters from here on are of the wide part, which has an optimizer of its own.
  void SetWide(bool wide) { wide_ = wide; }

  // `width`: of the output.
  GraphValue Node(const std::string& op, const std::vector<std::string>& inputs, int64_t width,
                  const std::string& name = "");
  void SetIntegers(std::string_view attribute,
                   const std::vector<int64_t>& values);  // of the last node

  // Elementwise, of equal widths.
  GraphValue Add(const GraphValue& a, const GraphValue& b);  // either may have width 0
  GraphValue Multiply(const GraphValue& a, const GraphValue& b);
  GraphValue Scale(const GraphValue& a, float factor);
  // Concatenates; values of width 0 are ignored.
  GraphValue Concat(const std::vector<GraphValue>& values, const std::string& name);
  // Columns [begin, end).
  GraphValue Slice(const GraphValue& value, int64_t begin, int64_t end);
  // `count` values of equal width that were concatenated, on top of one another; their elementwise
  // sum, `squared`: that of their squares.
  GraphValue Stacked(const GraphValue& beside, int64_t count);
  GraphValue SumOf(const GraphValue& stacked, bool squared);
  GraphValue SumOfRow(const GraphValue& value);  // width 1
  GraphValue LogSoftmax(const GraphValue& value);
  GraphValue Column(const GraphValue& of_rows);  // [rows, 1] of [rows]
  GraphValue Turned(const GraphValue& value);    // transposed: not of a row any more
  // x / sqrt(1 + (x / bound)^2): limits the influence of outliers.
  GraphValue Bounded(const GraphValue& value, float bound = 3);
  // value x kernel [+ bias].
  GraphValue Dense(const std::string& name, const GraphValue& value, int64_t width,
                   const std::string& initializer = "glorot_uniform", bool bias = true);
  // `function`: as model.activation_fn names it.
  GraphValue Activate(const GraphValue& value, const std::string& function,
                      const std::string& name = "");
  // Dense, as a hidden layer.
  GraphValue Layer(const std::string& name, const GraphValue& value, int64_t units,
                   const std::string& initializer = "glorot_uniform");
  GraphValue Hidden(const std::string& scope, const GraphValue& value,
                    const GraphHiddenLayers& layers);
  // The same, given the first layer's output before what follows its product.
  GraphValue HiddenAfter(const std::string& scope, const GraphValue& first,
                         const GraphHiddenLayers& layers);
  // Adds half of l2 times the squares of a row's numbers to its loss, by the gradient only.
  GraphValue Penalised(const GraphValue& value, double l2);

  // [rows, 1]: what is minimised, in place of the loss of the output.
  void SetLoss(const GraphValue& value);

  Result<NetworkGraph> Take(const GraphValue& output);

 private:
  std::string Shape(const std::vector<int64_t>& shape);
  GraphAttribute* AddAttribute(std::string_view name);  // of the last node
  std::string Bag(const GraphFeature& feature);
  GraphValue Normalised(const std::string& layer, const GraphValue& value);
  std::string Fresh(std::string_view op);

  std::unique_ptr<NetworkGraph> graph_;
  std::set<std::string> bags_;
  int next_ = 0;
  bool wide_ = false;
};

}  // namespace sluice::models
