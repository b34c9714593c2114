#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "models/model.pb.h"
#include "tests/models/graph/graph_builder.h"

// A network that another program wrote, with what that program computed of it for kRecordedRows
// rows of two features: dense, a vector of 4, and ids, a category of 9.
namespace sluice::models {

constexpr int64_t kRecordedRows = 5;

// `name`: a file below tests/models.
inline std::string ReadWhole(const std::string& name) {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/tests/models/" + name, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  std::ostringstream content;
  content << in.rdbuf();
  return content.str();
}

// Lines "name: value value ...".
inline std::map<std::string, std::vector<double>> ReadNumbers(const std::string& name) {
  std::map<std::string, std::vector<double>> numbers;
  std::istringstream in(ReadWhole(name));
  for (std::string line; std::getline(in, line);) {
    const size_t colon = line.rfind(": ");
    std::istringstream values(line.substr(colon + 2));
    for (double value = 0; values >> value;) {
      numbers[line.substr(0, colon)].push_back(value);
    }
  }
  return numbers;
}

// Relative error of `found`, in the Euclidean norm.
inline double Error(const float* found, const std::vector<double>& expected) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double distance = static_cast<double>(found[i]) - expected[i];
    error += distance * distance;
    norm += expected[i] * expected[i];
  }
  return std::sqrt(error) / std::max(std::sqrt(norm), 1e-2);
}

inline FeaturePlan DenseAndIds() {
  FeaturePlan plan;
  Feature* dense = plan.add_features();
  dense->set_name("dense");
  dense->set_kind(Feature::TENSOR);
  dense->set_width(4);
  Feature* ids = plan.add_features();
  ids->set_name("ids");
  ids->set_kind(Feature::CATEGORY);
  ids->mutable_categorizer()->set_buckets(9);
  return plan;
}

// Sets the inputs of a graph as they were recorded.
inline void SetInputs(std::map<std::string, std::vector<double>>& recorded,
                      graph::TestedGraph* tested) {
  for (const std::string name : {"dense", "ids"}) {
    graph::Tensor* input = tested->run().Find(name);
    if (input == nullptr) {
      continue;
    }
    tested->run().Allocate(input);
    for (size_t i = 0; i < input->count(); ++i) {
      if (input->type == graph::ElementType::kFloat) {
        input->numbers[i] = static_cast<float>(recorded[name][i]);
      } else {
        input->integers[i] = static_cast<int64_t>(recorded[name][i]);
      }
    }
  }
}

}  // namespace sluice::models
