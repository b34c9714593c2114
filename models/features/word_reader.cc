#include "models/features/word_reader.h"

#include <algorithm>

#include "base/utf8.h"
#include "models/features/feature_hash_internal.h"

namespace sluice::models {
namespace {

constexpr size_t kLongestPlainNumber = 4;  // years, and amounts that repeat
constexpr size_t kLongestNumberTold = 12;

// Bytes that are not UTF-8 are read one by one.
Utf8Character ReadCharacter(std::string_view text, size_t at) {
  const Utf8Character read = CharacterAt(text, at);
  return read.bytes > 0 ? read : Utf8Character{U'\uFFFD', 1};
}

// For Latin, Greek and Cyrillic; other scripts have no case, or are left unchanged. Independent of
// the machine's locale: a model must mean the same everywhere.
char32_t LowerCharacter(char32_t c) {
  if ((c >= U'A' && c <= U'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) ||
      (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F)) {
    return c + 0x20;
  }
  if (c >= 0x400 && c <= 0x40F) {
    return c + 0x50;
  }
  const bool even_is_capital = (c >= 0x100 && c <= 0x137) || (c >= 0x14A && c <= 0x177) ||
                               (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF);
  if (even_is_capital) {
    return c | 1U;
  }
  const bool odd_is_capital = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E);
  return odd_is_capital && c % 2 == 1 ? c + 1 : c;
}

bool IsDecimalDigit(char32_t c) {
  return c >= U'0' && c <= U'9';
}

bool IsApostrophe(char32_t c) {
  return c == U'\'' || c == 0x2019;
}

bool IsMoney(char32_t c) {
  return c == U'$' || (c >= 0xA2 && c <= 0xA5) || (c >= 0x20A0 && c <= 0x20CF);
}

// Scripts without blanks between words.
bool IsIdeograph(char32_t c) {
  return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x3FFFF);
}

bool IsLetter(char32_t c) {
  if (c < 0x80) {
    return (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z') || c == U'_';
  }
  const bool sign = c < 0xC0 || c == 0xD7 || c == 0xF7 || (c >= 0x2000 && c <= 0x2BFF) ||
                    (c >= 0x3000 && c <= 0x303F) || (c >= 0xFE30 && c <= 0xFE6F) ||
                    (c >= 0xFF00 && c <= 0xFF0F) || c == 0xFFFD;
  return !sign;
}

// Passes each word to `take`, with whether it is a number; stops when `take` returns false.
template <typename Take>
void ForEachWord(std::string_view text, Take take) {
  std::string word;
  bool number = true;
  const auto end_word = [&] {
    const bool more = word.empty() || take(word, number);
    word.clear();
    number = true;
    return more;
  };
  size_t bytes = 0;
  for (size_t at = 0; at < text.size(); at += bytes) {
    const Utf8Character read = ReadCharacter(text, at);
    const char32_t c = read.code;
    bytes = read.bytes;
    if (IsMoney(c) || IsIdeograph(c)) {
      if (!end_word()) {
        return;
      }
      AppendCharacter(c, &word);
      number = false;
      if (!end_word()) {
        return;
      }
    } else if (IsDecimalDigit(c) || IsLetter(c)) {
      number = number && IsDecimalDigit(c);
      AppendCharacter(LowerCharacter(c), &word);
    } else if (!IsApostrophe(c) && !end_word()) {
      return;
    }
  }
  end_word();
}

}  // namespace

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  ForEachWord(text, [&words](const std::string& word, bool number) {
    words.push_back(word);
    if (number && word.size() > kLongestPlainNumber) {
      words.push_back("#" + std::to_string(std::min(word.size(), kLongestNumberTold)));
    }
    return words.size() < kMaxWordsOfCell;
  });
  return words;
}

size_t CountWords(std::string_view text, size_t most) {
  size_t halves = 0;
  bool in_word = false;
  size_t bytes = 0;
  for (size_t at = 0; at < text.size() && halves < 2 * most; at += bytes) {
    const Utf8Character read = ReadCharacter(text, at);
    const char32_t c = read.code;
    bytes = read.bytes;
    if (IsIdeograph(c)) {
      halves += 1;
      in_word = false;
    } else if (c <= U' ') {
      in_word = false;
    } else if (!in_word && IsLetter(c)) {
      halves += 2;
      in_word = true;
    }
  }
  return halves / 2;
}

std::vector<uint32_t> WordBuckets(std::string_view text, uint32_t longest_run, uint32_t buckets) {
  const std::vector<std::string> words = WordsOf(text);
  std::vector<uint32_t> found;
  found.reserve(words.size() * longest_run);
  for (size_t first = 0; first < words.size(); ++first) {
    uint64_t hash = 0;
    for (size_t i = first; i < std::min<size_t>(words.size(), first + longest_run); ++i) {
      hash = MixWords(hash ^ kHashMix, HashTextInline(words[i]) ^ kHashSeed);
      found.push_back(static_cast<uint32_t>(hash % buckets));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace sluice::models
