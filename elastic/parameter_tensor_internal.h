#pragma once

#include <string>
#include <vector>

#include "elastic/parameter_shard.h"

namespace sluice::elastic {

// A server's slice of a dense tensor: values, then the optimizer's slots.
struct ParameterShard::Tensor {
  std::string name;
  const models::Optimizer* optimizer = nullptr;
  size_t size = 0;
  std::vector<float> values;
};

}  // namespace sluice::elastic
