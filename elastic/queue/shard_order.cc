#include "elastic/queue/shard_order.h"

#include "base/check.h"

namespace sluice::elastic {
namespace {

// splitmix64's finaliser.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Four rounds of a Feistel network with a strong round function are a pseudo-random permutation.
constexpr int kFeistelRounds = 4;

}  // namespace

uint64_t MixSeeds(uint64_t a, uint64_t b, uint64_t c) {
  return Mix(Mix(Mix(a) ^ b) ^ c);
}

ShardOrder::ShardOrder(int64_t size, uint64_t seed, Epoch epoch, bool shuffle)
    : size_(static_cast<uint64_t>(size)), key_(MixSeeds(seed, epoch.value())), shuffle_(shuffle) {
  SLUICE_CHECK(size >= 0, "an order has no negative size");
  while ((uint64_t{1} << (2 * half_bits_)) < size_) {
    ++half_bits_;
  }
}

uint64_t ShardOrder::Encrypt(uint64_t value) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (int round = 0; round < kFeistelRounds; ++round) {
    const uint64_t next = left ^ (MixSeeds(key_, right, static_cast<uint64_t>(round)) & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

ShardId ShardOrder::At(ShardPosition position) const {
  if (!shuffle_ || size_ < 2) {
    return ShardId::At(position.index());
  }
  // The network permutes [0, 4^half_bits); walking its cycle until it is back inside [0, size)
  // permutes that. Fewer than four steps on average, as 4^half_bits < 4 x size.
  uint64_t value = position.index();
  do {
    value = Encrypt(value);
  } while (value >= size_);
  return ShardId::At(value);
}

}  // namespace sluice::elastic
