#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/models/graph/graph_builder.h"

namespace sluice::models::graph {

// A graph around one operator, whose numbers are all parameters.
struct OperatorCase {
  std::string name;
  std::string op;
  std::function<std::string(GraphBuilder&)> build;
  bool positive = false;                // of logarithms and roots
  std::vector<size_t> not_learnt = {};  // parameters that are no argument of a function
};

inline void PrintTo(const OperatorCase& test, std::ostream* out) {
  *out << test.name;
}

// Of every operator, in the forms in which it differs.
std::vector<OperatorCase> OperatorCases();

}  // namespace sluice::models::graph
