#include "planner/column_function.h"

#include "base/letter_case.h"

namespace sluice::planner {
namespace {

using Kind = ColumnSpec::Kind;

constexpr ColumnFunction kFunctions[] = {
    {Kind::kDense, "DENSE",
     "DENSE(column [, shape [, delimiter [, \"float\" | \"int\" | \"string\"]]])", 1, 4},
    {Kind::kSparse, "SPARSE",
     "SPARSE(column, size [, delimiter [, \"int\" | \"float\" [, key-value delimiter [, "
     "\"float\"]]]])",
     1, 6},
    {Kind::kDense, "NUMERIC", "NUMERIC(column, shape)", 2, 2},
    {Kind::kBucket, "BUCKET", "BUCKET(column, [boundary, ...]) or BUCKET(column, boundary)", 2, 2},
    {Kind::kQuantile, "QUANTILE", "QUANTILE(column, buckets)", 2, 2},
    {Kind::kCategoryId, "CATEGORY_ID", "CATEGORY_ID(column | DENSE(...) | SPARSE(...), buckets)", 2,
     3},
    {Kind::kSequenceCategoryId, "SEQ_CATEGORY_ID",
     "SEQ_CATEGORY_ID(column | DENSE(...) | SPARSE(...), buckets)", 2, 3},
    {Kind::kCategoryHash, "CATEGORY_HASH",
     "CATEGORY_HASH(column | DENSE(...) | SPARSE(...), buckets)", 2, 3},
    {Kind::kVocabulary, "VOCABULARY", "VOCABULARY(column [, size])", 1, 2},
    {Kind::kWeighted, "WEIGHTED_CATEGORY",
     "WEIGHTED_CATEGORY(CATEGORY_ID(SPARSE(column, size, \",\", \"int\", \":\", \"float\"), "
     "buckets))",
     1, 1},
    {Kind::kCross, "CROSS", "CROSS([column, column, ...], buckets)", 2, 2},
    {Kind::kEmbedding, "EMBEDDING",
     "EMBEDDING(category | column, dimension [, combiner [, initializer]])", 2, 4},
    {Kind::kIndicator, "INDICATOR", "INDICATOR(category | column)", 1, 1},
    {Kind::kNormalize, "NORMALIZE", "NORMALIZE(column | LOG(column))", 1, 1},
    {Kind::kStandardize, "STANDARDIZE", "STANDARDIZE(column | LOG(column))", 1, 1},
    {Kind::kText, "TEXT", "TEXT(column [, buckets [, words in a row]])", 1, 3},
    {Kind::kLogarithm, "LOG", "LOG(column)", 1, 1},
};

}  // namespace

std::span<const ColumnFunction> ColumnFunctions() {
  return kFunctions;
}

const ColumnFunction* FindColumnFunction(std::string_view name) {
  const std::string wanted = UpperAscii(name);
  for (const ColumnFunction& function : kFunctions) {
    if (function.name == wanted) {
      return &function;
    }
  }
  return nullptr;
}

std::string_view ColumnFunctionName(ColumnSpec::Kind kind) {
  for (const ColumnFunction& function : kFunctions) {
    if (function.kind == kind) {
      return function.name;
    }
  }
  return "";
}

}  // namespace sluice::planner
