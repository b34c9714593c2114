#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "planner/derive_internal.h"

namespace sluice::planner {
namespace {

using models::ColumnFormatKind;
using models::Feature;
using models::TensorFormat;
using Kind = ColumnSpec::Kind;

// Limit for the floats of a sparse tensor in every row; larger ones need EMBEDDING.
constexpr int64_t kWidestRequestedTensor = 1 << 16;

std::string CallOf(const ColumnSpec& spec, const ColumnFacts& column) {
  const std::string_view function = ColumnFunctionName(spec.kind);
  return function.empty() ? column.name() : fmt::format("{}({})", function, column.name());
}

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = shape.empty() ? 0 : 1;
  for (const int64_t length : shape) {
    elements *= length;
  }
  return elements;
}

}  // namespace

Status FeatureMaker::Wrong(const ColumnSpec& spec, const ColumnFacts& column, std::string_view what,
                           std::string hint) const {
  return InvalidArgument(fmt::format("{}: {}", CallOf(spec, column), what))
      .At(spec.span)
      .Hint(std::move(hint));
}

// How the cells are split: as the call says, else as the data suggests.
Result<TensorFormat> FeatureMaker::FormatOf(const ColumnSpec& tensor,
                                            const ColumnFacts& column) const {
  const models::ColumnFormat& found = column.shape.format;
  TensorFormat format;
  const bool pairs =
      !tensor.key_value_delimiter.empty() || found.kind == ColumnFormatKind::kKeyValue;
  const bool lists =
      found.kind == ColumnFormatKind::kDenseCsv || found.kind == ColumnFormatKind::kSparseCsv;
  format.set_kind(pairs ? TensorFormat::KEY_VALUE : TensorFormat::CSV);
  if (!tensor.delimiter.empty()) {
    format.set_delimiter(tensor.delimiter);
  } else {
    format.set_delimiter(pairs || lists ? found.delimiter : ",");
  }
  if (pairs) {
    format.set_key_value_delimiter(!tensor.key_value_delimiter.empty() ? tensor.key_value_delimiter
                                   : found.key_value_delimiter.empty() ? ":"
                                                                       : found.key_value_delimiter);
  }
  format.set_sparse(tensor.kind == Kind::kSparse);
  format.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  return format;
}

Status FeatureMaker::AddTensor(const ColumnSpec& spec, const ColumnFacts& column,
                               const FeaturePart& part) {
  const models::ColumnFormat& found = column.shape.format;
  const int64_t asked = ElementsOf(spec.shape);
  if (!column.is_text()) {
    if (spec.kind == Kind::kDense && asked <= 1 && column.is_number()) {
      AddNumber(column, part);  // DENSE(n), DENSE(n, 1): a single number is a tensor of size one
      return OkStatus();
    }
    return Wrong(spec, column,
                 fmt::format("a tensor is read from text, and '{}' is a {}", column.name(),
                             DataTypeName(column.info.type)),
                 "write the column's name alone");
  }
  ASSIGN_OR_RETURN(TensorFormat format, FormatOf(spec, column));
  const bool pairs = format.kind() == TensorFormat::KEY_VALUE;
  if (spec.kind == Kind::kDense) {
    if (pairs) {
      return Wrong(spec, column, "its cells are key:value pairs",
                   fmt::format("write SPARSE({}, {})", column.name(), found.max_index + 1));
    }
    const bool known = found.kind == ColumnFormatKind::kDenseCsv;
    const int64_t width = asked > 0 ? asked : known ? found.width : 0;
    if (width == 0 || (known && found.width != width) ||
        found.kind == ColumnFormatKind::kSparseCsv) {
      return Wrong(
          spec, column,
          known ? fmt::format("its cells hold {} numbers, not {}", found.width, width)
                : "its cells do not all hold equally many numbers",
          fmt::format("for cells of different lengths write SPARSE({}, size)", column.name()));
    }
    Feature* feature = Add(column.name(), {column.index}, part);
    feature->set_kind(Feature::TENSOR);
    feature->set_width(static_cast<uint32_t>(width));
    feature->set_scale(1);
    if (!trees() && known && column.shape.deviation > 0) {
      feature->set_offset(column.shape.mean);
      feature->set_scale(1 / column.shape.deviation);
    }
    *feature->mutable_format() = std::move(format);
    return OkStatus();
  }

  const int64_t size = asked > 0 ? asked : found.max_index + 1;
  if (size <= 0) {
    return Wrong(spec, column, "its size is not known from the data", "give it: SPARSE(column, n)");
  }
  if (found.max_index >= size) {
    return Wrong(spec, column,
                 fmt::format("index {} of the data does not fit {}", found.max_index, size),
                 fmt::format("write SPARSE({}, {}) or more", column.name(), found.max_index + 1));
  }
  if (pairs && size <= kWidestRequestedTensor) {
    Feature* feature = Add(column.name(), {column.index}, part);
    feature->set_kind(Feature::TENSOR);
    feature->set_width(static_cast<uint32_t>(size));
    feature->set_scale(1);
    *feature->mutable_format() = std::move(format);
    return OkStatus();
  }
  // Lists of ids become a multi-hot vector; so do key:value cells that are too wide for floats.
  Feature* feature = Add(column.name(), {column.index}, part);
  feature->set_kind(Feature::CATEGORY);
  feature->set_representation(Feature::INDICATOR);
  feature->set_combiner("sum");
  feature->set_weighted(pairs);
  *feature->mutable_format() = std::move(format);
  FillIdentity(static_cast<uint32_t>(size), feature->mutable_categorizer());
  WithoutNullBucket(feature->mutable_categorizer());
  return OkStatus();
}

Status FeatureMaker::AddScaledNumber(const ColumnSpec& spec, const ColumnFacts& column,
                                     const FeaturePart& part) {
  if (!column.is_number() && column.info.type != DataType::kTimestamp) {
    return Wrong(
        spec, column,
        fmt::format("column '{}' is {}, not a number", column.name(), column.info.database_type),
        fmt::format("text is a category: VOCABULARY({0}) or CATEGORY_HASH({0}, n)", column.name()));
  }
  const bool logarithm = spec.kind == Kind::kLogarithm || spec.inner[0].kind == Kind::kLogarithm;
  const NumberFacts facts = NumbersOf(column, logarithm);
  Feature* feature = Add(column.name(), {column.index}, part);
  feature->set_kind(Feature::NUMERIC);
  FillSpelling(column, feature);
  feature->set_logarithm(logarithm);
  feature->set_null_indicator(column.has_null() && !trees());
  AllowOddCells(column);
  if (trees()) {
    Centre(column, feature);
  }
  if (feature->centred()) {
    return OkStatus();
  }
  if (spec.kind == Kind::kNormalize) {
    feature->set_offset(facts.min);
    feature->set_scale(facts.max > facts.min ? 1 / (facts.max - facts.min) : 1);
  } else {
    feature->set_offset(facts.mean);
    feature->set_scale(1 / facts.deviation);
  }
  return OkStatus();
}

Status FeatureMaker::AddCategory(const ColumnSpec& spec, const ColumnFacts& column,
                                 const FeaturePart& part) {
  const bool wrapped = spec.kind == Kind::kEmbedding || spec.kind == Kind::kIndicator;
  const ColumnSpec& category = wrapped ? spec.inner[0] : spec;
  Feature made;
  RETURN_IF_ERROR(FillCategory(category, column, &made));
  const bool buckets = category.kind == Kind::kBucket || category.kind == Kind::kQuantile;
  Feature* feature = Add(buckets ? column.name() + "_bucket" : column.name(), {column.index}, part);
  made.set_name(feature->name());
  *made.mutable_inputs() = feature->inputs();
  made.set_part(feature->part());
  made.set_tower(feature->tower());
  made.set_kind(Feature::CATEGORY);
  *feature = std::move(made);
  if (buckets) {
    AllowOddCells(column);
  }
  if (spec.kind == Kind::kEmbedding) {
    feature->set_representation(Feature::EMBEDDING);
    feature->set_dimension(spec.dimension);
    feature->set_combiner(spec.combiner);
    feature->set_initializer(spec.initializer);
  } else if (spec.kind == Kind::kIndicator) {
    feature->set_representation(Feature::INDICATOR);
    feature->set_combiner("sum");
  } else {
    Represent(feature, "sum");  // a plain category: represent it as suits the model
  }
  return OkStatus();
}

Status FeatureMaker::AddCross(const ColumnSpec& spec, const ColumnSpec* embedding,
                              const std::vector<size_t>& columns, const FeaturePart& part) {
  models::Categorizer cross;
  cross.set_kind(models::Categorizer::CROSS);
  cross.set_buckets(static_cast<uint32_t>(spec.buckets));
  cross.set_null_bucket(-1);
  cross.set_oov_bucket(-1);
  std::string name;
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnFacts column = FactsOf(columns[i]);
    ASSIGN_OR_RETURN(*cross.add_members(), MemberOf(spec.inner[i], column));
    name += (name.empty() ? "" : "_x_") + column.name();
  }
  Feature* feature = Add(name, columns, part);
  *feature->mutable_categorizer() = std::move(cross);
  Represent(feature, "sum");
  if (embedding != nullptr && embedding->kind == Kind::kEmbedding) {
    feature->set_representation(Feature::EMBEDDING);
    feature->set_dimension(embedding->dimension);
    feature->set_combiner(embedding->combiner);
    feature->set_initializer(embedding->initializer);
  } else if (embedding != nullptr) {
    feature->set_representation(Feature::INDICATOR);
    feature->clear_dimension();
    feature->clear_initializer();
  }
  return OkStatus();
}

Status FeatureMaker::AddRequested(const ColumnSpec& spec, const ColumnFacts& column,
                                  const FeaturePart& part) {
  switch (spec.kind) {
    case Kind::kStar:
    case Kind::kName:
      return AddDerived(column, part, spec.span);
    case Kind::kDense:
    case Kind::kSparse:
      return AddTensor(spec, column, part);
    case Kind::kNormalize:
    case Kind::kStandardize:
    case Kind::kLogarithm:
      return AddScaledNumber(spec, column, part);
    case Kind::kBucket:
    case Kind::kQuantile:
    case Kind::kCategoryId:
    case Kind::kSequenceCategoryId:
    case Kind::kCategoryHash:
    case Kind::kVocabulary:
    case Kind::kWeighted:
    case Kind::kEmbedding:
    case Kind::kIndicator:
    case Kind::kText:
      return AddCategory(spec, column, part);
    case Kind::kCross:
      break;  // has several columns: AddCross
  }
  return OkStatus();
}

}  // namespace sluice::planner
