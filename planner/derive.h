#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "models/registry/registry.h"
#include "planner/column_index.h"
#include "planner/column_spec.h"
#include "planner/series.h"

namespace sluice::models {
class FeaturePlan;
class LabelPlan;
}  // namespace sluice::models

namespace sluice::planner {

// Which part of a model sees a feature.
struct FeaturePart {
  enum Of { kBoth, kWide, kDeep };  // of a wide-and-deep model
  FeaturePart(Of part) : of(part) {}
  static FeaturePart Tower(std::string name) {
    FeaturePart part = kBoth;
    part.tower = std::move(name);
    return part;
  }
  Of of;
  std::string tower;  // "": the model has none
};

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
  // With several COLUMN targets, columns that they do not name are not features. Otherwise COLUMN
  // refines, and every other selected column is a feature, too (as in SQLFlow).
  bool only_requested = false;
  // Per column: its other role if it cannot be a feature ("the label"), or "".
  std::vector<std::string> excluded;
  // Per column: the statement's reason to leave it out unless COLUMN names it, or "".
  std::vector<std::string> left_out;
  // Per column: its role in the table's keys.
  std::vector<catalog::ColumnKey> keys;
  // A network of the user's own has an input for each column: no number comes on two scales.
  bool one_scale = false;
};

// A column that is left out because a model cannot learn from it, and the reason.
struct LeftOutColumn {
  std::string name;
  std::string reason;
};

// What a user should know about the derivation.
struct DeriveReport {
  std::vector<std::string> notes;        // decisions that may surprise
  std::vector<std::string> assumptions;  // those that may be wrong
  std::vector<LeftOutColumn> left_out;
  // Columns that hold times, with their format (InputColumn::time_format).
  std::map<std::string, std::string> times;
  Series series;
};

// Turns schema, statistics and COLUMN clauses into inputs and features of `plan`; its other fields
// stay as they are. Pure: the same statistics give the same plan, whatever the database. Features
// are in the order of the SELECT, those of several columns last. Columns that say nothing about
// future rows (keys, row numbers, constants) are left out, unless COLUMN names them or there are no
// others. Every error is reported.
Status DeriveFeatures(const DeriveInput& input, models::FeaturePlan* plan, DeriveReport* report);

// Whether the name of a column of whole numbers suggests categories rather than counts: "user_id",
// "zip_code", "store".
bool NamesACategory(std::string_view name);

// The form of label that a model needs.
enum class LabelUse {
  kClasses,       // a classifier: ids of classes
  kScaledNumber,  // a network's regression: (y - mean) / scale
  kTreeNumber,    // the same for boosted trees that learn squared errors
  kTreeDistance,  // y - mean: other objectives of boosted trees on distances from the label
  kNumber,        // unchanged: other objectives of boosted trees, ranking
};

struct LabelInput {
  const ColumnInfo& column;
  const catalog::ColumnStatistics& statistics;
  std::vector<std::string> sample;  // texts of the sample's cells, without NULLs; kText only
  int64_t rows = 0;
  bool exact_rows = false;
  LabelUse use = LabelUse::kClasses;
  std::string model_type;  // for messages
  Span span;
  // The classes in any order, if a query has found them.
  std::vector<std::string> classes;
  bool classes_known = false;
  // For a loss that needs rows of one class only, where the statement names the classes.
  bool one_is_enough = false;
};

// Limit of a classifier's classes. A label with more is nearly always a number or an identifier,
// and the output layer would be the largest of the model.
inline constexpr size_t kMaxClasses = 1000;
// A sample that shows more classes than this probably lacks some.
inline constexpr size_t kMaxClassesOfSample = 100;

// Refuses labels that cannot be predicted: a key, a point in time, a sentence.
Status CheckLearnable(size_t label, const Schema& schema,
                      const catalog::SelectStatistics& statistics, catalog::ColumnKey key,
                      Span span);

// Whether the statistics may miss classes of the label, so that the caller has to query the
// database.
bool NeedsClassQuery(const catalog::ColumnStatistics& statistics);

// Texts are in FormatValue's form; classes are ordered numerically if all are numbers.
Status DeriveLabel(const LabelInput& input, models::LabelPlan* plan);

// Whether the label looks like classes: text, booleans, two or few distinct values.
bool LooksLikeClasses(const ColumnInfo& column, const catalog::ColumnStatistics& statistics,
                      int64_t rows);

}  // namespace sluice::planner
