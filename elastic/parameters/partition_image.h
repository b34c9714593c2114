#pragma once

#include <memory>
#include <string>

#include "elastic/storage/byte_parts.h"

namespace sluice::models {
struct NetworkWeights;
}

namespace sluice::elastic {

class PartitionStateProto;

// A partition as it was at one moment. To make one is to copy memory, which is done while nobody
// may change the partition; its bytes can be made later, beside everything else.
class PartitionImage {
 public:
  PartitionImage(std::unique_ptr<PartitionStateProto> state,
                 std::shared_ptr<const models::NetworkWeights> best);
  PartitionImage(PartitionImage&&) noexcept;
  PartitionImage& operator=(PartitionImage&&) noexcept;
  ~PartitionImage();

  // What Partition::Load takes, in parts. The image is empty then. ResourceExhausted: it remembers
  // more open shards than fit a part; else what the sink says.
  Status Encode(const PartSink& sink, size_t part_bytes = kMostPartBytes) &&;
  // All of them end to end, for one that is small.
  Result<std::string> Encode() &&;

 private:
  std::unique_ptr<PartitionStateProto> state_;
  std::shared_ptr<const models::NetworkWeights> best_;  // kept, so nobody changes them
};

}  // namespace sluice::elastic
