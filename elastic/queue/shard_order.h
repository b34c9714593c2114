#pragma once

#include <cstdint>

#include "elastic/ids.h"

namespace sluice::elastic {

// A pseudo-random permutation of [0, size) for one (seed, epoch), by a Feistel network with cycle
// walking: each position is computed independently, so no order is kept in memory.
class ShardOrder {
 public:
  ShardOrder(int64_t size, uint64_t seed, Epoch epoch, bool shuffle);
  ShardId At(ShardPosition position) const;

 private:
  uint64_t Encrypt(uint64_t value) const;
  uint64_t size_;
  uint64_t key_;
  unsigned half_bits_ = 1;
  bool shuffle_;
};

// Mixes numbers into one seed; the same in every process.
uint64_t MixSeeds(uint64_t a, uint64_t b, uint64_t c = 0);

}  // namespace sluice::elastic
