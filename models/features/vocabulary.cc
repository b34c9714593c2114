#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "base/letter_case.h"
#include "models/features/cell_format.h"
#include "models/features/vocabulary_internal.h"

namespace sluice::models {
namespace {

// Tables are half empty: one or two probes on average.
uint64_t TableSize(size_t entries) {
  return std::bit_ceil(std::max<uint64_t>(4, entries * 2));
}

// The 64-bit integer whose canonical spelling is `text`, if any.
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

Status Vocabulary::Build(std::vector<std::string> texts, DataType learnt, bool any_case) {
  texts_ = std::move(texts);
  learnt_ = learnt == DataType::kBytes ? DataType::kText : learnt;
  any_case_ = any_case;
  slots_.assign(TableSize(texts_.size()), Slot());
  mask_ = slots_.size() - 1;
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
  }
  true_id_ = FindAny({"t", "true", "TRUE", "True", "1"});
  false_id_ = FindAny({"f", "false", "FALSE", "False", "0"});
  IndexNumbers();
  return OkStatus();
}

uint32_t Vocabulary::FindAny(std::initializer_list<std::string_view> spellings) const {
  for (const std::string_view spelling : spellings) {
    if (const uint32_t id = FindText(spelling); id != kNoId) {
      return id;
    }
  }
  return kNoId;
}

// Maps each number to the text that FormatValue makes of it, or else to its first other spelling;
// maps 1 and 0 to flags if there are only flags.
void Vocabulary::IndexNumbers() {
  constexpr double kExactIntegers = 9e15;  // up to here a double is the integer that it looks like
  std::map<int64_t, uint32_t> integers;
  std::map<int64_t, uint32_t> doubles;
  const auto bits_of = [](double value) { return std::bit_cast<int64_t>(value + 0.0); };
  for (const bool as_formatted : {true, false}) {
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::string& text = texts_[i];
      const auto id = static_cast<uint32_t>(i);
      const std::optional<int64_t> integer = CanonicalInteger(text);
      if (as_formatted && integer.has_value()) {
        integers.emplace(*integer, id);
      }
      const std::optional<double> number =
          as_formatted ? ParseNumber(text) : ParseCategoryNumber(text);
      if (!number.has_value() || (as_formatted && FormatDouble(*number) != text)) {
        continue;
      }
      if (integer.has_value() && std::abs(*number) >= kExactIntegers) {
        continue;  // other integers are the same double
      }
      doubles.emplace(bits_of(*number), id);
      if (*number == std::floor(*number) && std::abs(*number) < kExactIntegers) {
        integers.emplace(static_cast<int64_t>(*number), id);
      }
    }
  }
  const bool flags = std::all_of(texts_.begin(), texts_.end(), [](const std::string& text) {
    return ParseFlag(text).has_value();
  });
  for (const bool value : {false, true}) {
    if (const uint32_t id = FindFlag(value); flags && id != kNoId) {
      integers.emplace(value ? 1 : 0, id);
      doubles.emplace(bits_of(value ? 1 : 0), id);
    }
  }
  integers_.Build({integers.begin(), integers.end()});
  doubles_.Build({doubles.begin(), doubles.end()});
}

uint32_t Vocabulary::FindSpelling(std::string_view text) const {
  const std::string_view trimmed = TrimBlanks(text);
  if (any_case_) {
    return FindText(LowerAscii(trimmed));
  }
  if (learnt_ == DataType::kTimestamp) {
    const std::optional<int64_t> micros = ParseTimestamp(trimmed);
    return micros.has_value() ? FindTimestamp(*micros) : kNoId;
  }
  if (const std::optional<bool> flag = ParseFlag(trimmed)) {
    return FindFlag(*flag);
  }
  const std::optional<double> number = ParseCategoryNumber(trimmed);
  return number.has_value() ? FindDouble(*number) : kNoId;
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
  return FindTextCell(column.texts[row]);
}

}  // namespace sluice::models
