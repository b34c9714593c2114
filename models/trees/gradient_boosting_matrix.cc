#include <fmt/core.h>
#include <malloc.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <limits>
#include <utility>

#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/xgboost_library_internal.h"

namespace sluice::models {
namespace {

// libxgboost takes rows in pieces. Each runs several parallel loops, whose threads wait for each
// other, so that a piece should be large; but it is in memory besides the packed rows, so that one
// of many columns has fewer rows.
constexpr size_t kRowsPerPiece = 1 << 16;
constexpr size_t kNumbersPerPiece = 1 << 21;
constexpr size_t kAll = std::numeric_limits<size_t>::max();

// What libxgboost holds at least while it trains, when the packed rows are gone: bins by row and by
// column; and per row its place, label, prediction, gradient and positions in the tree.
constexpr size_t kTrainingBytesPerNumber = 2;
constexpr size_t kTrainingBytesPerRow = 48;

// libxgboost 1.7 reads the rows in four passes: sizes of the columns, cut points (unless those of
// another matrix are used), bins, the bins by column. The last one asks which numbers are missing,
// and for no value.
constexpr int kNone = -1;
int BinPass(bool own_cuts) {
  int major = 0, minor = 0;
  Xgboost().XGBoostVersion(&major, &minor, nullptr);
  return major != 1 || minor != 7 ? kNone : own_cuts ? 2 : 1;
}

// Gives freed memory back to the operating system: blocks of several megabytes would stay with the
// allocator, which cannot use them for libxgboost's larger ones. With few rows that would only take
// time.
void GiveBack(size_t rows_bytes) {
  constexpr size_t kWorthIt = 8U << 20U;
  if (rows_bytes > kWorthIt) {
    malloc_trim(0);
  }
}

std::string BuildSettings(const BoostingParameters& parameters) {
  return fmt::format(R"({{"missing":NaN,"nthread":{},"max_bin":{}}})", parameters.training_threads,
                     parameters.max_bin);
}

// Appends the labels on the scale on which they are learnt.
void AppendLabels(const FeatureBatch& batch, const BoostingParameters& parameters,
                  std::vector<float>* labels) {
  if (parameters.learns_scaled || batch.label_numbers.empty()) {
    labels->insert(labels->end(), batch.labels.begin(), batch.labels.end());
    return;
  }
  for (const double label : batch.label_numbers) {
    labels->push_back(static_cast<float>(label));
  }
}

// Rows of a matrix with their labels and weights, packed.
struct PackedPiece {
  size_t rows = 0;
  bool weighed = false;
  std::vector<uint8_t> bytes;
};

// Passes a source's batches to libxgboost, which calls back from C: every error is stored and looks
// like the end of the rows. Those of the first pass are packed for the later ones.
class MatrixFeed {
 public:
  MatrixFeed(const GradientBoosting::BatchSource& source, const ColumnLayout& layout,
             const BoostingParameters& parameters, std::stop_token stop)
      : source_(source),
        layout_(layout),
        parameters_(parameters),
        stop_(std::move(stop)),
        matrix_(&layout),
        groups_(parameters.group_column),
        keeps_(source.most_kept > 0) {}

  // Whether there is a first batch; Next returns it first.
  Result<bool> HasRows() {
    ASSIGN_OR_RETURN(first_, source_.next());
    return first_->rows > 0;
  }
  Result<MatrixHandle> Bins(void* reference);
  Result<MatrixHandle> Numbers();

 private:
  static int NextOf(void* self) { return static_cast<MatrixFeed*>(self)->NextForXgboost(); }
  static void ResetOf(void* self) { static_cast<MatrixFeed*>(self)->Reset(); }

  // libxgboost also resets before its first pass and after its last one: rewind the source only if
  // rows that have been read are requested again.
  void Reset() {
    ended_ = false;
    must_rewind_ = must_rewind_ || reading_;
    pass_ += reading_ ? 1 : 0;
    reading_ = false;
    unpacked_ = 0;
  }
  int NextForXgboost();
  Result<const FeatureBatch*> NextBatch();
  // Reads so many rows or numbers into matrix_, up to a batch more, or all that are left.
  Status Collect(size_t rows, size_t numbers);
  // The next rows in matrix_ with their labels and weights: from the source, or unpacked.
  Status NextPiece();
  void Keep();
  void Unpack(const PackedPiece& piece);
  // The piece that packer_ was given, with its labels and weights.
  PackedPiece Packed();
  Status SetProxy();
  Status SetGroups(void* handle) const;
  // Once per row, whatever the number of passes.
  Status Note(const FeatureBatch& batch);

  const GradientBoosting::BatchSource& source_;
  const ColumnLayout& layout_;
  const BoostingParameters& parameters_;
  std::stop_token stop_;
  RowMatrix matrix_;
  QueryGroups groups_;
  const FeatureBatch* first_ = nullptr;
  bool must_rewind_ = false;
  bool reading_ = false;  // since the last reset
  int pass_ = 0;          // complete ones
  int bin_pass_ = kNone;  // the last that reads values
  bool ended_ = false;    // this pass
  Status status_;
  MatrixHandle proxy_;
  std::vector<float> labels_;  // of the rows in matrix_
  std::vector<float> weights_;
  bool keeps_;  // the rows of the first pass
  NumberPacker packer_;
  std::vector<PackedPiece> kept_;
  size_t kept_bytes_ = 0;
  size_t training_bytes_ = 0;
  size_t unpacked_ = 0;  // pieces in this pass
};

Result<const FeatureBatch*> MatrixFeed::NextBatch() {
  if (stop_.stop_requested()) {
    return Cancelled("the training was cancelled");
  }
  if (first_ != nullptr) {
    reading_ = true;
    return std::exchange(first_, nullptr);
  }
  if (must_rewind_) {
    must_rewind_ = false;
    RETURN_IF_ERROR(source_.rewind());
  }
  reading_ = true;
  return source_.next();
}

Status MatrixFeed::Note(const FeatureBatch& batch) {
  if (batch.labels.size() != batch.rows) {
    return InvalidArgument(
               fmt::format("label '{}' must be one number or class per row", parameters_.label))
        .Hint("trees have no vector labels: train one model per number");
  }
  return parameters_.ranking && pass_ == 0 ? groups_.Add(batch) : OkStatus();
}

Status MatrixFeed::Collect(size_t rows, size_t numbers) {
  labels_.clear();
  weights_.clear();
  bool fresh = true;
  while (!ended_ && (fresh || (matrix_.rows() < rows && matrix_.numbers() < numbers))) {
    ASSIGN_OR_RETURN(const FeatureBatch* batch, NextBatch());
    if (batch->rows == 0) {
      ended_ = true;
      break;
    }
    RETURN_IF_ERROR(Note(*batch));
    RETURN_IF_ERROR(fresh ? matrix_.Fill(*batch) : matrix_.Append(*batch));
    fresh = false;
    AppendLabels(*batch, parameters_, &labels_);
    weights_.insert(weights_.end(), batch->weights.begin(), batch->weights.end());
  }
  return OkStatus();
}

PackedPiece MatrixFeed::Packed() {
  packer_.Add(labels_.data(), labels_.size());
  packer_.Add(weights_.data(), weights_.size());
  return {matrix_.rows(), !weights_.empty(), packer_.Take()};
}

void MatrixFeed::Keep() {
  matrix_.Pack(&packer_);
  kept_.push_back(Packed());
  kept_bytes_ += kept_.back().bytes.size();
  training_bytes_ +=
      kTrainingBytesPerNumber * matrix_.numbers() + kTrainingBytesPerRow * matrix_.rows();
  if (kept_bytes_ > std::max(source_.most_kept, training_bytes_)) {
    keeps_ = false;
    kept_ = {};
  }
}

void MatrixFeed::Unpack(const PackedPiece& piece) {
  NumberReader reader(piece.bytes);
  matrix_.Unpack(piece.rows, &reader);
  labels_.resize(piece.rows);
  reader.Read(labels_.data(), labels_.size());
  weights_.resize(piece.weighed ? piece.rows : 0);
  reader.Read(weights_.data(), weights_.size());
}

Status MatrixFeed::NextPiece() {
  if (!keeps_ || pass_ == 0) {
    RETURN_IF_ERROR(Collect(kRowsPerPiece, kNumbersPerPiece));
    if (keeps_ && !labels_.empty()) {
      Keep();
    }
    return OkStatus();
  }
  if (stop_.stop_requested()) {
    return Cancelled("the training was cancelled");
  }
  reading_ = true;
  if (unpacked_ == kept_.size()) {
    labels_.clear();
    return OkStatus();
  }
  PackedPiece& piece = kept_[unpacked_++];
  Unpack(piece);
  if (pass_ == bin_pass_) {  // the bins grow as the values go
    matrix_.PackPresence(&packer_);
    piece = Packed();
    GiveBack(kept_bytes_);
  }
  return OkStatus();
}

Status MatrixFeed::SetProxy() {
  void* proxy = proxy_.get();
  const int code = layout_.sparse()
                       ? Xgboost().XGProxyDMatrixSetDataCSR(
                             proxy, matrix_.RowEnds().c_str(), matrix_.Columns().c_str(),
                             matrix_.Values().c_str(), layout_.columns())
                       : Xgboost().XGProxyDMatrixSetDataDense(proxy, matrix_.Dense().c_str());
  RETURN_IF_ERROR(CheckXgboost(code, "reading rows"));
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGDMatrixSetInfoFromInterface(
                                   proxy, "label", VectorInterface(labels_, "<f4").c_str()),
                               "reading labels"));
  if (!weights_.empty() && !parameters_.ranking) {
    RETURN_IF_ERROR(CheckXgboost(Xgboost().XGDMatrixSetInfoFromInterface(
                                     proxy, "weight", VectorInterface(weights_, "<f4").c_str()),
                                 "reading weights"));
  }
  return OkStatus();
}

int MatrixFeed::NextForXgboost() {
  if (!status_.ok()) {
    return 0;
  }
  try {
    status_ = NextPiece();
    if (!status_.ok() || labels_.empty()) {
      return 0;
    }
    status_ = SetProxy();
  } catch (const std::exception& error) {  // no exception may cross libxgboost's C frames
    status_ = ResourceExhausted(fmt::format("reading rows for libxgboost: {}", error.what()));
  }
  return status_.ok() ? 1 : 0;
}

// In a ranking a weight belongs to a query, not to a row.
Status MatrixFeed::SetGroups(void* handle) const {
  if (!parameters_.ranking) {
    return OkStatus();
  }
  const std::vector<uint32_t>& sizes = groups_.sizes();
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGDMatrixSetUIntInfo(handle, "group", sizes.data(), sizes.size()),
                   "grouping queries"));
  const std::vector<float>& weights = groups_.weights();
  if (weights.empty()) {
    return OkStatus();
  }
  return CheckXgboost(
      Xgboost().XGDMatrixSetFloatInfo(handle, "weight", weights.data(), weights.size()),
      "weighing queries");
}

Result<MatrixHandle> MatrixFeed::Bins(void* reference) {
  void* proxy = nullptr;
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGProxyDMatrixCreate(&proxy), "starting a matrix"));
  proxy_.reset(proxy);
  bin_pass_ = BinPass(reference == nullptr);
  void* handle = nullptr;
  const int code = Xgboost().XGQuantileDMatrixCreateFromCallback(
      this, proxy, reference, ResetOf, NextOf, BuildSettings(parameters_).c_str(), &handle);
  MatrixHandle matrix(code == 0 ? handle : nullptr);
  RETURN_IF_ERROR(status_);  // the cause, if the rows ended early
  RETURN_IF_ERROR(CheckXgboost(code, "binning the rows"));
  proxy_.reset();
  kept_ = {};
  GiveBack(kept_bytes_);
  RETURN_IF_ERROR(SetGroups(matrix.get()));
  return matrix;
}

Result<MatrixHandle> MatrixFeed::Numbers() {
  RETURN_IF_ERROR(Collect(kAll, kAll));
  GiveBack(matrix_.numbers() * sizeof(float));  // what the matrix has grown out of
  void* handle = nullptr;
  const std::string settings = BuildSettings(parameters_);
  const int code =
      layout_.sparse()
          ? Xgboost().XGDMatrixCreateFromCSR(matrix_.RowEnds().c_str(), matrix_.Columns().c_str(),
                                             matrix_.Values().c_str(), layout_.columns(),
                                             settings.c_str(), &handle)
          : Xgboost().XGDMatrixCreateFromDense(matrix_.Dense().c_str(), settings.c_str(), &handle);
  RETURN_IF_ERROR(CheckXgboost(code, "making a matrix"));
  MatrixHandle matrix(handle);
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGDMatrixSetFloatInfo(handle, "label", labels_.data(), labels_.size()),
                   "reading labels"));
  if (!weights_.empty() && !parameters_.ranking) {
    RETURN_IF_ERROR(CheckXgboost(
        Xgboost().XGDMatrixSetFloatInfo(handle, "weight", weights_.data(), weights_.size()),
        "reading weights"));
  }
  RETURN_IF_ERROR(SetGroups(handle));
  return matrix;
}

}  // namespace

void MatrixFree::operator()(void* handle) const {
  Xgboost().XGDMatrixFree(handle);
}

Status CheckXgboost(int code, std::string_view doing) {
  if (code == 0) {
    return OkStatus();
  }
  // "[12:00:00] ./src/metric/metric.cc:49: Unknown metric function x\nStack trace: ..."
  std::string text = Xgboost().XGBGetLastError();
  text = text.substr(0, text.find("\nStack trace"));
  if (!text.empty() && text[0] == '[') {
    const size_t time = text.find("] ");
    const size_t place = time == std::string::npos ? time : text.find(": ", time);
    if (place != std::string::npos) {
      text = text.substr(place + 2);
    }
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) {
    text.pop_back();
  }
  return InvalidArgument(fmt::format("XGBoost, {}: {}", doing, text));
}

Result<MatrixHandle> BuildMatrix(const GradientBoosting::BatchSource& source,
                                 const ColumnLayout& layout, const BoostingParameters& parameters,
                                 void* reference, std::string_view what, std::stop_token stop) {
  MatrixFeed feed(source, layout, parameters, std::move(stop));
  ASSIGN_OR_RETURN(const bool any, feed.HasRows());
  if (!any) {
    return InvalidArgument(fmt::format("no rows {}: the select is empty", what));
  }
  // Validated on bins, libxgboost would search every column of a sparse row for its value: with
  // thousands of columns of words that takes longer than the training.
  const bool sparse_validation = reference != nullptr && layout.sparse();
  return parameters.raw_values || sparse_validation ? feed.Numbers() : feed.Bins(reference);
}

}  // namespace sluice::models
