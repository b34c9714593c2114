#pragma once

#include <cstdint>

namespace sluice::elastic {

// A pseudo-random permutation of [0, size) for one (seed, epoch), by a Feistel network with cycle
// walking: any position is computed on its own, so nothing of the order is kept in memory.
class ShardOrder {
 public:
  ShardOrder(int64_t size, uint64_t seed, uint32_t epoch, bool shuffle);
  int64_t At(int64_t position) const;

 private:
  uint64_t Encrypt(uint64_t value) const;
  uint64_t size_;
  uint64_t key_;
  unsigned half_bits_ = 1;
  bool shuffle_;
};

// Mixes numbers into one seed; the same everywhere.
uint64_t MixSeeds(uint64_t a, uint64_t b, uint64_t c = 0);

}  // namespace sluice::elastic
