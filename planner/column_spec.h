#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::planner {

// One COLUMN expression, typed and checked as far as possible without the data: what the user wants
// to be done with a column. A tree: EMBEDDING contains a category, a category contains a column.
struct ColumnSpec {
  enum class Kind {
    kStar,                // *
    kName,                // a plain column
    kDense,               // DENSE(name, shape, delimiter): a tensor in a text cell
    kSparse,              // SPARSE(name, shape, delimiter, type, key-value delimiter, type)
    kBucket,              // BUCKET(column, boundaries | boundary)
    kQuantile,            // QUANTILE(column, n): n buckets of about equally many rows
    kCategoryId,          // CATEGORY_ID(column, buckets)
    kSequenceCategoryId,  // SEQ_CATEGORY_ID(column, buckets)
    kCategoryHash,        // CATEGORY_HASH(column, buckets)
    kVocabulary,          // VOCABULARY(column [, size])
    kWeighted,            // WEIGHTED_CATEGORY(category over key:value)
    kCross,               // CROSS([columns], buckets)
    kEmbedding,           // EMBEDDING(category, dimension [, combiner [, initializer]])
    kIndicator,           // INDICATOR(category)
    kNormalize,           // NORMALIZE(column): to [0, 1]
    kStandardize,         // STANDARDIZE(column): mean 0, deviation 1
    kText,                // TEXT(name [, buckets [, run]]): the words of free text
    kLogarithm,           // LOG(column): sign(x) * log1p(|x|), then standardised
  };
  enum class ElementType { kInteger, kNumber, kText };

  Kind kind = Kind::kName;

  // kName, kDense, kSparse, kText. A quoted name is a pattern: a regular expression that has to
  // match the whole name of a selected column, in any case.
  std::string name;
  bool pattern = false;

  // kDense, kSparse; empty shape: taken from the data.
  std::vector<int64_t> shape;
  std::string delimiter;
  std::string key_value_delimiter;
  ElementType element = ElementType::kNumber;
  bool weighted_elements = false;  // a type was given for the weights of key:value

  std::vector<double> boundaries;  // kBucket
  // Size of the category; kQuantile: of the cut; 0 = not given (VOCABULARY, EMBEDDING of a plain
  // name: from the data).
  int64_t buckets = 0;

  uint32_t longest_run = 0;  // kText: longest sequence of words counted as one; 0 = not given

  uint32_t dimension = 0;  // kEmbedding
  std::string combiner;
  std::string initializer;

  std::vector<ColumnSpec> inner;  // the arguments; kCross: its members
  Span span;
};

// The function's name as written: "CATEGORY_ID"; "" for kStar and kName.
std::string_view ColumnFunctionName(ColumnSpec::Kind kind);

// The column that a spec finally reads; not for kCross, which has several, or kStar, which has
// none.
const ColumnSpec& InnermostColumn(const ColumnSpec& spec);

// Reads one expression of a COLUMN clause. Errors quote the call and show the right form.
Result<ColumnSpec> ReadColumn(const parser::Expression& expression);

}  // namespace sluice::planner
