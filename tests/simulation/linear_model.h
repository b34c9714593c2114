#pragma once

#include <cstddef>
#include <memory>

#include "models/model.h"
#include "models/model.pb.h"

namespace sluice::elastic::simulation {

// The model of the simulated jobs: a linear regression, plain SGD with rate 1.
struct LinearModel {
  models::ModelSpec spec;
  std::unique_ptr<models::Network> network;
  size_t tensor = 0;  // the one with the weights
};

// One for each number of weights, per thread; cached.
const LinearModel& LinearModelOf(size_t weights);

}  // namespace sluice::elastic::simulation
