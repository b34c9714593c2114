#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

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
  // In the order of the keys, so that sums depend as little as possible on the order of arrival.
  const std::vector<Bin> bins = Sorted();
  const unsigned more = shift - shift_;
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

std::vector<ScoreHistogram::Bin> ScoreHistogram::Sorted() const {
  std::vector<Bin> bins;
  bins.reserve(size_);
  for (const Bin& bin : slots_) {
    if (bin.key != kEmpty) {
      bins.push_back(bin);
    }
  }
  std::sort(bins.begin(), bins.end(), [](const Bin& a, const Bin& b) { return a.key < b.key; });
  return bins;
}

double ScoreHistogram::Auc() const {
  double negatives_below = 0;
  double positives = 0;
  double pairs = 0;
  for (const Bin& bin : Sorted()) {
    pairs += bin.positive * (negatives_below + bin.negative / 2);
    negatives_below += bin.negative;
    positives += bin.positive;
  }
  return positives > 0 && negatives_below > 0 ? pairs / (positives * negatives_below) : kNotANumber;
}

double ScoreHistogram::AveragePrecision() const {
  const std::vector<Bin> bins = Sorted();
  double positives = 0;
  double all = 0;
  double sum = 0;
  for (auto bin = bins.rbegin(); bin != bins.rend(); ++bin) {
    positives += bin->positive;
    all += bin->positive + bin->negative;
    if (bin->positive > 0) {
      sum += bin->positive * positives / all;
    }
  }
  return positives > 0 ? sum / positives : kNotANumber;
}

ScoreHistogram::Cut ScoreHistogram::BestCut(double cost) const {
  const std::vector<Bin> bins = Sorted();
  double positives = 0;
  for (const Bin& bin : bins) {
    positives += bin.positive;
  }
  if (!(positives > 0)) {
    return {};
  }
  double hits = 0;
  double taken = 0;
  double best = -std::numeric_limits<double>::infinity();
  Cut cut;
  for (size_t i = bins.size(); i-- > 0;) {
    hits += bins[i].positive;
    taken += bins[i].positive + bins[i].negative;
    const double f1 = 2 * hits / (taken + positives);
    const double gain = cost > 0 ? -(cost * (positives - hits) + (taken - hits)) : f1;
    if (gain > best) {
      best = gain;
      const double low = static_cast<double>(ScoreOf(bins[i].key << shift_));
      const double below = i == 0 ? low : static_cast<double>(ScoreOf(bins[i - 1].key << shift_));
      cut = {(low + below) / 2, f1};
    }
  }
  return cut;
}

ScoreHistogram::Taken ScoreHistogram::From(double threshold) const {
  Taken taken;
  for (const Bin& bin : slots_) {
    if (bin.key != kEmpty && static_cast<double>(ScoreOf(bin.key << shift_)) >= threshold) {
      taken.positive += bin.positive;
      taken.negative += bin.negative;
    }
  }
  return taken;
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
