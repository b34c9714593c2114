#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/letter_case.h"
#include "planner/derive_internal.h"

namespace sluice::planner {
namespace {

using models::Categorizer;
using models::ColumnFormatKind;
using models::Feature;
using Kind = ColumnSpec::Kind;

// Larger vocabularies cost more in every copy of the plan than hashing costs in collisions.
constexpr size_t kLargestVocabulary = 1000;
// Integers up to here are used as ids directly; larger ones would make a table of mostly empty
// rows.
constexpr double kLargestIdentity = 1'000'000;
constexpr uint32_t kMinHashes = 1024;
constexpr uint32_t kMaxHashes = 1U << 20U;
// Members of a CROSS are hashed before they are crossed, into a range wide enough not to collide.
constexpr uint32_t kMemberHashes = 1U << 30U;

// Two values that differ in the case of their letters only. Of words: of single letters the case
// may be what they differ in.
std::optional<std::pair<std::string, std::string>> SameInAnyCase(
    const std::vector<std::string>& values) {
  std::map<std::string, std::string> seen;
  for (const std::string& value : values) {
    const std::string_view word = models::TrimBlanks(value);
    const auto [place, is_new] = seen.try_emplace(LowerAscii(word), value);
    if (!is_new && word.size() > 1) {
      return std::pair(place->second, value);
    }
  }
  return std::nullopt;
}

std::vector<std::string> InLowerCase(const std::vector<std::string>& values) {
  std::vector<std::string> lower;
  std::set<std::string> seen;
  for (const std::string& value : values) {
    std::string folded = LowerAscii(models::TrimBlanks(value));
    if (seen.insert(folded).second) {
      lower.push_back(std::move(folded));
    }
  }
  return lower;
}

}  // namespace

void FillVocabulary(std::vector<std::string> vocabulary, Categorizer* categorizer) {
  const auto size = static_cast<int64_t>(vocabulary.size());
  categorizer->set_kind(Categorizer::VOCABULARY);
  for (std::string& value : vocabulary) {
    *categorizer->add_vocabulary() = std::move(value);
  }
  categorizer->set_oov_bucket(size);
  categorizer->set_null_bucket(size + 1);
  categorizer->set_buckets(static_cast<uint32_t>(size + 2));
}

void FillIdentity(uint32_t ids, Categorizer* categorizer) {
  categorizer->set_kind(Categorizer::IDENTITY);
  categorizer->set_oov_bucket(ids);
  categorizer->set_null_bucket(static_cast<int64_t>(ids) + 1);
  categorizer->set_buckets(ids + 2);
}

void FillHash(uint32_t hashes, Categorizer* categorizer) {
  categorizer->set_kind(Categorizer::HASH);
  categorizer->set_oov_bucket(-1);
  categorizer->set_null_bucket(hashes);
  categorizer->set_buckets(hashes + 1);
}

void WithoutNullBucket(Categorizer* categorizer) {
  if (categorizer->null_bucket() >= 0) {
    categorizer->set_null_bucket(-1);
    categorizer->set_buckets(categorizer->buckets() - 1);  // the last bucket is the one for NULL
  }
}

std::vector<std::string> KnownValues(const ColumnFacts& column, size_t limit, double* covered) {
  std::vector<std::string> values;
  *covered = column.statistics.null_fraction;
  for (const auto& [value, fraction] : column.statistics.common_values) {
    if (values.size() == limit) {
      break;
    }
    values.push_back(value);
    *covered += fraction;
  }
  return values;
}

uint32_t HashBuckets(double distinct) {
  const double wanted =
      std::clamp(std::isfinite(distinct) ? 2 * distinct : 0, static_cast<double>(kMinHashes),
                 static_cast<double>(kMaxHashes));
  uint32_t buckets = kMinHashes;
  while (static_cast<double>(buckets) < wanted) {
    buckets *= 2;
  }
  return buckets;
}

uint32_t HashBucketsOf(const catalog::ColumnStatistics& column) {
  // An uncertain estimate must not take a machine's memory in each of many columns.
  constexpr double kMostUncertain = 1U << 17U;
  return HashBuckets(std::max(column.distinct, std::min(column.distinct_at_most, kMostUncertain)));
}

uint32_t EmbeddingDimension(uint32_t buckets) {
  // 8 is enough for every column of the census (16 and 32 reach the same AUC and cost more); large
  // hashed tables have more to distinguish.
  if (buckets > kLargestVocabulary + 2) {
    return 16;
  }
  return std::clamp(static_cast<uint32_t>(std::ceil(1.6 * std::pow(buckets, 0.56))), 2U, 8U);
}

std::vector<double> FeatureMaker::SampleNumbers(const ColumnFacts& column) const {
  std::vector<double> numbers;
  for (const std::vector<Value>& row : input_.statistics.sample) {
    const Value& cell = row[column.index];
    double number = 0;
    if (const auto* flag = std::get_if<bool>(&cell)) {
      number = *flag ? 1 : 0;
    } else if (const auto* integer = std::get_if<int64_t>(&cell)) {
      number = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&cell)) {
      number = *real;
    } else if (const auto* text = std::get_if<std::string>(&cell)) {
      const std::optional<double> parsed =
          column.thousands.empty()
              ? models::ParseNumber(*text)
              : models::ParseGroupedNumber(*text, column.thousands.front(),
                                           column.thousands == "." ? ',' : '.');
      const auto with_unit = column.unit.empty() ? std::nullopt : models::ParseUnitNumber(*text);
      if (!parsed && !with_unit) {
        continue;
      }
      number = parsed ? *parsed : with_unit->number;
    } else {
      continue;
    }
    if (std::isfinite(number)) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Status FeatureMaker::FillBuckets(const ColumnSpec& spec, const ColumnFacts& column,
                                 Categorizer* categorizer) const {
  const bool plain = column.is_number() && column.thousands.empty();
  if (!plain && column.info.type != DataType::kTimestamp) {
    return Wrong(spec, column, fmt::format("{} cuts numbers", ColumnFunctionName(spec.kind)),
                 "CATEGORY_HASH takes any text");
  }
  categorizer->set_kind(Categorizer::BUCKET);
  std::vector<double> boundaries = spec.boundaries;
  if (spec.kind == Kind::kQuantile) {
    const std::vector<double> numbers = SampleNumbers(column);
    for (int64_t i = 1; i < spec.buckets && !numbers.empty(); ++i) {
      const size_t at = numbers.size() * static_cast<size_t>(i) / static_cast<size_t>(spec.buckets);
      if (numbers[at] > (boundaries.empty() ? numbers.front() : boundaries.back())) {
        boundaries.push_back(numbers[at]);
      }
    }
    if (boundaries.empty()) {
      return Wrong(spec, column, "the column has too few distinct numbers to cut", "");
    }
  }
  categorizer->mutable_boundaries()->Add(boundaries.begin(), boundaries.end());
  const auto buckets = static_cast<uint32_t>(boundaries.size() + 1);
  categorizer->set_oov_bucket(-1);
  categorizer->set_null_bucket(buckets);
  categorizer->set_buckets(buckets + 1);
  return OkStatus();
}

// Cells become ids. The shape is how many ids each row has, where all have as many: by DENSE, or as
// the data show. (SPARSE's is the number of values.)
void FeatureMaker::ListIds(const ColumnSpec& tensor, const ColumnFacts& column,
                           models::TensorFormat* format) {
  format->set_sparse(true);
  if (tensor.kind != Kind::kDense) {
    format->clear_shape();
  }
  const models::ColumnFormat& found = column.shape.format;
  if (format->shape_size() == 0 && tensor.kind != Kind::kSparse &&
      found.kind == ColumnFormatKind::kDenseCsv) {
    format->add_shape(found.width);
  }
}

void FeatureMaker::FillVocabularyOf(const ColumnFacts& column, std::vector<std::string> values,
                                    Categorizer* categorizer) {
  if (const auto same = column.is_text() ? SameInAnyCase(values) : std::nullopt) {
    const size_t spellings = values.size();
    values = InLowerCase(values);
    categorizer->set_any_case(true);
    Assume(fmt::format(
        "the {} values of {} are {} in any case: '{}' is '{}'; "
        "INDICATOR(VOCABULARY({})) tells them apart",
        spellings, column.name(), values.size(), same->second, same->first, column.name()));
  }
  FillVocabulary(std::move(values), categorizer);
}

// EMBEDDING(name, 8), INDICATOR(name): the category comes from the data.
Status FeatureMaker::FillPlainCategory(const ColumnSpec& spec, const ColumnFacts& column,
                                       Feature* feature) {
  Categorizer* categorizer = feature->mutable_categorizer();
  if (column.info.type == DataType::kDouble || column.info.type == DataType::kTimestamp ||
      column.info.type == DataType::kBytes) {
    return Wrong(spec, column,
                 fmt::format("column '{}' is a {}, which has no categories", column.name(),
                             DataTypeName(column.info.type)),
                 fmt::format("cut it into some: QUANTILE({}, 10)", column.name()));
  }
  const ColumnFormatKind format = column.shape.format.kind;
  if (column.is_text() && format != ColumnFormatKind::kText &&
      format != ColumnFormatKind::kNumber && format != ColumnFormatKind::kTimestamp) {
    const bool of_ids = format != ColumnFormatKind::kDenseCsv || column.shape.format.integers;
    if (!of_ids) {
      return Wrong(spec, column, "its cells list numbers that are no ids",
                   fmt::format("use it as a tensor: DENSE({})", column.name()));
    }
    ASSIGN_OR_RETURN(*feature->mutable_format(), FormatOf(spec, column));
    ListIds(spec, column, feature->mutable_format());
    feature->set_weighted(format == ColumnFormatKind::kKeyValue);
    FillIdentity(
        static_cast<uint32_t>(std::min<int64_t>(column.shape.format.max_index + 1, INT32_MAX - 2)),
        categorizer);
    WithoutNullBucket(categorizer);
    return OkStatus();
  }
  double covered = 0;
  std::vector<std::string> values = KnownValues(column, kLargestVocabulary, &covered);
  if (column.statistics.distinct <= static_cast<double>(kLargestVocabulary) &&
      (column.statistics.all_values || covered >= kMinCovered)) {
    FillVocabularyOf(column, std::move(values), categorizer);
    return OkStatus();
  }
  if (!column.is_text() && column.statistics.has_range && column.statistics.min >= 0 &&
      column.statistics.max < kLargestIdentity) {
    FillIdentity(static_cast<uint32_t>(column.statistics.max) + 1, categorizer);
    return OkStatus();
  }
  FillHash(HashBucketsOf(column.statistics), categorizer);
  return OkStatus();
}

Status FeatureMaker::FillCategory(const ColumnSpec& category, const ColumnFacts& column,
                                  Feature* feature) {
  Categorizer* categorizer = feature->mutable_categorizer();
  if (category.kind == Kind::kWeighted) {
    feature->set_weighted(true);
    return FillCategory(category.inner[0], column, feature);
  }
  if (category.kind == Kind::kText) {
    if (!column.is_text()) {
      return Wrong(category, column,
                   fmt::format("words are read from text, and '{}' is a {}", column.name(),
                               DataTypeName(column.info.type)),
                   "write the column's name alone");
    }
    FillWords(column, category.buckets, category.longest_run, feature);
    return OkStatus();
  }
  if (category.kind == Kind::kName) {
    return FillPlainCategory(category, column, feature);
  }
  if (category.kind == Kind::kBucket || category.kind == Kind::kQuantile) {
    return FillBuckets(category, column, categorizer);
  }
  const ColumnSpec& inner = category.inner[0];
  const bool tensor = inner.kind == Kind::kDense || inner.kind == Kind::kSparse;
  const ColumnFormatKind format = column.shape.format.kind;
  const bool lists_ids =
      column.is_text() && (tensor || format == ColumnFormatKind::kSparseCsv ||
                           (format == ColumnFormatKind::kDenseCsv && column.shape.format.integers));
  if (lists_ids) {
    ASSIGN_OR_RETURN(*feature->mutable_format(), FormatOf(inner, column));
    ListIds(inner, column, feature->mutable_format());
  } else if (tensor) {
    return Wrong(category, column,
                 fmt::format("a tensor is read from text, and '{}' is a {}", column.name(),
                             DataTypeName(column.info.type)),
                 "write the column's name alone");
  }
  int64_t size = category.buckets;
  if (size == 0 && lists_ids) {
    size = column.shape.format.max_index + 1;  // EMBEDDING(DENSE(c), 8): as large as the data
  }
  if (category.kind == Kind::kVocabulary ||
      (column.is_text() && !lists_ids && category.kind != Kind::kCategoryHash &&
       format != ColumnFormatKind::kNumber)) {
    double covered = 0;
    std::vector<std::string> values =
        KnownValues(column, size > 0 ? static_cast<size_t>(size) : kLargestVocabulary, &covered);
    if (values.empty()) {
      return Wrong(category, column, "the statistics know none of its values",
                   fmt::format("CATEGORY_HASH({}, 1000) needs none", column.name()));
    }
    FillVocabulary(std::move(values), categorizer);
  } else if (category.kind == Kind::kCategoryHash) {
    FillHash(static_cast<uint32_t>(size), categorizer);
  } else if (size > 0) {
    FillIdentity(static_cast<uint32_t>(size), categorizer);
  } else {
    return Wrong(category, column, "its cells hold no ids", "give the number of buckets");
  }
  if (lists_ids) {
    WithoutNullBucket(categorizer);
  }
  return OkStatus();
}

Result<Categorizer> FeatureMaker::MemberOf(const ColumnSpec& member, const ColumnFacts& column) {
  if (member.kind == Kind::kName || member.kind == Kind::kDense) {
    Categorizer categorizer;  // every cell has a hash
    FillHash(kMemberHashes, &categorizer);
    return categorizer;
  }
  Feature scratch;
  RETURN_IF_ERROR(FillCategory(member, column, &scratch));
  if (scratch.format().kind() != models::TensorFormat::NONE) {
    return Wrong(member, column, "a cell that lists several ids cannot be crossed", "");
  }
  return scratch.categorizer();
}

}  // namespace sluice::planner
