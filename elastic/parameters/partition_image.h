#pragma once

#include <memory>
#include <string>

#include "elastic/storage/byte_parts.h"

namespace sluice::models {
struct NetworkWeights;
}

namespace sluice::elastic {

class PartitionStateProto;

// The state of a partition at one moment. Making one copies memory, while the partition must not
// change; it can be serialised later, concurrently with other work.
class PartitionImage {
 public:
  PartitionImage(std::unique_ptr<PartitionStateProto> state,
                 std::shared_ptr<const models::NetworkWeights> best);
  PartitionImage(PartitionImage&&) noexcept;
  PartitionImage& operator=(PartitionImage&&) noexcept;
  ~PartitionImage();

  // The bytes for Partition::Load, in parts. Empties the image. ResourceExhausted: its record of
  // open shards is larger than a part; else the sink's error.
  Status Encode(const PartSink& sink, size_t part_bytes = kMaxPartBytes) &&;
  // All parts concatenated, for a small one.
  Result<std::string> Encode() &&;

 private:
  std::unique_ptr<PartitionStateProto> state_;
  std::shared_ptr<const models::NetworkWeights> best_;  // kept weights, which do not change
};

}  // namespace sluice::elastic
