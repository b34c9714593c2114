#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "models/graph/graph_run_internal.h"
#include "models/kernels/kernels.h"
#include "models/model.pb.h"

// Graphs written by hand, and a store for their parameters.
namespace sluice::models::graph {

struct NamedAttribute {
  NamedAttribute(std::string of, int64_t value) : name(std::move(of)), integers({value}) {}
  NamedAttribute(std::string of, int value) : NamedAttribute(std::move(of), int64_t{value}) {}
  NamedAttribute(std::string of, double value)
      : name(std::move(of)), numbers({static_cast<float>(value)}) {}
  NamedAttribute(std::string of, std::vector<int64_t> values)
      : name(std::move(of)), integers(std::move(values)) {}
  NamedAttribute(std::string of, const char* value) : name(std::move(of)), texts({value}) {}
  NamedAttribute(std::string of, std::vector<std::string> values)
      : name(std::move(of)), texts(std::move(values)) {}
  std::string name;
  std::vector<int64_t> integers;
  std::vector<float> numbers;
  std::vector<std::string> texts;
};

class GraphBuilder {
 public:
  // All return the value's name.
  std::string Parameter(const std::string& name, const Shape& shape,
                        GraphParameter::Group group = GraphParameter::DEEP) {
    GraphParameter* parameter = graph.add_parameters();
    parameter->set_name(name);
    parameter->mutable_shape()->Add(shape.begin(), shape.end());
    parameter->set_group(group);
    return name;
  }
  std::string Numbers(const std::string& name, uint32_t width) {
    GraphInput* input = graph.add_inputs();
    input->set_name(name);
    input->set_width(width);
    return name;
  }
  std::string Ids(const std::string& name, uint32_t length = 0,
                  GraphInput::Kind kind = GraphInput::IDS) {
    GraphInput* input = graph.add_inputs();
    input->set_name(name);
    input->set_kind(kind);
    input->add_features(name);
    input->set_length(length);
    return name;
  }
  std::string Integers(const std::vector<int64_t>& values) {
    return Integers(values, {static_cast<int64_t>(values.size())});
  }
  std::string Integers(const std::vector<int64_t>& values, const Shape& shape) {
    GraphNode* node = Constant(shape);
    node->mutable_constant()->set_type(GraphTensor::INTEGER);
    node->mutable_constant()->mutable_integers()->Add(values.begin(), values.end());
    return node->outputs(0);
  }
  std::string Floats(const std::vector<float>& values, const Shape& shape) {
    GraphNode* node = Constant(shape);
    node->mutable_constant()->mutable_numbers()->Add(values.begin(), values.end());
    return node->outputs(0);
  }
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<NamedAttribute>& attributes = {}, int outputs = 1) {
    GraphNode* node = graph.add_nodes();
    node->set_op_type(op);
    node->set_name(op + std::to_string(graph.nodes_size()));
    for (const std::string& input : inputs) {
      node->add_inputs(input);
    }
    for (int k = 0; k < outputs; ++k) {
      node->add_outputs(node->name() + "/" + std::to_string(k));
    }
    for (const NamedAttribute& given : attributes) {
      GraphAttribute* attribute = node->add_attributes();
      attribute->set_name(given.name);
      attribute->mutable_integers()->Add(given.integers.begin(), given.integers.end());
      attribute->mutable_numbers()->Add(given.numbers.begin(), given.numbers.end());
      for (const std::string& text : given.texts) {
        attribute->add_texts(text);
      }
    }
    return node->outputs(0);
  }
  const NetworkGraph& Output(const std::string& name) {
    graph.clear_outputs();
    graph.add_outputs(name);
    return graph;
  }
  NetworkGraph graph;

 private:
  GraphNode* Constant(const Shape& shape) {
    GraphNode* node = graph.add_nodes();
    node->set_op_type("Constant");
    node->set_name("constant" + std::to_string(graph.nodes_size()));
    node->add_outputs(node->name());
    node->mutable_constant()->mutable_shape()->Add(shape.begin(), shape.end());
    return node;
  }
};

// A run with values for its parameters and a sum over its outputs, each by its own weight.
class TestedGraph {
 public:
  TestedGraph(const NetworkGraph& graph, const Kernels& kernels, int64_t rows = 3) {
    Result<std::unique_ptr<GraphRun>> made = GraphRun::Make(graph, kernels);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    if (!made.ok()) {
      return;
    }
    run_ = std::move(made).value();
    status_ = run_->Plan(rows);
    EXPECT_TRUE(status_.ok()) << status_.ToString();
    uint32_t seed = 1;
    for (const GraphParameter& parameter : graph.parameters()) {
      Tensor* tensor = run_->Find(parameter.name());
      names_.push_back(parameter.name());
      values_.push_back(Spread(tensor == nullptr ? 0 : tensor->count(), ++seed));
      gradients_.emplace_back(values_.back().size());
      if (tensor != nullptr) {
        tensor->numbers = values_.back().data();
        tensor->gradient = gradients_.back().data();
      }
    }
  }

  // Shuffled, none near another nor near 0, so that no kink lies close by.
  static std::vector<float> Spread(size_t n, uint32_t seed, float from = -1.2F, float to = 1.2F) {
    std::vector<float> values(n);
    for (size_t i = 0; i < n; ++i) {
      const float share = (static_cast<float>(i) + 0.5F) / static_cast<float>(n);
      values[i] = from + (to - from) * (n % 2 == 1 ? share + 0.5F / static_cast<float>(n) : share);
    }
    std::mt19937 random(seed);
    for (size_t i = n; i > 1; --i) {
      std::swap(values[i - 1], values[random() % i]);
    }
    return values;
  }
  static float WeightOf(size_t i) { return 0.3F + 0.1F * static_cast<float>((i * 7) % 13); }

  bool ok() const { return run_ != nullptr && status_.ok(); }
  GraphRun& run() { return *run_; }
  std::vector<float>& Values(size_t parameter) { return values_[parameter]; }
  const std::vector<float>& GradientOf(size_t parameter) { return gradients_[parameter]; }
  const std::string& Name(size_t parameter) { return names_[parameter]; }
  size_t parameters() const { return values_.size(); }
  // The elements of an input.
  Tensor& Input(const std::string& name) {
    Tensor* tensor = run_->Find(name);
    run_->Allocate(tensor);
    return *tensor;
  }

  std::vector<float> Forward(bool train = true) {
    run_->Forward(train, 7);
    const Tensor& output = run_->output();
    return {output.numbers, output.numbers + output.count()};
  }
  double Sum(bool train = true) {
    double sum = 0;
    const std::vector<float> output = Forward(train);
    for (size_t i = 0; i < output.size(); ++i) {
      sum += static_cast<double>(WeightOf(i)) * static_cast<double>(output[i]);
    }
    return sum;
  }
  // Of Sum; parameters that nothing came back to have 0.
  void Backward() {
    run_->PrepareBackward();
    Tensor& output = run_->output();
    ASSERT_NE(output.gradient, nullptr);
    for (size_t i = 0; i < output.count(); ++i) {
      output.gradient[i] = WeightOf(i);
    }
    run_->Backward();
    for (size_t p = 0; p < names_.size(); ++p) {
      const Tensor* tensor = run_->Find(names_[p]);
      if (tensor == nullptr || !tensor->written) {
        std::fill(gradients_[p].begin(), gradients_[p].end(), 0.0F);
      }
    }
  }

 private:
  std::unique_ptr<GraphRun> run_;
  Status status_;
  std::vector<std::string> names_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
};

}  // namespace sluice::models::graph
