#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Free text as words. Pure; the same in planning, training and prediction.
namespace sluice::models {

// Words of one cell that are read, at most: what follows says hardly anything new, and a cell may
// be a whole book.
inline constexpr size_t kMostWordsOfCell = 20'000;

// The words of a text in UTF-8, in lower case: runs of letters and digits (an apostrophe inside is
// left out: "don't" is "dont"), every ideograph and every sign of money by itself. A number of more
// than four digits is followed by a word for its length: such numbers hardly ever occur twice, but
// that there is one says much.
std::vector<std::string> WordsOf(std::string_view text);

// How many words a reader would count: what blanks separate and a letter is in, and two ideographs
// for one. No further than `most`.
size_t CountWords(std::string_view text, size_t most);

// The buckets, below `buckets`, of all runs of 1 to `longest_run` words: ascending, one as often as
// it occurs.
std::vector<uint32_t> WordBuckets(std::string_view text, uint32_t longest_run, uint32_t buckets);

}  // namespace sluice::models
