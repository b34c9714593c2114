#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::elastic {

// How a job's parameters are cut into virtual partitions: the units that are placed on servers,
// replicated and moved. Fixed for the life of a job, the same in every process, and independent of
// the number of servers. Immutable: thread-safe.
class PartitionLayout {
 public:
  // A piece of a dense tensor: the elements [begin, end).
  struct Chunk {
    size_t tensor = 0;
    size_t begin = 0;
    size_t end = 0;
    size_t size() const { return end - begin; }
  };
  // One partition holds everything, uncut. With several, tensors are cut into chunks of at most 1
  // MiB that are dealt to the partitions in turn: however large a tensor is, every partition gets
  // an equal share of it.
  PartitionLayout(const models::Network& network, uint32_t partitions);
  PartitionLayout(const std::vector<size_t>& tensor_sizes, uint32_t partitions);

  uint32_t partitions() const { return static_cast<uint32_t>(chunks_.size()); }
  uint32_t PartitionOf(size_t table, int64_t id) const;
  // In ascending order of (tensor, begin).
  const std::vector<Chunk>& chunks(uint32_t partition) const { return chunks_[partition]; }
  size_t dense_size(uint32_t partition) const { return dense_sizes_[partition]; }

 private:
  std::vector<std::vector<Chunk>> chunks_;
  std::vector<size_t> dense_sizes_;
};

// Type, optimizers, tensors and tables with their shapes: two models with the same description can
// load each other's partitions.
std::string DescribeModel(const models::ModelSpec& spec, const models::Network& network);

}  // namespace sluice::elastic
