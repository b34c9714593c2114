#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/graph/graph_builder.h"

namespace sluice::models {

class GraphNode;

// A value of a graph that is being written: its name, and its numbers per row. Width 0: there is no
// such value (no numeric feature); whoever takes one leaves it out.
struct GraphValue {
  std::string name;
  int64_t width = 0;
  explicit operator bool() const { return width > 0; }
};

// Writes the graph of a family, operator by operator. Names tell layers: "deep/0/kernel". Not
// thread-safe.
class GraphWriter {
 public:
  GraphWriter();
  ~GraphWriter();

  // The numeric ones among the features, side by side; no value where there are none.
  GraphValue Numbers(const std::vector<GraphFeature>& features, const std::string& name);
  // The row of the feature's own table for each row, of several ids as its combiner says.
  // `initializer` stands where the feature has none of its own.
  GraphValue Embedding(const std::string& scope, const GraphFeature& feature, int64_t dimension,
                       const std::string& initializer);
  // A dense tensor that learns.
  std::string Parameter(const std::string& name, const std::vector<int64_t>& shape,
                        const std::string& initializer);
  std::string Scalar(float value);

  // `width`: of what comes out.
  GraphValue Node(const std::string& op, const std::vector<std::string>& inputs, int64_t width,
                  const std::string& name = "");
  void SetIntegers(std::string_view attribute, const std::vector<int64_t>& values);  // of the last

  // Of the same width, row by row and number by number.
  GraphValue Add(const GraphValue& a, const GraphValue& b);  // either may be missing
  GraphValue Multiply(const GraphValue& a, const GraphValue& b);
  GraphValue Scale(const GraphValue& a, float factor);
  // Side by side, those that there are.
  GraphValue Concat(const std::vector<GraphValue>& values, const std::string& name);
  // The numbers [begin, end) of each row.
  GraphValue Slice(const GraphValue& value, int64_t begin, int64_t end);
  // Values of one width stacked, then summed; `squared`: the sum of their squares.
  GraphValue Stack(const std::vector<GraphValue>& values, const std::string& name);
  GraphValue SumOf(const GraphValue& stacked, bool squared);
  // The numbers [begin, end) of each of the stacked, side by side.
  GraphValue SliceOfEach(const GraphValue& stacked, int64_t count, int64_t begin, int64_t end);
  GraphValue SumOfRow(const GraphValue& value);  // width 1
  // x / sqrt(1 + (x / bound)^2): numbers far out count as far out, not as so far as they are.
  GraphValue Bounded(const GraphValue& value);
  // value x kernel [+ bias].
  GraphValue Dense(const std::string& name, const GraphValue& value, int64_t width,
                   const std::string& initializer = "glorot_uniform", bool bias = true);
  GraphValue Activate(const GraphValue& value, const std::string& function);
  // Hidden layers as model.hidden_units, activation_fn, batch_norm and dropout say.
  GraphValue Hidden(const std::string& scope, GraphValue value, const AttributeValues& attributes);
  // Half of l2 x the squares of a row's numbers joins its loss, which is not told of it.
  GraphValue Penalised(const GraphValue& value, double l2);

  Result<NetworkGraph> Take(const GraphValue& output);

 private:
  std::string Shape(const std::vector<int64_t>& shape);
  std::string Fresh(std::string_view op);

  std::unique_ptr<NetworkGraph> graph_;
  int next_ = 0;
};

}  // namespace sluice::models
