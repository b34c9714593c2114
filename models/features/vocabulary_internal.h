#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/feature_hash_internal.h"

namespace sluice::models {

// "No id": the cell yields none, or is not in the vocabulary.
constexpr uint32_t kNoId = UINT32_MAX;

// Maps 64-bit keys to ids: a plain array if the keys are close together, else open addressing.
// Immutable after Build.
class IntegerIndex {
 public:
  void Build(const std::vector<std::pair<int64_t, uint32_t>>& entries);
  uint32_t Find(int64_t key) const {
    if (!direct_.empty()) {
      const uint64_t place = static_cast<uint64_t>(key) - static_cast<uint64_t>(lowest_);
      return place < direct_.size() ? direct_[place] : kNoId;
    }
    if (slots_.empty()) {
      return kNoId;
    }
    uint64_t at = HashIntegerInline(static_cast<uint64_t>(key)) & mask_;
    while (slots_[at].id != kNoId && slots_[at].key != key) {
      at = (at + 1) & mask_;
    }
    return slots_[at].id;
  }

 private:
  struct Slot {
    int64_t key = 0;
    uint32_t id = kNoId;
  };
  int64_t lowest_ = 0;
  std::vector<uint32_t> direct_;
  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
};

// Maps values to their positions in a list of texts, for cells of any type: a number is found by
// the text that FormatValue would make of it, without making it, or by another spelling ("1.50"),
// and a flag by "t", "true" or "1". Immutable after Build; thread-safe.
class Vocabulary {
 public:
  // `learnt`: the type of the column that the texts come from. `any_case`: texts, in lower case,
  // are also found by other spellings of their letters and with blanks around them. Fails if a text
  // occurs twice.
  Status Build(std::vector<std::string> texts, DataType learnt, bool any_case = false);
  const std::vector<std::string>& texts() const { return texts_; }

  // kNoId if absent.
  uint32_t FindText(std::string_view text) const {
    if (text.size() <= kInlineTextBytes) {
      const TextWords words = ReadShortText(text);
      uint64_t at = HashWords(words, text.size(), kHashSeed) & mask_;
      while (slots_[at].id != kNoId &&
             !(slots_[at].words.first == words.first && slots_[at].words.second == words.second &&
               slots_[at].size == text.size())) {
        at = (at + 1) & mask_;
      }
      return slots_[at].id;
    }
    return FindLongText(text);
  }
  uint32_t FindInteger(int64_t value) const { return integers_.Find(value); }
  uint32_t FindDouble(double value) const {
    int64_t bits;
    value += 0.0;  // -0 is 0
    std::memcpy(&bits, &value, sizeof(bits));
    return doubles_.Find(bits);
  }
  uint32_t FindFlag(bool value) const { return value ? true_id_ : false_id_; }
  uint32_t FindTimestamp(int64_t micros) const;
  // A cell of a text column: as it is, or else as a value of the learnt type ("1.0" for 1).
  uint32_t FindTextCell(std::string_view text) const {
    const uint32_t id = FindText(text);
    return id != kNoId || (learnt_ == DataType::kText && !any_case_) ? id : FindSpelling(text);
  }
  // Any cell except NULL.
  uint32_t FindCell(const RowBatch::Column& column, size_t row) const;

 private:
  struct Slot {
    TextWords words;  // of a long text: its hash, 0
    uint32_t size = 0;
    uint32_t id = kNoId;
  };
  uint32_t FindLongText(std::string_view text) const;
  uint32_t FindSpelling(std::string_view text) const;
  uint32_t FindAny(std::initializer_list<std::string_view> spellings) const;
  void IndexNumbers();
  Slot KeyOf(std::string_view text) const;

  std::vector<std::string> texts_;
  DataType learnt_ = DataType::kText;
  bool any_case_ = false;
  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  IntegerIndex integers_;
  IntegerIndex doubles_;  // by bit pattern
  uint32_t true_id_ = kNoId;
  uint32_t false_id_ = kNoId;
};

}  // namespace sluice::models
