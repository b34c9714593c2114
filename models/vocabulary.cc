#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "models/cell_format.h"
#include "models/vocabulary_internal.h"

namespace sluice::models {
namespace {

// Half-empty tables: one or two probes on average.
uint64_t TableSize(size_t entries) {
  return std::bit_ceil(std::max<uint64_t>(4, entries * 2));
}

// The 64-bit integer that is written exactly as `text`, if there is one.
std::optional<int64_t> CanonicalInteger(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || std::to_string(value) != text) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

void IntegerIndex::Build(const std::vector<std::pair<int64_t, uint32_t>>& entries) {
  if (entries.empty()) {
    return;
  }
  const auto [low, high] = std::minmax_element(entries.begin(), entries.end());
  const uint64_t range = static_cast<uint64_t>(high->first) - static_cast<uint64_t>(low->first) + 1;
  if (range != 0 && range <= entries.size() * 4 + 1024) {
    lowest_ = low->first;
    direct_.assign(range, kNoId);
    for (const auto& [key, id] : entries) {
      direct_[static_cast<uint64_t>(key) - static_cast<uint64_t>(lowest_)] = id;
    }
    return;
  }
  slots_.assign(TableSize(entries.size()), Slot());
  mask_ = slots_.size() - 1;
  for (const auto& [key, id] : entries) {
    uint64_t at = HashIntegerInline(static_cast<uint64_t>(key)) & mask_;
    while (slots_[at].id != kNoId) {
      at = (at + 1) & mask_;
    }
    slots_[at] = {key, id};
  }
}

Vocabulary::Slot Vocabulary::KeyOf(std::string_view text) const {
  Slot slot;
  slot.size = static_cast<uint32_t>(text.size());
  slot.words =
      text.size() <= kInlineTextBytes ? ReadShortText(text) : TextWords{HashLongText(text), 0};
  return slot;
}

Status Vocabulary::Build(std::vector<std::string> texts) {
  texts_ = std::move(texts);
  slots_.assign(TableSize(texts_.size()), Slot());
  mask_ = slots_.size() - 1;
  std::vector<std::pair<int64_t, uint32_t>> integers;
  std::vector<std::pair<int64_t, uint32_t>> doubles;
  for (size_t i = 0; i < texts_.size(); ++i) {
    const std::string& text = texts_[i];
    const auto id = static_cast<uint32_t>(i);
    if (FindText(text) != kNoId) {
      return InvalidArgument(fmt::format("'{}' stands twice in a vocabulary", text));
    }
    Slot slot = KeyOf(text);
    slot.id = id;
    uint64_t at = HashTextInline(text) & mask_;
    while (slots_[at].id != kNoId) {
      at = (at + 1) & mask_;
    }
    slots_[at] = slot;
    if (const std::optional<int64_t> integer = CanonicalInteger(text)) {
      integers.emplace_back(*integer, id);
    }
    const std::optional<double> number = ParseNumber(text);
    if (number.has_value() && FormatDouble(*number) == text) {
      int64_t bits;
      const double value = *number + 0.0;
      std::memcpy(&bits, &value, sizeof(bits));
      doubles.emplace_back(bits, id);
    }
  }
  integers_.Build(integers);
  doubles_.Build(doubles);
  true_id_ = FindText("t");
  false_id_ = FindText("f");
  return OkStatus();
}

uint32_t Vocabulary::FindLongText(std::string_view text) const {
  const uint64_t hash = HashLongText(text);
  uint64_t at = hash & mask_;
  while (slots_[at].id != kNoId &&
         !(slots_[at].words.first == hash && slots_[at].size == text.size() &&
           texts_[slots_[at].id] == text)) {
    at = (at + 1) & mask_;
  }
  return slots_[at].id;
}

uint32_t Vocabulary::FindTimestamp(int64_t micros) const {
  return FindText(FormatTimestamp(micros));
}

uint32_t Vocabulary::FindCell(const RowBatch::Column& column, size_t row) const {
  switch (column.type) {
    case DataType::kBool:
      return FindFlag(column.int64s[row] != 0);
    case DataType::kInt64:
      return FindInteger(column.int64s[row]);
    case DataType::kDouble:
      return FindDouble(column.doubles[row]);
    case DataType::kTimestamp:
      return FindTimestamp(column.int64s[row]);
    case DataType::kText:
    case DataType::kBytes:
      break;
  }
  return FindText(column.texts[row]);
}

}  // namespace sluice::models
