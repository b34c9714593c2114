#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/letter_case.h"
#include "parser/printer.h"
#include "planner/column_call_internal.h"
#include "planner/column_function.h"
#include "planner/expression_value.h"

namespace sluice::planner {
namespace {

using parser::Expression;
using Kind = ColumnSpec::Kind;

// A table with more rows cannot be addressed by 32-bit ids.
constexpr int64_t kMaxBuckets = std::numeric_limits<int32_t>::max() - 2;
// Wider than any embedding that is known to help; larger values are typing errors.
constexpr int64_t kWidestEmbedding = 4096;
// Boundaries of one BUCKET; they are searched binarily, so this only limits the plan's size.
constexpr size_t kMaxBoundaries = 10'000;
// Elements of one tensor cell, and the columns of one CROSS.
constexpr int64_t kLargestTensor = 1'000'000;
// Trees have one column for each bucket, and no language has more words.
constexpr int64_t kMaxWordBuckets = 1 << 20;
constexpr int64_t kLongestWordRun = 5;  // longer sequences hardly ever repeat
constexpr size_t kMaxCrossed = 10;

// Reads one call; every error quotes it.
class Reader {
 public:
  Reader(const Expression& call, const ColumnFunction& function)
      : call_(call), function_(function) {}

  Result<ColumnSpec> Read();

 private:
  Status Wrong(const Expression& where, std::string_view what) const {
    return InvalidArgument(fmt::format("{}: {}", parser::Print(call_), what))
        .At(where.span.valid() ? where.span : call_.span)
        .Hint(fmt::format("write {}", function_.usage));
  }
  Result<int64_t> Size(const Expression& argument, std::string_view what, int64_t most) const;
  Result<ColumnSpec> Argument(const Expression& argument) const;
  // Reads an argument, which must be one of `kinds`.
  Result<ColumnSpec> Argument(const Expression& argument, std::initializer_list<Kind> kinds) const;

  Status ReadTensor(ColumnSpec* spec) const;
  Status ReadShape(const Expression& argument, ColumnSpec* spec) const;
  Status ReadKeyValue(ColumnSpec* spec) const;
  Status ReadBucket(ColumnSpec* spec) const;
  Status ReadQuantile(ColumnSpec* spec) const;
  Status ReadCategory(ColumnSpec* spec) const;
  Status ReadWeighted(ColumnSpec* spec) const;
  Status ReadCross(ColumnSpec* spec) const;
  Status ReadEmbedding(ColumnSpec* spec) const;
  Status ReadNumeric(ColumnSpec* spec) const;
  Status ReadText(ColumnSpec* spec) const;

  const Expression& call_;
  const ColumnFunction& function_;
};

Result<int64_t> Reader::Size(const Expression& argument, std::string_view what,
                             int64_t most) const {
  const std::optional<int64_t> size = IntegerOf(argument);
  if (!size || *size < 1 || *size > most) {
    return Wrong(argument, fmt::format("{} must be an integer from 1 to {}, not {}", what, most,
                                       parser::Print(argument)));
  }
  return *size;
}

Result<ColumnSpec> Reader::Argument(const Expression& argument) const {
  const Expression& inner = WithoutParentheses(argument);
  ColumnSpec spec;
  spec.span = inner.span;
  if (inner.kind == Expression::Kind::kName) {
    spec.name = inner.text;
    return spec;
  }
  if (inner.kind == Expression::Kind::kString) {
    spec.name = inner.text;
    spec.pattern = true;
    return spec;
  }
  if (inner.kind == Expression::Kind::kCall) {
    return ReadColumn(inner);
  }
  return Wrong(argument, fmt::format("expected a column, not {}", parser::Print(argument)));
}

Result<ColumnSpec> Reader::Argument(const Expression& argument,
                                    std::initializer_list<Kind> kinds) const {
  ASSIGN_OR_RETURN(ColumnSpec spec, Argument(argument));
  if (std::find(kinds.begin(), kinds.end(), spec.kind) == kinds.end()) {
    return Wrong(argument, fmt::format("{} is not allowed here", parser::Print(argument)));
  }
  return spec;
}

Status Reader::ReadShape(const Expression& argument, ColumnSpec* spec) const {
  const Expression& inner = WithoutParentheses(argument);
  const std::optional<std::string> word = WordOf(inner);
  if (word && LowerAscii(*word) == "none") {
    return OkStatus();
  }
  std::vector<Expression> sizes = {inner};
  if (inner.kind == Expression::Kind::kList) {
    sizes = inner.args;
  }
  int64_t elements = 1;
  for (const Expression& size : sizes) {
    ASSIGN_OR_RETURN(const int64_t length, Size(size, "the shape", kLargestTensor));
    elements *= length;
    if (elements > kLargestTensor && spec->kind == Kind::kDense) {
      return Wrong(argument, fmt::format("a tensor has at most {} elements", kLargestTensor));
    }
    elements = std::min(elements, kLargestTensor);
    spec->shape.push_back(length);
  }
  if (spec->shape.empty()) {
    return Wrong(argument, "the shape must not be empty");
  }
  return OkStatus();
}

Status Reader::ReadTensor(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(const ColumnSpec column, Argument(call_.args[0], {Kind::kName}));
  spec->name = column.name;
  spec->pattern = column.pattern;
  if (call_.args.size() > 1) {
    // A sparse tensor's size is just the number of ids, so it may be as large as a table.
    if (spec->kind == Kind::kSparse && IntegerOf(call_.args[1])) {
      ASSIGN_OR_RETURN(const int64_t size, Size(call_.args[1], "the size", kMaxBuckets));
      spec->shape = {size};
    } else {
      RETURN_IF_ERROR(ReadShape(call_.args[1], spec));
    }
  }
  if (call_.args.size() > 2) {
    const std::optional<std::string> delimiter = WordOf(call_.args[2]);
    if (!delimiter) {
      return Wrong(call_.args[2], "the delimiter must be a string or COMMA");
    }
    spec->delimiter = UpperAscii(*delimiter) == "COMMA" ? "," : *delimiter;
  }
  if (call_.args.size() > 3) {
    const std::string type = LowerAscii(WordOf(call_.args[3]).value_or(""));
    if (type == "int" || type == "int64" || type == "int32") {
      spec->element = ColumnSpec::ElementType::kInteger;
    } else if (type == "string") {
      spec->element = ColumnSpec::ElementType::kText;
    } else if (type != "float" && type != "float32") {
      return Wrong(call_.args[3], fmt::format("a type of elements is int, float or string, not {}",
                                              parser::Print(call_.args[3])));
    }
  }
  return call_.args.size() > 4 ? ReadKeyValue(spec) : OkStatus();
}

Status Reader::ReadKeyValue(ColumnSpec* spec) const {
  const std::optional<std::string> delimiter = WordOf(call_.args[4]);
  if (!delimiter || delimiter->empty()) {
    return Wrong(call_.args[4], "the key-value delimiter must be a string");
  }
  spec->key_value_delimiter = UpperAscii(*delimiter) == "COMMA" ? "," : *delimiter;
  if (spec->element != ColumnSpec::ElementType::kInteger) {
    return Wrong(call_.args[3], "the keys of a key:value list must be \"int\"");
  }
  if (call_.args.size() > 5) {
    const std::string type = LowerAscii(WordOf(call_.args[5]).value_or(""));
    if (type != "float" && type != "float32") {
      return Wrong(call_.args[5], "the weights of a key:value list must be \"float\"");
    }
    spec->weighted_elements = true;
  }
  return OkStatus();
}

Status Reader::ReadBucket(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(ColumnSpec column, Argument(call_.args[0], {Kind::kName, Kind::kDense}));
  spec->inner.push_back(std::move(column));
  const Expression& second = WithoutParentheses(call_.args[1]);
  const bool list = second.kind == Expression::Kind::kList;
  if (list && (second.args.empty() || second.args.size() > kMaxBoundaries)) {
    return Wrong(second, fmt::format("expected 1 to {} boundaries", kMaxBoundaries));
  }
  for (const Expression& argument : list ? second.args : std::vector<Expression>{second}) {
    const std::optional<double> boundary = NumberOf(argument);
    if (!boundary) {
      return Wrong(argument,
                   fmt::format("a boundary must be a number, not {}", parser::Print(argument)));
    }
    if (!spec->boundaries.empty() && *boundary <= spec->boundaries.back()) {
      return Wrong(argument, "the boundaries must be in strictly ascending order");
    }
    spec->boundaries.push_back(*boundary);
  }
  return OkStatus();
}

Status Reader::ReadQuantile(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(ColumnSpec column, Argument(call_.args[0], {Kind::kName, Kind::kDense}));
  spec->inner.push_back(std::move(column));
  ASSIGN_OR_RETURN(spec->buckets, Size(call_.args[1], "the number of buckets", kMaxBoundaries));
  return spec->buckets < 2 ? Wrong(call_.args[1], "there must be at least 2 buckets") : OkStatus();
}

Status Reader::ReadCategory(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(ColumnSpec column,
                   Argument(call_.args[0], {Kind::kName, Kind::kDense, Kind::kSparse}));
  spec->inner.push_back(std::move(column));
  if (call_.args.size() > 1) {
    ASSIGN_OR_RETURN(spec->buckets, Size(call_.args[1], "the number of buckets", kMaxBuckets));
  }
  // SQLFlow's statements may say a delimiter, which has no effect there: the data show it.
  if (call_.args.size() > 2 && !WordOf(call_.args[2])) {
    return Wrong(call_.args[2], "the delimiter must be a string or COMMA");
  }
  return OkStatus();
}

// A tensor used as a category becomes its CATEGORY_ID, as large as its shape (or the data) says.
ColumnSpec CategoryOfTensor(ColumnSpec tensor) {
  ColumnSpec category;
  category.kind = Kind::kCategoryId;
  category.span = tensor.span;
  category.buckets = tensor.kind == Kind::kSparse && tensor.shape.size() == 1 ? tensor.shape[0] : 0;
  category.inner.push_back(std::move(tensor));
  return category;
}

ColumnSpec Weighted(ColumnSpec category) {
  ColumnSpec weighted;
  weighted.kind = Kind::kWeighted;
  weighted.span = category.span;
  weighted.inner.push_back(std::move(category));
  return weighted;
}

Status Reader::ReadWeighted(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(
      ColumnSpec category,
      Argument(call_.args[0], {Kind::kCategoryId, Kind::kCategoryHash, Kind::kSparse}));
  if (category.kind == Kind::kSparse) {
    category = CategoryOfTensor(std::move(category));
  }
  const ColumnSpec& tensor = category.inner[0];
  if (tensor.kind != Kind::kSparse || tensor.key_value_delimiter.empty()) {
    return Wrong(call_.args[0],
                 "weights come from key:value cells: SPARSE with a key-value delimiter");
  }
  spec->inner.push_back(std::move(category));
  return OkStatus();
}

Status Reader::ReadCross(ColumnSpec* spec) const {
  const Expression& list = WithoutParentheses(call_.args[0]);
  if (list.kind != Expression::Kind::kList || list.args.size() < 2 ||
      list.args.size() > kMaxCrossed) {
    return Wrong(list, fmt::format("expected a list of 2 to {} columns", kMaxCrossed));
  }
  for (const Expression& argument : list.args) {
    ASSIGN_OR_RETURN(
        ColumnSpec member,
        Argument(argument, {Kind::kName, Kind::kDense, Kind::kBucket, Kind::kQuantile,
                            Kind::kCategoryId, Kind::kCategoryHash, Kind::kVocabulary}));
    spec->inner.push_back(std::move(member));
  }
  ASSIGN_OR_RETURN(spec->buckets, Size(call_.args[1], "the number of buckets", kMaxBuckets));
  return OkStatus();
}

Status Reader::ReadEmbedding(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(
      ColumnSpec category,
      Argument(call_.args[0],
               {Kind::kName, Kind::kDense, Kind::kSparse, Kind::kBucket, Kind::kQuantile,
                Kind::kCategoryId, Kind::kSequenceCategoryId, Kind::kCategoryHash,
                Kind::kVocabulary, Kind::kWeighted, Kind::kCross, Kind::kText}));
  if (category.kind == Kind::kDense || category.kind == Kind::kSparse) {
    const bool weighted = !category.key_value_delimiter.empty();
    category = CategoryOfTensor(std::move(category));
    if (weighted) {
      category = Weighted(std::move(category));
    }
  }
  spec->inner.push_back(std::move(category));
  if (spec->kind == Kind::kIndicator) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const int64_t dimension, Size(call_.args[1], "the dimension", kWidestEmbedding));
  spec->dimension = static_cast<uint32_t>(dimension);
  spec->combiner = "sum";
  if (call_.args.size() > 2) {
    spec->combiner = LowerAscii(WordOf(call_.args[2]).value_or(""));
    if (spec->combiner != "sum" && spec->combiner != "mean" && spec->combiner != "sqrtn") {
      return Wrong(call_.args[2], fmt::format("a combiner is sum, mean or sqrtn, not {}",
                                              parser::Print(call_.args[2])));
    }
  }
  if (call_.args.size() > 3) {
    spec->initializer = LowerAscii(WordOf(call_.args[3]).value_or(""));
    if (spec->initializer != "ones" && spec->initializer != "zeros" &&
        spec->initializer != "uniform" && spec->initializer != "normal") {
      return Wrong(call_.args[3],
                   fmt::format("an initializer is normal, uniform, ones or zeros, not {}",
                               parser::Print(call_.args[3])));
    }
    if (spec->initializer == "normal") {
      spec->initializer.clear();  // the plan leaves out the default's name
    }
  }
  return OkStatus();
}

Status Reader::ReadNumeric(ColumnSpec* spec) const {
  if (spec->kind == Kind::kLogarithm) {
    ASSIGN_OR_RETURN(ColumnSpec column, Argument(call_.args[0], {Kind::kName}));
    spec->inner.push_back(std::move(column));
    return OkStatus();
  }
  ASSIGN_OR_RETURN(ColumnSpec column, Argument(call_.args[0], {Kind::kName, Kind::kLogarithm}));
  spec->inner.push_back(std::move(column));
  return OkStatus();
}

Status Reader::ReadText(ColumnSpec* spec) const {
  ASSIGN_OR_RETURN(const ColumnSpec column, Argument(call_.args[0], {Kind::kName}));
  spec->name = column.name;
  spec->pattern = column.pattern;
  if (call_.args.size() > 1) {
    ASSIGN_OR_RETURN(spec->buckets, Size(call_.args[1], "the number of buckets", kMaxWordBuckets));
  }
  if (call_.args.size() > 2) {
    ASSIGN_OR_RETURN(const int64_t run, Size(call_.args[2], "words in a row", kLongestWordRun));
    spec->longest_run = static_cast<uint32_t>(run);
  }
  return OkStatus();
}

Result<ColumnSpec> Reader::Read() {
  if (call_.args.size() < function_.least_arguments ||
      call_.args.size() > function_.most_arguments) {
    return Wrong(call_, fmt::format("wrong number of arguments ({})", call_.args.size()));
  }
  ColumnSpec spec;
  spec.kind = function_.kind;
  spec.span = call_.span;
  switch (function_.kind) {
    case Kind::kDense:
    case Kind::kSparse:
      RETURN_IF_ERROR(ReadTensor(&spec));
      break;
    case Kind::kBucket:
      RETURN_IF_ERROR(ReadBucket(&spec));
      break;
    case Kind::kQuantile:
      RETURN_IF_ERROR(ReadQuantile(&spec));
      break;
    case Kind::kCategoryId:
    case Kind::kSequenceCategoryId:
    case Kind::kCategoryHash:
    case Kind::kVocabulary:
      RETURN_IF_ERROR(ReadCategory(&spec));
      break;
    case Kind::kWeighted:
      RETURN_IF_ERROR(ReadWeighted(&spec));
      break;
    case Kind::kCross:
      RETURN_IF_ERROR(ReadCross(&spec));
      break;
    case Kind::kEmbedding:
    case Kind::kIndicator:
      RETURN_IF_ERROR(ReadEmbedding(&spec));
      break;
    case Kind::kNormalize:
    case Kind::kStandardize:
    case Kind::kLogarithm:
      RETURN_IF_ERROR(ReadNumeric(&spec));
      break;
    case Kind::kText:
      RETURN_IF_ERROR(ReadText(&spec));
      break;
    case Kind::kStar:
    case Kind::kName:
      break;
  }
  return spec;
}

}  // namespace

Result<ColumnSpec> ReadColumnCall(const Expression& call, const ColumnFunction& function) {
  return Reader(call, function).Read();
}

}  // namespace sluice::planner
