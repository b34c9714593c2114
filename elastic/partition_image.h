#pragma once

#include <memory>
#include <string>

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

  // PartitionStateProto and its CRC-32C: what Partition::Load takes. The image is empty then.
  std::string Encode() &&;

 private:
  std::unique_ptr<PartitionStateProto> state_;
  std::shared_ptr<const models::NetworkWeights> best_;  // kept, so nobody changes them
};

}  // namespace sluice::elastic
