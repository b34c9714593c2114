#include <fmt/core.h>

#include <cctype>
#include <exception>
#include <utility>

#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/xgboost_library_internal.h"

namespace sluice::models {
namespace {

// libxgboost 1.7 reads the rows in four passes: sizes of the columns, cut points (unless those of
// another matrix are used), bins, the bins by column. The last one asks which numbers are missing,
// and for no value.
constexpr int kNone = -1;
int BinPass(bool own_cuts) {
  int major = 0, minor = 0;
  Xgboost().XGBoostVersion(&major, &minor, nullptr);
  return major != 1 || minor != 7 ? kNone : own_cuts ? 2 : 1;
}

std::string BuildSettings(const BoostingParameters& parameters) {
  return fmt::format(R"({{"missing":NaN,"nthread":{},"max_bin":{}}})", parameters.training_threads,
                     parameters.max_bin);
}

// Passes a source's rows to libxgboost, which calls back from C: every error is stored and looks
// like the end of the rows.
class MatrixFeed {
 public:
  MatrixFeed(RowPieces* pieces, const ColumnLayout& layout, const BoostingParameters& parameters)
      : pieces_(*pieces), layout_(layout), parameters_(parameters) {}

  Result<MatrixHandle> Bins(void* reference);
  Result<MatrixHandle> Numbers();

 private:
  static int NextOf(void* self) { return static_cast<MatrixFeed*>(self)->NextForXgboost(); }
  // libxgboost also resets before its first pass and after its last one.
  static void ResetOf(void* self) { static_cast<MatrixFeed*>(self)->pieces_.Restart(); }

  int NextForXgboost();
  Status SetProxy();
  Status SetGroups(void* handle) const;

  RowPieces& pieces_;
  const ColumnLayout& layout_;
  const BoostingParameters& parameters_;
  int bin_pass_ = kNone;  // the last that reads values
  Status status_;
  MatrixHandle proxy_;
};

Status MatrixFeed::SetProxy() {
  void* proxy = proxy_.get();
  const int code =
      layout_.sparse()
          ? Xgboost().XGProxyDMatrixSetDataCSR(proxy, pieces_.matrix().RowEndsInterface().c_str(),
                                               pieces_.matrix().ColumnsInterface().c_str(),
                                               pieces_.matrix().ValuesInterface().c_str(),
                                               layout_.columns())
          : Xgboost().XGProxyDMatrixSetDataDense(proxy, pieces_.matrix().DenseInterface().c_str());
  RETURN_IF_ERROR(CheckXgboost(code, "reading rows"));
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGDMatrixSetInfoFromInterface(
                       proxy, "label", VectorInterface(pieces_.labels(), "<f4").c_str()),
                   "reading labels"));
  if (!pieces_.weights().empty() && !parameters_.ranking) {
    RETURN_IF_ERROR(
        CheckXgboost(Xgboost().XGDMatrixSetInfoFromInterface(
                         proxy, "weight", VectorInterface(pieces_.weights(), "<f4").c_str()),
                     "reading weights"));
  }
  return OkStatus();
}

int MatrixFeed::NextForXgboost() {
  if (!status_.ok()) {
    return 0;
  }
  try {
    // The bins grow as the values go.
    const bool binned = pieces_.pass() == bin_pass_;
    const Result<bool> more =
        pieces_.Next(binned ? RowPieces::Left::kPresence : RowPieces::Left::kRows);
    status_ = more.status();
    if (!status_.ok() || !*more) {
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
  const std::vector<uint32_t>& sizes = pieces_.groups().sizes();
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGDMatrixSetUIntInfo(handle, "group", sizes.data(), sizes.size()),
                   "grouping queries"));
  const std::vector<float>& weights = pieces_.groups().weights();
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
  pieces_.Forget();
  RETURN_IF_ERROR(SetGroups(matrix.get()));
  return matrix;
}

Result<MatrixHandle> MatrixFeed::Numbers() {
  RETURN_IF_ERROR(pieces_.ReadAll());
  void* handle = nullptr;
  const std::string settings = BuildSettings(parameters_);
  const int code =
      layout_.sparse()
          ? Xgboost().XGDMatrixCreateFromCSR(pieces_.matrix().RowEndsInterface().c_str(),
                                             pieces_.matrix().ColumnsInterface().c_str(),
                                             pieces_.matrix().ValuesInterface().c_str(),
                                             layout_.columns(), settings.c_str(), &handle)
          : Xgboost().XGDMatrixCreateFromDense(pieces_.matrix().DenseInterface().c_str(),
                                               settings.c_str(), &handle);
  RETURN_IF_ERROR(CheckXgboost(code, "making a matrix"));
  MatrixHandle matrix(handle);
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGDMatrixSetFloatInfo(handle, "label", pieces_.labels().data(),
                                                   pieces_.labels().size()),
                   "reading labels"));
  if (!pieces_.weights().empty() && !parameters_.ranking) {
    RETURN_IF_ERROR(
        CheckXgboost(Xgboost().XGDMatrixSetFloatInfo(handle, "weight", pieces_.weights().data(),
                                                     pieces_.weights().size()),
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
  RowPieces pieces(source, layout, parameters, std::move(stop));
  RETURN_IF_ERROR(pieces.RequireRows(what));
  MatrixFeed feed(&pieces, layout, parameters);
  // Validated on bins, libxgboost would search every column of a sparse row for its value: with
  // thousands of columns of words that takes longer than the training.
  const bool sparse_validation = reference != nullptr && layout.sparse();
  return parameters.raw_values || sparse_validation ? feed.Numbers() : feed.Bins(reference);
}

}  // namespace sluice::models
