#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/byte_stream_internal.h"
#include "models/metrics/score_curve_internal.h"

namespace sluice::models {

// Weights of positive and negative rows by score in [0, 1]. Bins are leading bits of the score's
// floating-point form (of 1 - score in the upper half), so they are fine wherever the scores are,
// also near 0 and 1. Every distinct score has its own bin until there are more than `most_bins`;
// then neighbours are merged pairwise, as often as needed. The result depends only on the set of
// scores, not on the order of Add and Merge.
class ScoreHistogram {
 public:
  explicit ScoreHistogram(size_t most_bins);

  void Add(float score, bool positive, double weight);
  void Merge(const ScoreHistogram& other);

  ScoreCurve Curve() const;
  size_t bins() const { return size_; }

  void Serialize(ByteWriter* out) const;
  // False when the bytes are not a histogram.
  bool Deserialize(ByteReader* in);

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  struct Bin {
    uint32_t key = kEmpty;
    double positive = 0;
    double negative = 0;
  };

  static uint32_t KeyOf(float score);
  static float ScoreOf(uint32_t key);
  void Put(const Bin& bin);
  void Rebuild(size_t slots, unsigned shift);
  std::vector<Bin> Bins() const;
  std::vector<Bin> Sorted() const;  // by key

  size_t most_bins_;
  unsigned shift_ = 0;  // low bits dropped from every key
  size_t size_ = 0;
  std::vector<Bin> slots_;  // open addressing, at most half full
};

}  // namespace sluice::models
