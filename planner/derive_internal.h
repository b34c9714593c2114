#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "catalog/data_source.h"
#include "models/model.pb.h"
#include "planner/derive.h"
#include "planner/error_list.h"
#include "planner/number_centre.h"
#include "planner/text_shape.h"
#include "planner/time_shape.h"

// The derivation's shared state; only derive*.cc include this.
namespace sluice::planner {

// A vocabulary is used if it covers this share of the rows; otherwise hashing loses less.
inline constexpr double kMinCovered = 0.98;

// One column and its statistics.
struct ColumnFacts {
  size_t index = 0;
  const ColumnInfo& info;
  const catalog::ColumnStatistics& statistics;
  TextShape shape = {};                          // of text columns
  bool has_blank = false;                        // text: the sample has an empty cell
  std::optional<TimeShape> time = std::nullopt;  // set if the column holds times
  bool several_units = false;                    // text: its numbers have different units
  std::string unit = {};                         // text: the unit of all its numbers
  std::string thousands = {};  // text: the separator of thousands in its numbers (ThousandsOf)
  OddCells odd = {};           // text: cells that are not what nearly all others are

  const std::string& name() const { return info.name; }
  bool is_text() const { return info.type == DataType::kText; }
  bool is_number() const {
    return IsNumeric(info.type) ||
           (is_text() && shape.format.kind == models::ColumnFormatKind::kNumber);
  }
  // A blank or odd cell among numbers counts as missing.
  bool has_null() const { return statistics.null_fraction > 0 || has_blank || !odd.texts.empty(); }
  // Whether the texts are something other than text: numbers, times, lists.
  bool is_understood() const {
    return shape.format.kind != models::ColumnFormatKind::kText || time || !unit.empty();
  }
};

// Mean and scale of numbers: finite, and the scale is not zero.
struct NumberFacts {
  double mean = 0;
  double deviation = 1;
  double min = 0;
  double max = 1;
};
// The deviation of numbers around 1e300 or 1e-300, whose squares no double holds, becomes half of
// their range, and a mean that is not finite the middle of it.
void MendMoments(double min, double max, double* mean, double* deviation);

// Why a column that COLUMN does not name is left out, or "". `spare`: it is used after all if no
// other feature is left.
struct WhyLeftOut {
  std::string reason;
  bool spare = false;
};
// Refuses a label whose texts are numbers with a unit or in an unusual spelling, such as commas
// between thousands, and says how to select the number.
Status CheckLabelSpelling(const LabelInput& input);
// "id", "user_id", "userId".
bool NamesAnIdentifier(std::string_view name);
WhyLeftOut ReasonToLeaveOut(const ColumnFacts& column, const DeriveInput& input);

// Where most of the numbers lie close together and a few far away, logarithms may be the better
// scale; where that is not certain (a moderate tail, or most numbers are 0), a model gets both.
enum class NumberScale { kPlain, kLogarithm, kBoth };

class FeatureMaker {
 public:
  FeatureMaker(const DeriveInput& input, models::FeaturePlan* plan, DeriveReport* report)
      : input_(input), plan_(*plan), report_(*report) {}

  ColumnFacts FactsOf(size_t column) const;

  // Adds a feature that was not requested, by the column's type and statistics (derive_default.cc).
  Status AddDerived(const ColumnFacts& column, const FeaturePart& part, Span span);
  // Adds the feature of one COLUMN expression (derive_requested.cc).
  Status AddRequested(const ColumnSpec& spec, const ColumnFacts& column, const FeaturePart& part);
  Status AddCross(const ColumnSpec& spec, const ColumnSpec* embedding,
                  const std::vector<size_t>& columns, const FeaturePart& part);

 private:
  // Adds a feature with a unique name that reads `columns`; the pointer is valid until the next
  // Add.
  models::Feature* Add(const std::string& name, const std::vector<size_t>& columns,
                       const FeaturePart& part);
  // Finds out what a text column's cells are. `fits`, if given: other cells do not count.
  void Understand(const std::vector<std::string>& cells, const Fits& fits,
                  ColumnFacts* facts) const;
  // Of a column that has a feature: of a text column, odd cells are read as missing.
  void AllowOddCells(const ColumnFacts& column);
  void AddFrequentOddCells(const ColumnFacts& column, const FeaturePart& part);
  void Note(std::string note) { report_.notes.push_back(std::move(note)); }
  void Assume(std::string note) { report_.assumptions.push_back(std::move(note)); }
  bool trees() const { return input_.family == models::ModelFamily::kTrees; }

  // derive_default.cc
  void AddNumber(const ColumnFacts& column, const FeaturePart& part);
  void AddTextCategory(const ColumnFacts& column, const FeaturePart& part);
  // Whether the whole numbers are names: identifiers and codes, each in many rows.
  bool IsCategoryOfNumbers(const ColumnFacts& column) const;
  bool IsCodeOfDigits(const ColumnFacts& column) const;
  bool HasFewValues(const ColumnFacts& column) const;
  void AddValues(const ColumnFacts& column, const FeaturePart& part);
  NumberScale ScaleOf(const ColumnFacts& column) const;
  void AddShapedText(const ColumnFacts& column, const FeaturePart& part);
  // Represents it as INDICATOR or EMBEDDING, whichever suits the model.
  void Represent(models::Feature* feature, const char* combiner) const;

  // derive_time.cc
  bool HasShortYears(const ColumnFacts& column) const;
  void AddTimestamp(const ColumnFacts& column, const FeaturePart& part);
  std::vector<int64_t> SampleTimes(const ColumnFacts& column) const;
  void AddMeasure(const ColumnFacts& column, const std::vector<int64_t>& times, const char* measure,
                  const std::string& name, bool scaled, const FeaturePart& part);

  // derive_requested.cc
  Status Wrong(const ColumnSpec& spec, const ColumnFacts& column, std::string_view what,
               std::string hint) const;
  Status AddTensor(const ColumnSpec& spec, const ColumnFacts& column, const FeaturePart& part);
  Status AddScaledNumber(const ColumnSpec& spec, const ColumnFacts& column,
                         const FeaturePart& part);
  Status AddCategory(const ColumnSpec& spec, const ColumnFacts& column, const FeaturePart& part);
  Result<models::TensorFormat> FormatOf(const ColumnSpec& tensor, const ColumnFacts& column) const;

  // derive_text.cc
  bool IsFreeText(const ColumnFacts& column) const;
  void AddWords(const ColumnFacts& column, const FeaturePart& part);
  // False: the cells are no lists of names (name_lists.cc).
  bool AddNameLists(const ColumnFacts& column, const FeaturePart& part);
  // `buckets`, `longest_run`: 0 = choose.
  void FillWords(const ColumnFacts& column, int64_t buckets, uint32_t longest_run,
                 models::Feature* feature) const;

  // derive_category.cc
  Status FillCategory(const ColumnSpec& category, const ColumnFacts& column,
                      models::Feature* feature);
  static void ListIds(const ColumnSpec& tensor, const ColumnFacts& column,
                      models::TensorFormat* format);
  // Of a text column, values that differ in the case of their letters only become one.
  void FillVocabularyOf(const ColumnFacts& column, std::vector<std::string> values,
                        models::Categorizer* categorizer);
  Status FillPlainCategory(const ColumnSpec& spec, const ColumnFacts& column,
                           models::Feature* feature);
  Status FillBuckets(const ColumnSpec& spec, const ColumnFacts& column,
                     models::Categorizer* categorizer) const;
  Result<models::Categorizer> MemberOf(const ColumnSpec& member, const ColumnFacts& column);

  NumberFacts NumbersOf(const ColumnFacts& column, bool logarithm) const;
  // For trees: tells apart numbers that are the same as 32-bit floats.
  void Centre(const ColumnFacts& column, models::Feature* feature) const;
  std::vector<double> SampleNumbers(const ColumnFacts& column) const;  // finite, ascending

  const DeriveInput& input_;
  models::FeaturePlan& plan_;
  DeriveReport& report_;
  std::vector<std::optional<uint32_t>> inputs_;  // by column: its index in plan.inputs
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> next_number_;  // by name: the next feature's number
};

// Makes boosted trees read it so, if there is a centre.
void CentreFeature(const std::optional<NumberCentre>& centre, models::Feature* feature);
// Records how a text column spells its numbers.
void FillSpelling(const ColumnFacts& column, models::Feature* feature);

// Categorizers. Each gives NULL a bucket of its own, and unseen values one where they can occur.
void FillVocabulary(std::vector<std::string> vocabulary, models::Categorizer* categorizer);
void FillIdentity(uint32_t ids, models::Categorizer* categorizer);
void FillHash(uint32_t hashes, models::Categorizer* categorizer);
// For cells that hold several ids: NULL yields none.
void WithoutNullBucket(models::Categorizer* categorizer);

// The column's values that the statistics know, most frequent first, at most `limit`; `covered` is
// the share of rows that have them.
std::vector<std::string> KnownValues(const ColumnFacts& column, size_t limit, double* covered);
// Number of hash buckets for this many distinct values: a power of two, about twice as many.
uint32_t HashBuckets(double distinct);
uint32_t HashBucketsOf(const catalog::ColumnStatistics& column);
uint32_t EmbeddingDimension(uint32_t buckets);

}  // namespace sluice::planner
