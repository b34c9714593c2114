#include "models/pass_training.h"

#include "models/linear_optimum.h"
#include "models/model.pb.h"
#include "models/registry/registry.h"
#include "models/trees/histogram/shard_sums.h"

namespace sluice::models {

Result<std::unique_ptr<PassSums>> PassSums::Make(const ModelSpec& spec) {
  return IsTrees(spec) ? histogram::MakeShardSums(spec) : MakeLinearPassSums(spec);
}

}  // namespace sluice::models
