#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/parameters/partition_layout.h"
#include "models/model.h"
#include "models/networks/optimizer.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::elastic {

// Names a batch: its rows are the same for every worker.
struct BatchIdentity {
  Epoch epoch = Epoch::First();
  ShardId shard = ShardId::First();
  BatchIndex batch = BatchIndex::First();  // in synchronous mode also the step of the round
  Attempt attempt = Attempt::First();
  RoundIndex round = RoundIndex::First();
  uint32_t lane = 0;
  uint32_t lanes = 0;                // 0: asynchronous
  RangeId range = RangeId::First();  // of the lease
  bool last = false;                 // the shard has no batch after it
  uint32_t rate_cuts = 0;            // how often the learning rate has been lowered so far
};

// The factor of the learning rate after that many reductions.
float RateFactor(uint32_t rate_cuts);

// Rows of one table: distinct ids, and for each a number per dimension.
struct RowSpan {
  std::span<const int64_t> ids;
  std::span<const float> values;
};

// What all partitions of a job have in common: how they are cut, their tensors and tables, and how
// gradients change them. Immutable after Make: thread-safe.
struct ParameterRules {
  static Result<ParameterRules> Make(const models::ModelSpec& spec, const models::Network& network,
                                     uint32_t partitions, bool synchronous);

  const models::Optimizer& OptimizerOf(const models::DenseTensor& tensor) const {
    const bool bias = tensor.shape.size() < 2;
    switch (tensor.group) {
      case models::DenseTensor::Group::kWide:
        return bias ? *wide_bias_optimizer : *wide_optimizer;
      case models::DenseTensor::Group::kStatistics:
        return *running_means.at(tensor.momentum);
      case models::DenseTensor::Group::kFrozen:
        return *running_means.at(1);  // its values are never replaced
      case models::DenseTensor::Group::kDeep:
        break;
    }
    return bias ? *deep_bias_optimizer : *deep_optimizer;
  }
  const models::Optimizer& OptimizerOf(const models::EmbeddingTable& table) const {
    return table.wide ? *wide_optimizer : *deep_optimizer;
  }

  PartitionLayout layout;
  std::vector<models::DenseTensor> tensors;
  std::vector<models::EmbeddingTable> tables;
  std::vector<uint32_t> dimensions;  // of the tables
  uint64_t seed = 0;
  bool synchronous = false;
  std::unique_ptr<models::Optimizer> deep_optimizer;
  std::unique_ptr<models::Optimizer> wide_optimizer;
  // The same rules without weight decay.
  std::unique_ptr<models::Optimizer> deep_bias_optimizer;
  std::unique_ptr<models::Optimizer> wide_bias_optimizer;
  // By their momentum; 1 for frozen tensors.
  std::map<float, std::unique_ptr<models::Optimizer>> running_means;
};

}  // namespace sluice::elastic
