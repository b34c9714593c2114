#include "elastic/parameters/partition_layout.h"

#include <fmt/core.h>

#include <algorithm>

#include "elastic/queue/shard_order.h"
#include "models/model.pb.h"

namespace sluice::elastic {
namespace {

constexpr size_t kMaxChunkFloats = (1U << 20) / sizeof(float);
// Smaller pieces would cost more in bookkeeping than they balance.
constexpr size_t kMinChunkFloats = (16U << 10) / sizeof(float);

std::vector<size_t> Sizes(const models::Network& network) {
  std::vector<size_t> sizes;
  for (const models::DenseTensor& tensor : network.dense()) {
    sizes.push_back(tensor.size());
  }
  return sizes;
}

}  // namespace

PartitionLayout::PartitionLayout(const models::Network& network, uint32_t partitions)
    : PartitionLayout(Sizes(network), partitions) {}

PartitionLayout::PartitionLayout(const std::vector<size_t>& tensor_sizes, uint32_t partitions)
    : chunks_(partitions), dense_sizes_(partitions, 0) {
  size_t dealt = 0;
  for (size_t tensor = 0; tensor < tensor_sizes.size(); ++tensor) {
    const size_t size = tensor_sizes[tensor];
    const size_t share = (size + partitions - 1) / partitions;
    const size_t most =
        partitions == 1 ? size : std::clamp(share, kMinChunkFloats, kMaxChunkFloats);
    size_t begin = 0;
    do {  // an empty tensor has one empty chunk
      const size_t end = std::min(size, begin + most);
      const size_t partition = dealt++ % partitions;
      chunks_[partition].push_back({tensor, begin, end});
      dense_sizes_[partition] += end - begin;
      begin = end;
    } while (begin < size);
  }
}

uint32_t PartitionLayout::PartitionOf(size_t table, int64_t id) const {
  return partitions() == 1
             ? 0
             : static_cast<uint32_t>(MixSeeds(table, static_cast<uint64_t>(id)) % partitions());
}

std::string DescribeModel(const models::ModelSpec& spec, const models::Network& network) {
  std::string text = fmt::format("{} ({}, {})", spec.type(), spec.deep_optimizer().name(),
                                 spec.wide_optimizer().name());
  for (const models::DenseTensor& tensor : network.dense()) {
    text += fmt::format("; {}", tensor.name);
    for (int64_t size : tensor.shape) {
      text += fmt::format(" {}", size);
    }
  }
  for (const models::EmbeddingTable& table : network.tables()) {
    text += fmt::format("; {} {} x {}", table.name, table.rows, table.dimension);
  }
  return text;
}

}  // namespace sluice::elastic
