#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "models/features/word_reader.h"
#include "planner/derive_internal.h"
#include "planner/free_text.h"

namespace sluice::planner {
namespace {

using models::Feature;

// Most columns of names and titles have fewer words, most columns of sentences more.
constexpr double kMinWords = 2;
// With fewer distinct values it is a vocabulary.
constexpr double kMinTexts = 20;
constexpr double kMinDistinctShare = 0.3;
constexpr double kMaxPhrases = 1000;

// Share of texts with repeated pieces, among unrepeated texts, above which the pieces are used.
constexpr double kRepeatedPieces = 0.3;
constexpr double kMinPieces = 2;
// A piece in more than this share of the cells is a prefix, like the A of 'A-10027'.
constexpr double kShareOfAFixedPiece = 0.95;
constexpr double kUniqueShare = 0.95;
constexpr double kMinRowsOfPieces = 100;

constexpr uint32_t kWordBuckets = 1U << 16U;
// Each is a column of a tree's histogram; single words only, to limit collisions.
constexpr uint32_t kTreeWordBuckets = 1U << 12U;
constexpr uint32_t kWordRun = 2;
// Words whose weights are stored with the model; all rarer words share one weight.
constexpr size_t kMaxCommonWords = 8192;

}  // namespace

bool IsFreeText(const TextShape& shape, const catalog::ColumnStatistics& statistics, double rows) {
  if (shape.format.kind != models::ColumnFormatKind::kText || shape.words < kMinWords) {
    return false;
  }
  const double present = rows * std::max(0.0, 1 - statistics.null_fraction);
  return statistics.distinct > kMaxPhrases ||
         (statistics.distinct >= kMinTexts && statistics.distinct >= kMinDistinctShare * present);
}

std::vector<std::string> TextsOf(const std::vector<std::vector<Value>>& sample, size_t column) {
  std::vector<std::string> texts;
  texts.reserve(sample.size());
  for (const std::vector<Value>& row : sample) {
    if (const auto* text = std::get_if<std::string>(&row[column])) {
      texts.push_back(*text);
    }
  }
  return texts;
}

bool HasRepeatedPieces(const std::vector<std::string>& cells) {
  std::map<std::string, size_t> rows_with;
  for (const std::string& cell : cells) {
    const std::vector<std::string> words = models::WordsOf(cell);
    for (const std::string& word : std::set<std::string>(words.begin(), words.end())) {
      if (!word.starts_with('#')) {  // its length
        ++rows_with[word];
      }
    }
  }
  const auto cell_count = static_cast<double>(cells.size());
  size_t all = 0;
  size_t told = 0;  // pieces that distinguish some rows from others
  for (const auto& [word, rows] : rows_with) {
    all += rows;
    const bool everywhere = static_cast<double>(rows) > kShareOfAFixedPiece * cell_count;
    told += rows > 1 && !everywhere ? rows : 0;
  }
  return static_cast<double>(all) >= kMinPieces * cell_count &&
         static_cast<double>(told) >= kRepeatedPieces * static_cast<double>(all);
}

bool AreListsOfTexts(const std::vector<std::string>& cells) {
  bool any = false;
  for (const std::string& cell : cells) {
    const std::string_view text = models::TrimBlanks(cell);
    if (text.empty()) {
      continue;
    }
    any = true;
    if (text.size() < 2 || !((text.front() == '[' && text.back() == ']') ||
                             (text.front() == '{' && text.back() == '}'))) {
      return false;
    }
  }
  return any;
}

bool FeatureMaker::IsFreeText(const ColumnFacts& column) const {
  const auto rows = static_cast<double>(input_.statistics.rows);
  if (!column.is_text() || planner::IsFreeText(column.shape, column.statistics, rows)) {
    return column.is_text();
  }
  const std::vector<std::string> cells = TextsOf(input_.statistics.sample, column.index);
  return AreListsOfTexts(cells) ||
         (rows >= kMinRowsOfPieces && column.statistics.distinct >= kUniqueShare * rows &&
          HasRepeatedPieces(cells));
}

void FeatureMaker::FillWords(const ColumnFacts& column, int64_t buckets, uint32_t longest_run,
                             Feature* feature) const {
  const uint32_t hashes = buckets > 0 ? static_cast<uint32_t>(buckets)
                          : trees()   ? kTreeWordBuckets
                                      : kWordBuckets;
  FillHash(hashes, feature->mutable_categorizer());
  if (!column.has_null()) {
    WithoutNullBucket(feature->mutable_categorizer());
  }
  feature->mutable_format()->set_kind(models::TensorFormat::TEXT);
  feature->set_weighted(true);
  models::FreeText* words = feature->mutable_words();
  words->set_longest_run(longest_run > 0 ? longest_run : trees() ? 1 : kWordRun);

  // The number of the sample's rows that have each bucket.
  std::vector<uint32_t> counts(hashes, 0);
  double cells = 0;
  for (const std::vector<Value>& row : input_.statistics.sample) {
    const auto* text = std::get_if<std::string>(&row[column.index]);
    if (text == nullptr || models::TrimBlanks(*text).empty()) {
      continue;
    }
    cells += 1;
    std::vector<uint32_t> found = models::WordBuckets(*text, words->longest_run(), hashes);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (const uint32_t bucket : found) {
      ++counts[bucket];
    }
  }
  std::vector<uint32_t> common;
  for (uint32_t bucket = 0; bucket < hashes; ++bucket) {
    if (counts[bucket] > 1) {
      common.push_back(bucket);
    }
  }
  if (common.size() > kMaxCommonWords) {
    std::nth_element(common.begin(), common.begin() + kMaxCommonWords, common.end(),
                     [&counts](uint32_t a, uint32_t b) {
                       return counts[a] != counts[b] ? counts[a] > counts[b] : a < b;
                     });
    common.resize(kMaxCommonWords);
    std::sort(common.begin(), common.end());
  }
  const auto weight = [cells](uint32_t rows) {
    return static_cast<float>(1 + std::log((1 + cells) / (1 + static_cast<double>(rows))));
  };
  words->set_rare_weight(weight(1));
  for (const uint32_t bucket : common) {
    words->add_common_buckets(bucket);
    words->add_common_weights(weight(counts[bucket]));
  }
}

void FeatureMaker::AddWords(const ColumnFacts& column, const FeaturePart& part) {
  Feature* feature = Add(column.name(), {column.index}, part);
  FillWords(column, 0, 0, feature);
  Represent(feature, "sum");
}

}  // namespace sluice::planner
