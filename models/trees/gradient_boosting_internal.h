#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/features/label_scale.h"
#include "models/features/query_order.h"
#include "models/trees/gradient_boosting.h"
#include "models/trees/packed_numbers_internal.h"

// Converts between our batches and libxgboost. Only gradient_boosting*.cc include this.
namespace sluice::models {

class ModelSpec;

// Deleters for libxgboost's handles.
struct MatrixFree {
  void operator()(void* handle) const;
};
struct BoosterFree {
  void operator()(void* handle) const;
};
using MatrixHandle = std::unique_ptr<void, MatrixFree>;
using BoosterHolder = std::unique_ptr<void, BoosterFree>;

// The status of a call: libxgboost's message without its file names and stack.
Status CheckXgboost(int code, std::string_view doing);

// A ModelSpec in libxgboost's terms.
struct BoostingParameters {
  enum class Booster { kTree, kDart, kLinear };
  Booster booster = Booster::kTree;
  std::vector<std::pair<std::string, std::string>> settings;  // for XGBoosterSetParam
  std::string objective;
  int rounds = 10;
  int early_stopping_rounds = 0;  // 0: off
  int max_bin = 256;
  int threads = 0;           // 0: libxgboost's choice
  int training_threads = 0;  // the same, while it trains
  bool raw_values = false;   // the method needs numbers, not bins
  bool ranking = false;
  std::optional<double> missing;  // this number counts as missing, in addition to NULL
  size_t classes = 0;             // 0: numbers
  size_t raw_outputs = 1;         // libxgboost's outputs per row
  size_t outputs = 1;             // ours: two classes become one probability
  // Batches hold the label on this scale. Trees learn it so where they learn squares or on a curve,
  // and their predictions are restored; otherwise they learn the label itself.
  LabelScale label_scale;
  bool learns_scaled = false;
  bool begins_with_mean = false;  // unless it goes on from a model
  std::string label;              // for messages
  std::string group_column;
};
Result<BoostingParameters> ParametersOf(const ModelSpec& spec);

// Whether libxgboost can safely load these bytes, its own UBJSON, and predict `columns` columns
// from them: they may be damaged or forged. Takes time and memory in proportion to their size.
Status CheckBooster(std::string_view bytes, const BoostingParameters& parameters, size_t columns);

// Describes memory to libxgboost: JSON like numpy's __array_interface__. columns == 0: one
// dimension. `type` is "<f4", "<u4" or "<u8".
std::string ArrayInterface(const void* data, size_t rows, size_t columns, std::string_view type);
template <typename T>
std::string VectorInterface(const std::vector<T>& values, std::string_view type) {
  return ArrayInterface(values.data(), values.size(), 0, type);
}

// Maps features to libxgboost's columns. A category is one column that holds its id: with ids by
// descending frequency that costs no time and next to no AUC (measured: README.md). Only cells with
// several ids, and categories of a linear booster, get a column per id.
class ColumnLayout {
 public:
  static Result<ColumnLayout> Make(const ModelSpec& spec, const FeatureTransform& transform,
                                   const BoostingParameters& parameters);
  size_t columns() const { return owners_.size(); }
  bool sparse() const { return sparse_; }
  // How a column holds the plan's number x: (x - offset) * scale.
  struct Unit {
    double offset = 0;
    double scale = 1;
    bool own() const { return offset == 0 && scale == 1; }
  };
  Unit unit(size_t column) const { return column < units_.size() ? units_[column] : Unit(); }
  // Of the plan's numbers, which come first.
  bool IsMissing(size_t column, float value) const {
    return std::isnan(value) || (!missing_.empty() && value == missing_[column]);
  }
  // The feature that a column belongs to.
  const std::string& feature(size_t column) const { return names_[owners_[column]]; }

  struct Slot {
    size_t column = 0;
    uint32_t buckets = 0;
    bool expanded = false;  // a column per id
    bool ordered = false;   // ids that follow each other are alike
    std::string feature;
  };
  const std::vector<Slot>& slots() const { return slots_; }

 private:
  size_t dense_width_ = 0;
  std::vector<Unit> units_;     // of the plan's numbers
  std::vector<float> missing_;  // the missing number as each column holds it; empty: there is none
  bool sparse_ = false;
  std::vector<Slot> slots_;
  std::vector<std::string> names_;  // of the features
  std::vector<uint32_t> owners_;    // of every column: its feature
};

// Rows in a form that libxgboost reads in place: dense with NaN for missing, or compressed rows.
// The addresses in the texts are valid until the next Fill.
class RowMatrix {
 public:
  explicit RowMatrix(const ColumnLayout* layout) : layout_(layout) {}
  // Fails on a cell with several ids if the plan expects one.
  Status Fill(const FeatureBatch& batch);
  // Adds rows to the existing ones.
  Status Append(const FeatureBatch& batch);
  void Pack(NumberPacker* packer) const;
  // Only which numbers there are, as zeros, and which are missing.
  void PackPresence(NumberPacker* packer) const;
  // Replaces all rows by packed ones.
  void Unpack(size_t rows, NumberReader* reader);

  size_t rows() const { return rows_; }
  size_t numbers() const { return values_.size(); }
  // Dense: rows x columns, NaN for missing. Sparse: the numbers of each row, by ascending column.
  const std::vector<float>& values() const { return values_; }
  const std::vector<uint64_t>& row_ends() const { return row_ends_; }  // with a leading 0
  const std::vector<uint32_t>& columns() const { return columns_; }
  // JSON like numpy's __array_interface__.
  std::string DenseInterface() const;
  std::string RowEndsInterface() const;
  std::string ColumnsInterface() const;
  std::string ValuesInterface() const;

 private:
  void PackPlaces(NumberPacker* packer) const;  // of compressed rows
  Status AppendDense(const FeatureBatch& batch);
  Status AppendSparse(const FeatureBatch& batch);

  const ColumnLayout* layout_;
  size_t rows_ = 0;
  std::vector<float> values_;       // dense: rows x columns
  std::vector<uint64_t> row_ends_;  // sparse: with a leading 0
  std::vector<uint32_t> columns_;
  std::vector<std::pair<uint32_t, float>> row_;  // scratch: one row's entries
};

// The sizes of a ranking's queries, from rows where each query's are adjacent.
class QueryGroups {
 public:
  explicit QueryGroups(std::string column) : order_(std::move(column)) {}
  Status Add(const FeatureBatch& batch);
  const std::vector<uint32_t>& sizes() const { return sizes_; }
  const std::vector<float>& weights() const { return weights_; }  // of each query's first row

 private:
  QueryOrder order_;
  std::vector<uint32_t> sizes_;
  std::vector<float> weights_;
};

// The rows of a source in pieces, pass after pass. Those of the first pass are packed for the later
// ones, unless they take too much memory (BatchSource::most_kept): then the source is rewound.
class RowPieces {
 public:
  // All but `stop` must live as long.
  RowPieces(const GradientBoosting::BatchSource& source, const ColumnLayout& layout,
            const BoostingParameters& parameters, std::stop_token stop);

  // InvalidArgument "no rows `what`: ..." if there is none. The first pass returns it first.
  Status RequireRows(std::string_view what);
  // What later passes need of a piece.
  enum class Left { kRows, kPresence, kNothing };
  // The next rows, with their labels and weights; false: the pass has ended.
  Result<bool> Next(Left left);
  Status ReadAll();
  // Begins the next pass, if rows of this one have been read.
  void Restart();
  void Forget();  // no further pass

  int pass() const { return pass_; }  // complete ones
  const RowMatrix& matrix() const { return matrix_; }
  const std::vector<float>& labels() const { return labels_; }
  const std::vector<float>& weights() const { return weights_; }  // empty: each is 1
  const QueryGroups& groups() const { return groups_; }

 private:
  struct Piece {
    size_t rows = 0;
    bool weighed = false;
    std::vector<uint8_t> bytes;
  };

  Result<const FeatureBatch*> NextBatch();
  // Reads so many rows or numbers into matrix_, up to a batch more, or all that are left.
  Status Collect(size_t rows, size_t numbers);
  // Once per row, whatever the number of passes.
  Status Note(const FeatureBatch& batch);
  void Keep();
  void Unpack(const Piece& piece);
  Piece Packed();  // what packer_ was given, with its labels and weights
  // Gives freed memory back to the operating system, if rows took that many bytes.
  static void GiveBack(size_t rows_bytes);

  const GradientBoosting::BatchSource& source_;
  const BoostingParameters& parameters_;
  const std::stop_token stop_;
  RowMatrix matrix_;
  QueryGroups groups_;
  const FeatureBatch* first_ = nullptr;
  bool must_rewind_ = false;
  bool reading_ = false;  // since the last restart
  int pass_ = 0;
  bool ended_ = false;         // this pass
  std::vector<float> labels_;  // of the rows in matrix_
  std::vector<float> weights_;
  bool keeps_;  // the rows of the first pass
  NumberPacker packer_;
  std::vector<Piece> kept_;
  size_t kept_bytes_ = 0;
  size_t training_bytes_ = 0;
  size_t unpacked_ = 0;  // pieces in this pass
};

// Metrics of one round, training rows first.
using RoundMetrics = std::vector<std::pair<std::string, double>>;
// From libxgboost's line: "[3]\ttrain-logloss:0.51\tvalidation-logloss:0.53".
RoundMetrics ParseRoundMetrics(std::string_view line);
// Brings errors of labels that were divided by `scale` back to the label's unit.
void RestoreErrors(double scale, RoundMetrics* metrics);

// The best round so far by the last metric of the validation rows, as in xgb.train.
class BestRound {
 public:
  explicit BestRound(int patience) : patience_(patience) {}  // 0: never stops, records nothing
  // Whether training should stop.
  bool Note(int round, const RoundMetrics& metrics);
  std::optional<int> round() const { return best_ ? std::optional(round_) : std::nullopt; }

 private:
  int patience_;
  int round_ = 0;
  std::optional<double> best_;
};

// Reads `source` to its end, as often as libxgboost asks for it, into a matrix of bins (or of
// numbers). `reference`: use the bins of that matrix; nullptr: compute new bins.
Result<MatrixHandle> BuildMatrix(const GradientBoosting::BatchSource& source,
                                 const ColumnLayout& layout, const BoostingParameters& parameters,
                                 void* reference, std::string_view what, std::stop_token stop);

// GradientBoosting::FeatureImportance of a trained booster. `linear`: it has weights instead of
// splits.
Result<std::vector<GradientBoosting::Importance>> ImportanceOfFeatures(void* booster,
                                                                       const ColumnLayout& layout,
                                                                       bool linear);

// GradientBoosting::Export of a trained booster that libxgboost has saved as `json`.
Result<GradientBoosting::Exported> ExportBooster(std::string_view json, const ModelSpec& spec,
                                                 const FeatureTransform& transform,
                                                 const ColumnLayout& layout,
                                                 const BoostingParameters& parameters);

}  // namespace sluice::models
