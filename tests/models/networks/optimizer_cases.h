#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/model.pb.h"

namespace sluice::models {

// An optimizer with arguments, and what it does to one parameter in double precision, directly by
// the papers.
struct OptimizerCase {
  using Arguments = std::vector<std::pair<std::string, double>>;
  using State = std::map<std::string, double>;
  // Step `t`, from 1; `s` holds the parameter's state.
  using Formula = std::function<void(double& p, double g, int t, State& s)>;

  std::string label;
  std::string name;
  Arguments arguments;
  size_t slots;
  Formula formula;
};

// Of every optimizer, in the forms in which it differs.
const std::vector<OptimizerCase>& OptimizerCases();

OptimizerSpec OptimizerNamed(const std::string& name, const OptimizerCase::Arguments& arguments);

}  // namespace sluice::models
