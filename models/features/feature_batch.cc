#include <algorithm>

#include "models/features/feature_hash_internal.h"
#include "models/features/feature_transform.h"

namespace sluice::models {
namespace {

template <typename T>
void AppendRange(const std::vector<T>& from, size_t begin, size_t end, std::vector<T>* to) {
  to->insert(to->end(), from.begin() + static_cast<int64_t>(begin),
             from.begin() + static_cast<int64_t>(end));
}

// Makes the implicit "one id per row" explicit.
void WriteEnds(size_t rows, IdSlot* slot) {
  slot->ends.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    slot->ends[row] = static_cast<uint32_t>(row + 1);
  }
}

// Appends rows [begin, end) of `from` to `to`, which has `rows` rows.
void AppendSlot(const IdSlot& from, size_t begin, size_t end, size_t rows, IdSlot* to) {
  if (begin == end) {
    return;
  }
  if (!from.ends.empty() && to->ends.empty()) {
    WriteEnds(rows, to);
  }
  const size_t first = from.Begin(begin);
  const size_t last = from.End(end - 1);
  if (!from.weights.empty() || !to->weights.empty()) {
    to->weights.resize(to->ids.size(), 1);
    if (from.weights.empty()) {
      to->weights.resize(to->ids.size() + (last - first), 1);
    } else {
      AppendRange(from.weights, first, last, &to->weights);
    }
  }
  if (!to->ends.empty() || !from.ends.empty()) {
    const size_t shift = to->ids.size() - first;
    for (size_t row = begin; row < end; ++row) {
      to->ends.push_back(static_cast<uint32_t>(from.End(row) + shift));
    }
  }
  AppendRange(from.ids, first, last, &to->ids);
}

template <typename T>
size_t BytesOf(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

void AddOdd(OddCells odd, std::vector<OddCells>* all) {
  const auto same = [&odd](const OddCells& each) { return each.column == odd.column; };
  if (std::none_of(all->begin(), all->end(), same)) {
    all->push_back(std::move(odd));
  }
}

FeatureBatch FeatureBatch::Slice(size_t begin, size_t end) const {
  FeatureBatch part;
  part.rows = end - begin;
  part.dense_width = dense_width;
  AppendRange(dense, begin * dense_width, end * dense_width, &part.dense);
  part.slots.resize(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) {
    AppendSlot(slots[i], begin, end, 0, &part.slots[i]);
  }
  const size_t label_width = rows == 0 ? 0 : labels.size() / rows;
  AppendRange(labels, begin * label_width, end * label_width, &part.labels);
  if (!label_numbers.empty()) {
    AppendRange(label_numbers, begin * label_width, end * label_width, &part.label_numbers);
  }
  if (!weights.empty()) {
    AppendRange(weights, begin, end, &part.weights);
  }
  if (!groups.empty()) {
    AppendRange(groups, begin, end, &part.groups);
  }
  if (!offsets.empty()) {
    AppendRange(offsets, begin, end, &part.offsets);
  }
  return part;
}

std::vector<double> FeatureBatch::OwnLabels() const {
  return label_numbers.empty() ? std::vector<double>(labels.begin(), labels.end()) : label_numbers;
}

void FeatureBatch::AddOffsets(size_t width, float* outputs) const {
  for (size_t i = 0; i < offsets.size() * width; ++i) {
    outputs[i] += offsets[i / width];
  }
}

void FeatureBatch::Append(const FeatureBatch& other) {
  if (rows == 0) {
    dense_width = other.dense_width;
    slots.resize(other.slots.size());
  }
  SLUICE_CHECK(dense_width == other.dense_width && slots.size() == other.slots.size(),
               "batches of different transforms");
  AppendRange(other.dense, 0, other.dense.size(), &dense);
  for (size_t i = 0; i < slots.size(); ++i) {
    AppendSlot(other.slots[i], 0, other.rows, rows, &slots[i]);
  }
  AppendRange(other.labels, 0, other.labels.size(), &labels);
  AppendRange(other.label_numbers, 0, other.label_numbers.size(), &label_numbers);
  if (!other.weights.empty() || !weights.empty()) {
    weights.resize(rows, 1);
    AppendRange(other.weights, 0, other.weights.size(), &weights);
    weights.resize(rows + other.rows, 1);
  }
  AppendRange(other.groups, 0, other.groups.size(), &groups);
  AppendRange(other.offsets, 0, other.offsets.size(), &offsets);
  rows += other.rows;
}

void FeatureBatch::Clear() {
  rows = 0;
  dense.clear();
  for (IdSlot& slot : slots) {
    slot.ids.clear();
    slot.ends.clear();
    slot.weights.clear();
  }
  odd.clear();
  unknown.clear();
  labels.clear();
  label_numbers.clear();
  weights.clear();
  groups.clear();
  offsets.clear();
}

size_t FeatureBatch::Bytes() const {
  size_t bytes = BytesOf(dense) + BytesOf(labels) + BytesOf(label_numbers) + BytesOf(weights) +
                 BytesOf(groups) + BytesOf(offsets);
  for (const std::vector<IdSlot>* list : {&slots, &scratch}) {
    for (const IdSlot& slot : *list) {
      bytes += BytesOf(slot.ids) + BytesOf(slot.ends) + BytesOf(slot.weights);
    }
  }
  return bytes;
}

uint64_t HashText(std::string_view text) {
  return HashTextInline(text);
}

uint64_t HashInteger(uint64_t value) {
  return HashIntegerInline(value);
}

}  // namespace sluice::models
