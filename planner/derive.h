#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "models/registry/registry.h"
#include "planner/column_index.h"
#include "planner/column_spec.h"

namespace sluice::models {
class FeaturePlan;
class LabelPlan;
}  // namespace sluice::models

namespace sluice::planner {

// Which part of a wide-and-deep model sees a feature.
enum class FeaturePart { kBoth, kWide, kDeep };

struct RequestedColumn {
  ColumnSpec spec;
  FeaturePart part = FeaturePart::kBoth;
};

struct DeriveInput {
  const Schema& schema;
  const ColumnIndex& index;
  const catalog::SelectStatistics& statistics;
  models::ModelFamily family = models::ModelFamily::kLinear;
  std::vector<RequestedColumn> requested;
  // Several COLUMN targets: what they do not name is no feature. Otherwise COLUMN refines, and
  // every other selected column is a feature too (as in SQLFlow).
  bool only_requested = false;
  // Per column: what it is instead of a feature ("the label"), or "".
  std::vector<std::string> excluded;
  // Per column: why it is no feature unless COLUMN names it, as the statement says, or "".
  std::vector<std::string> left_out;
  // Per column: what its table says of it.
  std::vector<catalog::ColumnKey> keys;
};

// A column that is no feature, and why: it has nothing that a model could learn.
struct LeftOutColumn {
  std::string name;
  std::string reason;
};

// What a person should know of the derivation.
struct DeriveReport {
  std::vector<std::string> notes;  // decisions that may surprise
  std::vector<std::string> told;   // those that may be wrong
  std::vector<LeftOutColumn> left_out;
  // Columns that hold times, with how these are written (InputColumn::time_format).
  std::map<std::string, std::string> times;
  std::string series;  // a column of times in whose order the rows stand, or ""
};

// Schema, statistics and COLUMN clauses into inputs and features of `plan`; the other fields are
// left alone. Pure: the same statistics make the same plan, whatever the database. Features stand
// in the order of the SELECT, those of several columns last. Columns that say nothing of rows to
// come (keys, row numbers, constants) are left out, unless COLUMN names them or nothing else is
// there. Every error is reported.
Status DeriveFeatures(const DeriveInput& input, models::FeaturePlan* plan, DeriveReport* report);

// Whether a column of whole numbers is named as one that counts nothing: "user_id", "zip_code",
// "store".
bool NamesACategory(std::string_view name);

// What a model wants of its label.
enum class LabelUse {
  kClasses,       // a classifier: ids of classes
  kScaledNumber,  // a network's regression: (y - mean) / scale
  kNumber,        // as it is: boosted trees, ranking
};

struct LabelInput {
  const ColumnInfo& column;
  const catalog::ColumnStatistics& statistics;
  std::vector<std::string> sample;  // texts of the sample's cells, NULLs left out; kText only
  int64_t rows = 0;
  bool exact_rows = false;
  LabelUse use = LabelUse::kClasses;
  std::string model_type;  // for messages
  Span span;
  // The classes where a query has found them, in any order.
  std::vector<std::string> classes;
  bool classes_known = false;
};

// Most classes of a classifier. A label with more is nearly always a number or an identifier, and
// the output layer would be the largest of the model.
inline constexpr size_t kMostClasses = 1000;

// Refuses what nobody can predict: a key, a moment, a sentence.
Status CheckLearnable(size_t label, const Schema& schema,
                      const catalog::SelectStatistics& statistics, catalog::ColumnKey key,
                      Span span);

// True when the statistics do not hold every class of the label: the caller has to ask the
// database.
bool NeedsClassQuery(const catalog::ColumnStatistics& statistics);

// Texts are in FormatValue's form; the classes' order is numeric where all are numbers.
Status DeriveLabel(const LabelInput& input, models::LabelPlan* plan);

// What the label itself says when nobody else does: text, truth values, two or few distinct values
// are classes.
bool LooksLikeClasses(const ColumnInfo& column, const catalog::ColumnStatistics& statistics,
                      int64_t rows);

}  // namespace sluice::planner
