#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Splits free text into words. Pure; the same in planning, training and prediction.
namespace sluice::models {

// Limit of words per cell: further ones add hardly anything, and a cell may be a whole book.
inline constexpr size_t kMaxWordsOfCell = 20'000;

// The words of a UTF-8 text in lower case: runs of letters and digits (an apostrophe inside is
// dropped: "don't" becomes "dont"); each ideograph and currency sign is a word of its own. A number
// with more than four digits is followed by a word for its length, since such numbers hardly ever
// repeat but their presence says much.
std::vector<std::string> WordsOf(std::string_view text);

// The number of words as a reader would count them: pieces between blanks that contain a letter,
// and two ideographs as one. Stops at `most`.
size_t CountWords(std::string_view text, size_t most);

// The buckets, below `buckets`, of all sequences of 1 to `longest_run` words: ascending, repeated
// as often as they occur.
std::vector<uint32_t> WordBuckets(std::string_view text, uint32_t longest_run, uint32_t buckets);

}  // namespace sluice::models
