#include "models/features/word_reader.h"

#include <algorithm>

#include "models/features/feature_hash_internal.h"

namespace sluice::models {
namespace {

constexpr size_t kLongestPlainNumber = 4;  // years, and amounts that repeat
constexpr size_t kLongestNumberTold = 12;

// One character and its length in bytes; invalid UTF-8 is read byte by byte.
char32_t ReadCharacter(std::string_view text, size_t at, size_t* bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  const size_t length = first < 0x80                     ? 1
                        : first >= 0xC2 && first < 0xE0  ? 2
                        : first >= 0xE0 && first < 0xF0  ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 1;
  *bytes = 1;
  if (length == 1 || at + length > text.size()) {
    return first < 0x80 ? first : U'\uFFFD';
  }
  char32_t character = first & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) {
      return U'\uFFFD';
    }
    character = (character << 6U) | (byte(i) & 0x3FU);
  }
  *bytes = length;
  return character;
}

void Put(char32_t character, std::string* word) {
  const auto put = [word](char32_t byte) { word->push_back(static_cast<char>(byte)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xC0U | (character >> 6U));
    put(0x80U | (character & 0x3FU));
  } else if (character < 0x10000) {
    put(0xE0U | (character >> 12U));
    put(0x80U | ((character >> 6U) & 0x3FU));
    put(0x80U | (character & 0x3FU));
  } else {
    put(0xF0U | (character >> 18U));
    put(0x80U | ((character >> 12U) & 0x3FU));
    put(0x80U | ((character >> 6U) & 0x3FU));
    put(0x80U | (character & 0x3FU));
  }
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
    const char32_t c = ReadCharacter(text, at, &bytes);
    if (IsMoney(c) || IsIdeograph(c)) {
      if (!end_word()) {
        return;
      }
      Put(c, &word);
      number = false;
      if (!end_word()) {
        return;
      }
    } else if (IsDecimalDigit(c) || IsLetter(c)) {
      number = number && IsDecimalDigit(c);
      Put(LowerCharacter(c), &word);
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
    const char32_t c = ReadCharacter(text, at, &bytes);
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
