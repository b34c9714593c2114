#include "elastic/parameters/synchronous_step.h"

#include <algorithm>

#include "base/check.h"
#include "elastic/parameters/lane_tree.h"

namespace sluice::elastic {
namespace {

void AddTo(std::vector<float>* left, const std::vector<float>& right) {
  SLUICE_CHECK(left->size() == right.size(), "lanes have the same tensors");
  for (size_t i = 0; i < right.size(); ++i) {
    (*left)[i] += right[i];
  }
}

void Scale(LaneGradient* gradient, float factor) {
  for (std::vector<float>& tensor : gradient->dense) {
    for (float& value : tensor) {
      value *= factor;
    }
  }
  for (RowGradients& table : gradient->tables) {
    for (float& value : table.values) {
      value *= factor;
    }
  }
}

}  // namespace

void MergeRows(RowGradients* left, const RowGradients& right, size_t dimension) {
  std::unordered_map<int64_t, size_t> places;
  places.reserve(left->ids.size() + right.ids.size());
  for (size_t i = 0; i < left->ids.size(); ++i) {
    places.emplace(left->ids[i], i);
  }
  for (size_t i = 0; i < right.ids.size(); ++i) {
    const float* from = right.values.data() + i * dimension;
    const auto [place, is_new] = places.emplace(right.ids[i], left->ids.size());
    if (is_new) {
      left->ids.push_back(right.ids[i]);
      left->values.insert(left->values.end(), from, from + dimension);
      continue;
    }
    float* to = left->values.data() + place->second * dimension;
    for (size_t k = 0; k < dimension; ++k) {
      to[k] += from[k];
    }
  }
}

SynchronousStep::SynchronousStep(std::vector<uint32_t> dimensions)
    : dimensions_(std::move(dimensions)) {}

void SynchronousStep::StartRound(uint32_t lanes) {
  ended_.assign(lanes, false);
  gradients_.assign(lanes, std::nullopt);
}

void SynchronousStep::Restore(std::vector<bool> ended,
                              std::vector<std::optional<LaneGradient>> gradients) {
  SLUICE_CHECK(ended.size() == gradients.size(), "a lane has a place in both");
  ended_ = std::move(ended);
  gradients_ = std::move(gradients);
}

bool SynchronousStep::Has(uint32_t lane) const {
  return ended_[lane] || gradients_[lane].has_value();
}

void SynchronousStep::Add(uint32_t lane, LaneGradient gradient) {
  // Lanes hold means over their own rows; the tree adds sums.
  Scale(&gradient, static_cast<float>(gradient.weight));
  gradients_[lane] = std::move(gradient);
}

void SynchronousStep::End(uint32_t lane) {
  ended_[lane] = true;
}

bool SynchronousStep::Complete() const {
  for (uint32_t lane = 0; lane < lanes(); ++lane) {
    if (!Has(lane)) {
      return false;
    }
  }
  return true;
}

bool SynchronousStep::RoundOver() const {
  return std::find(ended_.begin(), ended_.end(), false) == ended_.end() &&
         std::none_of(gradients_.begin(), gradients_.end(),
                      [](const auto& gradient) { return gradient.has_value(); });
}

void SynchronousStep::Merge(LaneGradient* left, const LaneGradient& right) const {
  left->weight += right.weight;
  for (size_t i = 0; i < right.dense.size(); ++i) {
    AddTo(&left->dense[i], right.dense[i]);
  }
  for (size_t t = 0; t < right.tables.size(); ++t) {
    MergeRows(&left->tables[t], right.tables[t], dimensions_[t]);
  }
}

LaneGradient SynchronousStep::Close() {
  SLUICE_CHECK(Complete() && !RoundOver(), "a step closes over every lane");
  AddAlongTree(std::span(gradients_),
               [this](LaneGradient* left, const LaneGradient& right) { Merge(left, right); });
  LaneGradient sum = std::move(*gradients_[0]);
  gradients_.assign(gradients_.size(), std::nullopt);
  if (sum.weight > 0) {
    Scale(&sum, static_cast<float>(1.0 / sum.weight));
  }
  return sum;
}

}  // namespace sluice::elastic
