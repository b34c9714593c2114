#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "models/features/categorizer_internal.h"
#include "models/model.pb.h"

// Which categorizers can stand for a column: a stored plan may hold any.
namespace sluice::models {

Result<CellCategorizer> CellCategorizer::Make(const Categorizer& spec, const InputColumn& column) {
  CellCategorizer made;
  const std::string time_format =
      spec.kind() == Categorizer::TIME_PART ? column.time_format() : std::string();
  const std::optional<TimeFormat> format = FindTimeFormat(time_format);
  if (!format) {
    return InvalidArgument(fmt::format("times written as '{}'", time_format));
  }
  made.time_format_ = *format;
  made.column_ = column.name();
  made.learnt_ = static_cast<DataType>(column.type());
  made.odd_is_missing_ = column.odd_is_missing();
  made.buckets_ = spec.buckets();
  const int64_t buckets = spec.buckets();
  if (buckets == 0 || spec.buckets() == kNoId) {
    return InvalidArgument(fmt::format("{} buckets: expected 1 to {}", buckets, kNoId - 1));
  }
  for (const int64_t id : {spec.null_bucket(), spec.oov_bucket()}) {
    if (id < -1 || id >= buckets) {
      return InvalidArgument(fmt::format("bucket {} is not one of {}", id, buckets));
    }
  }
  made.null_id_ = spec.null_bucket() < 0 ? kNoId : static_cast<uint32_t>(spec.null_bucket());
  made.oov_id_ = spec.oov_bucket() < 0 ? kNoId : static_cast<uint32_t>(spec.oov_bucket());
  // If the buckets of NULL and of unseen values are at the end, values never fall into them.
  made.value_buckets_ = made.buckets_;
  while (made.value_buckets_ > 1 &&
         (made.value_buckets_ - 1 == made.null_id_ || made.value_buckets_ - 1 == made.oov_id_)) {
    --made.value_buckets_;
  }
  switch (spec.kind()) {
    case Categorizer::VOCABULARY:
      made.kind_ = Kind::kVocabulary;
      if (spec.vocabulary_size() > buckets) {
        return InvalidArgument(
            fmt::format("{} values for {} buckets", spec.vocabulary_size(), buckets));
      }
      RETURN_IF_ERROR(made.vocabulary_.Build({spec.vocabulary().begin(), spec.vocabulary().end()},
                                             made.learnt_, spec.any_case()));
      return made;
    case Categorizer::IDENTITY:
      made.kind_ = Kind::kIdentity;
      return made;
    case Categorizer::HASH:
      made.kind_ = Kind::kHash;
      return made;
    case Categorizer::BUCKET:
      made.kind_ = Kind::kBucket;
      made.boundaries_.assign(spec.boundaries().begin(), spec.boundaries().end());
      if (!std::all_of(made.boundaries_.begin(), made.boundaries_.end(),
                       [](double boundary) { return std::isfinite(boundary); }) ||
          !std::is_sorted(made.boundaries_.begin(), made.boundaries_.end(), std::less_equal<>()) ||
          spec.boundaries_size() + 1 > buckets) {
        return InvalidArgument(
            fmt::format("{} boundaries must be numbers, ascend and be fewer than {} buckets",
                        spec.boundaries_size(), buckets));
      }
      return made;
    case Categorizer::TIME_PART: {
      made.kind_ = Kind::kTimePart;
      ASSIGN_OR_RETURN(made.time_part_, FindTimePart(spec.time_part()));
      if (buckets < TimePartValues(made.time_part_)) {
        return InvalidArgument(fmt::format("'{}' needs {} buckets, not {}", spec.time_part(),
                                           TimePartValues(made.time_part_), buckets));
      }
      return made;
    }
    default:
      return InvalidArgument(
          fmt::format("categorizer {} cannot stand for one column", static_cast<int>(spec.kind())));
  }
}

}  // namespace sluice::models
