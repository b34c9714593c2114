#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "models/features/cell_format.h"
#include "models/features/text_words_internal.h"
#include "models/features/word_reader.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr uint32_t kLongestRun = 5;  // longer sequences hardly ever repeat

bool IsWeight(float weight) {
  return std::isfinite(weight) && weight >= 0;
}

}  // namespace

Result<WordFeature> WordFeature::Make(const Feature& feature, std::string column) {
  WordFeature made;
  made.column_ = std::move(column);
  const FreeText& words = feature.words();
  const Categorizer& categorizer = feature.categorizer();
  if (categorizer.kind() != Categorizer::HASH) {
    return InvalidArgument("words are hashed, and its categorizer does something else");
  }
  if (words.longest_run() < 1 || words.longest_run() > kLongestRun) {
    return InvalidArgument(
        fmt::format("runs of {} words: expected 1 to {}", words.longest_run(), kLongestRun));
  }
  made.longest_run_ = words.longest_run();
  made.null_bucket_ = categorizer.null_bucket();
  made.hashes_ = categorizer.buckets();
  if (made.null_bucket_ >= 0) {
    if (made.hashes_ < 2 || made.null_bucket_ != int64_t{made.hashes_} - 1) {
      return InvalidArgument("the bucket of NULL must be the last of several");
    }
    --made.hashes_;
  }
  made.common_buckets_.assign(words.common_buckets().begin(), words.common_buckets().end());
  made.common_weights_.assign(words.common_weights().begin(), words.common_weights().end());
  made.rare_weight_ = words.rare_weight();
  const std::vector<uint32_t>& common = made.common_buckets_;
  if (made.hashes_ == 0 || made.common_weights_.size() != common.size() ||
      !IsWeight(made.rare_weight_) ||
      !std::all_of(made.common_weights_.begin(), made.common_weights_.end(), IsWeight) ||
      !std::is_sorted(common.begin(), common.end(), std::less_equal<>()) ||
      (!common.empty() && common.back() >= made.hashes_)) {
    return InvalidArgument(fmt::format(
        "the weights of its {} common words are not one of each of {} buckets, in order",
        common.size(), made.hashes_));
  }
  return made;
}

float WordFeature::WeightOf(uint32_t bucket) const {
  const auto found = std::lower_bound(common_buckets_.begin(), common_buckets_.end(), bucket);
  return found != common_buckets_.end() && *found == bucket
             ? common_weights_[static_cast<size_t>(found - common_buckets_.begin())]
             : rare_weight_;
}

Status WordFeature::Apply(const RowBatch::Column& column, size_t rows, IdSlot* slot) const {
  if (column.type != DataType::kText && column.type != DataType::kBytes) {
    return InvalidArgument(fmt::format("column '{}' holds {}, but the model was trained on texts",
                                       column_, DataTypeName(column.type)));
  }
  slot->ids.clear();
  slot->weights.clear();
  slot->ends.resize(rows);
  for (size_t row = 0; row < rows; ++row) {
    const bool missing = column.null[row] != 0 || TrimBlanks(column.texts[row]).empty();
    if (missing && null_bucket_ >= 0) {
      slot->ids.push_back(static_cast<uint32_t>(null_bucket_));
      slot->weights.push_back(1);
    }
    if (!missing) {
      const std::vector<uint32_t> found = WordBuckets(column.texts[row], longest_run_, hashes_);
      const size_t first = slot->ids.size();
      double squares = 0;
      for (size_t i = 0; i < found.size();) {
        size_t end = i;
        while (end < found.size() && found[end] == found[i]) {
          ++end;
        }
        const double weight = (1 + std::log(static_cast<double>(end - i))) * WeightOf(found[i]);
        squares += weight * weight;
        slot->ids.push_back(found[i]);
        slot->weights.push_back(static_cast<float>(weight));
        i = end;
      }
      const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
      for (size_t i = first; i < slot->weights.size(); ++i) {
        slot->weights[i] = static_cast<float>(slot->weights[i] * scale);
      }
    }
    slot->ends[row] = static_cast<uint32_t>(slot->ids.size());
  }
  return OkStatus();
}

}  // namespace sluice::models
