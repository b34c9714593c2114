#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "models/features/feature_hash_internal.h"
#include "models/metrics/score_histogram_internal.h"

namespace sluice::models {
namespace {

constexpr size_t kFirstSlots = 256;
// Doubles represent row counts exactly up to here.
constexpr double kLargestCount = 9e15;

bool IsCount(double weight) {
  return weight >= 0 && weight <= kLargestCount && weight == std::floor(weight);
}

}  // namespace

ScoreHistogram::ScoreHistogram(size_t most_bins) : most_bins_(most_bins), slots_(kFirstSlots) {}

uint32_t ScoreHistogram::KeyOf(float score) {
  constexpr uint32_t kHalf = std::bit_cast<uint32_t>(0.5F);
  if (!(score > 0)) {
    return 0;  // also for NaN
  }
  if (score <= 0.5F) {
    return std::bit_cast<uint32_t>(score);
  }
  return 2 * kHalf - std::bit_cast<uint32_t>(1 - std::min(score, 1.0F));
}

float ScoreHistogram::ScoreOf(uint32_t key) {
  constexpr uint32_t kHalf = std::bit_cast<uint32_t>(0.5F);
  return key <= kHalf ? std::bit_cast<float>(key)
                      : 1 - std::bit_cast<float>(2 * kHalf - std::min(key, 2 * kHalf));
}

void ScoreHistogram::Put(const Bin& bin) {
  const uint64_t mask = slots_.size() - 1;
  uint64_t at = HashIntegerInline(bin.key) & mask;
  while (slots_[at].key != kEmpty && slots_[at].key != bin.key) {
    at = (at + 1) & mask;
  }
  size_ += slots_[at].key == kEmpty ? 1 : 0;
  slots_[at].key = bin.key;
  slots_[at].positive += bin.positive;
  slots_[at].negative += bin.negative;
  if (size_ > most_bins_) {
    while (size_ > most_bins_) {
      Rebuild(slots_.size(), shift_ + 1);
    }
  } else if (size_ * 2 > slots_.size()) {
    Rebuild(slots_.size() * 2, shift_);
  }
}

void ScoreHistogram::Rebuild(size_t slots, unsigned shift) {
  const unsigned more = shift - shift_;
  // Bins are merged in the order of their keys, so that sums depend as little as possible on the
  // order of arrival.
  const std::vector<Bin> bins = more == 0 ? Bins() : Sorted();
  slots_.assign(slots, Bin());
  size_ = 0;
  shift_ = shift;
  const uint64_t mask = slots - 1;
  for (const Bin& bin : bins) {
    const uint32_t key = bin.key >> more;
    uint64_t at = HashIntegerInline(key) & mask;
    while (slots_[at].key != kEmpty && slots_[at].key != key) {
      at = (at + 1) & mask;
    }
    size_ += slots_[at].key == kEmpty ? 1 : 0;
    slots_[at].key = key;
    slots_[at].positive += bin.positive;
    slots_[at].negative += bin.negative;
  }
}

void ScoreHistogram::Add(float score, bool positive, double weight) {
  Put({KeyOf(score) >> shift_, positive ? weight : 0, positive ? 0 : weight});
}

void ScoreHistogram::Merge(const ScoreHistogram& other) {
  if (other.shift_ > shift_) {
    Rebuild(slots_.size(), other.shift_);
  }
  for (Bin bin : other.Sorted()) {
    bin.key >>= shift_ - other.shift_;  // Put may merge more bins meanwhile
    Put(bin);
  }
}

std::vector<ScoreHistogram::Bin> ScoreHistogram::Bins() const {
  std::vector<Bin> bins;
  bins.reserve(size_);
  for (const Bin& bin : slots_) {
    if (bin.key != kEmpty) {
      bins.push_back(bin);
    }
  }
  return bins;
}

std::vector<ScoreHistogram::Bin> ScoreHistogram::Sorted() const {
  std::vector<Bin> bins = Bins();
  std::sort(bins.begin(), bins.end(), [](const Bin& a, const Bin& b) { return a.key < b.key; });
  return bins;
}

ScoreCurve ScoreHistogram::Curve() const {
  std::vector<ScoreCurve::Point> points;
  points.reserve(size_);
  for (const Bin& bin : Sorted()) {
    points.push_back({static_cast<double>(ScoreOf(bin.key << shift_)), bin.positive, bin.negative});
  }
  return ScoreCurve(std::move(points));
}

void ScoreHistogram::Serialize(ByteWriter* out) const {
  const std::vector<Bin> bins = Sorted();
  const bool counts = std::all_of(bins.begin(), bins.end(), [](const Bin& bin) {
    return IsCount(bin.positive) && IsCount(bin.negative);
  });
  out->Whole(shift_);
  out->Whole(counts ? 1 : 0);
  out->Whole(bins.size());
  uint32_t last = 0;
  for (const Bin& bin : bins) {
    out->Whole(bin.key - last);
    last = bin.key;
    if (counts) {
      out->Whole(static_cast<uint64_t>(bin.positive));
      out->Whole(static_cast<uint64_t>(bin.negative));
    } else {
      out->Double(bin.positive);
      out->Double(bin.negative);
    }
  }
}

bool ScoreHistogram::Deserialize(ByteReader* in) {
  const uint64_t shift = in->Whole();
  const bool counts = in->Whole() == 1;
  const uint64_t bins = in->Whole();
  if (!in->ok() || shift > 31 || bins > most_bins_ || bins * 3 > in->left()) {
    return false;
  }
  slots_.assign(std::bit_ceil(std::max<size_t>(kFirstSlots, bins * 2)), Bin());
  shift_ = static_cast<unsigned>(shift);
  size_ = 0;
  uint64_t key = 0;
  for (uint64_t i = 0; i < bins; ++i) {
    key += in->Whole();
    if (key >= kEmpty) {
      return false;
    }
    Bin bin;
    bin.key = static_cast<uint32_t>(key);
    bin.positive = counts ? static_cast<double>(in->Whole()) : in->Double();
    bin.negative = counts ? static_cast<double>(in->Whole()) : in->Double();
    if (!std::isfinite(bin.positive) || !std::isfinite(bin.negative)) {
      return false;
    }
    Put(bin);
  }
  return in->ok();
}

}  // namespace sluice::models
