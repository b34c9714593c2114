#include "models/trees/gradient_boosting.h"

#include <fmt/core.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "models/checksum_internal.h"
#include "models/kernels/kernels.h"
#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/histogram/learner.h"
#include "models/trees/xgboost_library_internal.h"

namespace sluice::models {
namespace {

void IgnoreLog(const char*) {}

constexpr const char* kPredictSettings =
    R"({"type":0,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":true,)"
    R"("missing":NaN,"cache_id":0})";
// Scores as they are added up, not transformed.
constexpr const char* kMarginSettings =
    R"({"type":1,"training":false,"iteration_begin":0,"iteration_end":0,"strict_shape":true,)"
    R"("missing":NaN,"cache_id":0})";

class XgboostModel final : public GradientBoosting {
 public:
  XgboostModel(std::unique_ptr<FeatureTransform> transform, ColumnLayout layout,
               BoostingParameters parameters)
      : transform_(std::move(transform)),
        layout_(std::move(layout)),
        parameters_(std::move(parameters)),
        rows_(&layout_) {}

  const FeatureTransform& transform() const override { return *transform_; }
  size_t outputs() const override { return parameters_.outputs; }
  size_t bytes_per_row() const override {
    return (transform_->dense_width() + layout_.columns() + 2 * parameters_.raw_outputs) *
           sizeof(float);
  }

  Status Train(const BatchSource& train, const BatchSource& validation,
               const std::function<void(const Round&)>& progress, std::stop_token stop,
               std::stop_token finish, const TrainingMemory& memory) override;
  Status TrainByPasses(const PassSearch& search, const BatchSource& validation, bool holds_out,
                       const std::function<void(const Round&)>& progress, std::stop_token stop,
                       std::stop_token finish) override;
  Result<std::string> Save() const override;
  Status Load(std::string_view bytes) override;
  Status Predict(const FeatureBatch& batch, std::vector<double>* predictions) override;
  Result<std::vector<Importance>> FeatureImportance() const override;
  Result<Exported> Export(const ModelSpec& spec) const override;

 private:
  // Without libxgboost.
  Status TrainHere(const BatchSource& train, const BatchSource& validation,
                   const std::function<void(const Round&)>& progress, std::stop_token stop,
                   std::stop_token finish, const TrainingMemory& memory);
  // A booster over `matrices` that continues from the loaded model, if there is one.
  Result<BoosterHolder> MakeBooster(const std::vector<void*>& matrices) const;
  Status RunRounds(const std::vector<void*>& matrices,
                   const std::function<void(const Round&)>& progress, const std::stop_token& stop,
                   const std::stop_token& finish);
  // Replaces the metrics by those after a round; those of the training rows only `with_train`.
  Status Evaluate(const std::vector<void*>& matrices, int iteration, bool with_train,
                  RoundMetrics* metrics) const;
  Status KeepRounds(int count);
  // libxgboost's "ubj", which is kept, or "json".
  Result<std::string> SaveRaw(std::string_view format = "ubj") const;
  Status LoadRaw(std::string_view bytes);
  Status LoadTrained(const std::string& bytes);
  Status PredictInPlace(const RowMatrix& rows, const char* settings, const float** scores);
  Status PredictLinear(const FeatureBatch& batch, const float** scores);
  Status CheckShape(const bst_ulong* shape, bst_ulong dimensions, size_t rows) const;
  Status TakeScores(const float* scores, size_t rows, std::vector<double>* predictions) const;

  std::unique_ptr<FeatureTransform> transform_;
  ColumnLayout layout_;
  BoostingParameters parameters_;
  RowMatrix rows_;
  BoosterHolder booster_;
  MatrixHandle linear_rows_;
};

Result<BoosterHolder> XgboostModel::MakeBooster(const std::vector<void*>& matrices) const {
  void* handle = nullptr;
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBoosterCreate(matrices.data(), matrices.size(), &handle),
                               "making a booster"));
  BoosterHolder booster(handle);
  if (booster_ != nullptr) {
    ASSIGN_OR_RETURN(const std::string bytes, SaveRaw());
    RETURN_IF_ERROR(
        CheckXgboost(Xgboost().XGBoosterLoadModelFromBuffer(handle, bytes.data(), bytes.size()),
                     "going on from a model"));
  }
  if (parameters_.begins_with_mean && booster_ == nullptr) {
    RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBoosterSetParam(handle, "base_score", "0"),
                                 "beginning with the mean"));
  }
  for (const auto& [name, value] : parameters_.settings) {
    RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBoosterSetParam(handle, name.c_str(), value.c_str()),
                                 fmt::format("attribute {}", name)));
  }
  return booster;
}

Status XgboostModel::Train(const BatchSource& train, const BatchSource& validation,
                           const std::function<void(const Round&)>& progress, std::stop_token stop,
                           std::stop_token finish, const TrainingMemory& memory) {
  if (histogram::Learns(parameters_)) {
    return TrainHere(train, validation, progress, std::move(stop), std::move(finish), memory);
  }
  if (memory.remember || !memory.remembered.empty()) {
    return Internal("what libxgboost trains is not remembered");
  }
  ASSIGN_OR_RETURN(const MatrixHandle rows,
                   BuildMatrix(train, layout_, parameters_, nullptr, "to train on", stop));
  std::vector<void*> matrices = {rows.get()};
  MatrixHandle held_out;
  if (validation.next) {
    auto made = BuildMatrix(validation, layout_, parameters_, rows.get(), "to validate on", stop);
    RETURN_IF_ERROR(made.status());
    held_out = std::move(made).value();
    matrices.push_back(held_out.get());
  } else if (parameters_.early_stopping_rounds > 0) {
    return InvalidArgument("train.early_stopping_rounds needs validation rows")
        .Hint("say validation.select, or split.kind='random'");
  }
  ASSIGN_OR_RETURN(BoosterHolder booster, MakeBooster(matrices));
  booster_ = std::move(booster);
  RETURN_IF_ERROR(RunRounds(matrices, progress, stop, finish));
  // Without the matrices' caches, which the booster would otherwise keep.
  ASSIGN_OR_RETURN(const std::string bytes, SaveRaw());
  return LoadTrained(bytes);
}

Status XgboostModel::TrainHere(const BatchSource& train, const BatchSource& validation,
                               const std::function<void(const Round&)>& progress,
                               std::stop_token stop, std::stop_token finish,
                               const TrainingMemory& memory) {
  histogram::BaseModel base;
  if (booster_ != nullptr) {
    ASSIGN_OR_RETURN(base.bytes, SaveRaw());
    base.margins = [this](const RowMatrix& rows, std::vector<float>* margins) {
      const float* scores = nullptr;
      RETURN_IF_ERROR(PredictInPlace(rows, kMarginSettings, &scores));
      margins->assign(scores, scores + rows.rows() * parameters_.raw_outputs);
      return OkStatus();
    };
  }
  histogram::Training training{.layout = &layout_,
                               .parameters = &parameters_,
                               .train = &train,
                               .validation = &validation,
                               .base = booster_ != nullptr ? &base : nullptr,
                               .memory = memory,
                               .progress = progress,
                               .stop = std::move(stop),
                               .finish = std::move(finish)};
  ASSIGN_OR_RETURN(const histogram::Trained trained, histogram::Train(training));
  return LoadTrained(trained.bytes);
}

Status XgboostModel::TrainByPasses(const PassSearch& search, const BatchSource& validation,
                                   bool holds_out,
                                   const std::function<void(const Round&)>& progress,
                                   std::stop_token stop, std::stop_token finish) {
  if (!histogram::Learns(parameters_) || booster_ != nullptr) {
    return Internal("passes over rows cannot train this model");
  }
  const histogram::Training training{.layout = &layout_,
                                     .parameters = &parameters_,
                                     .validation = &validation,
                                     .holds_out = holds_out,
                                     .memory = search.memory,
                                     .progress = progress,
                                     .stop = std::move(stop),
                                     .finish = std::move(finish)};
  ASSIGN_OR_RETURN(const std::string bytes, histogram::Train(training, search.run));
  return LoadTrained(bytes);
}

// Otherwise overflowed numbers would be found only at the first prediction.
Status XgboostModel::LoadTrained(const std::string& bytes) {
  RETURN_IF_ERROR(CheckBooster(bytes, parameters_, layout_.columns())
                      .Because("the training made a model that nothing could be predicted from"));
  return LoadRaw(bytes);
}

// The metrics of the training rows cost a quarter of a round on a million rows, those of the
// validation rows a tenth. So they are computed every round up to this many rows, and every tenth
// round up to ten times as many; in the first and the last round always. Early stopping needs those
// of the validation rows in every round.
constexpr uint64_t kRowsToldEveryRound = 100'000;

Status XgboostModel::Evaluate(const std::vector<void*>& matrices, int iteration, bool with_train,
                              RoundMetrics* metrics) const {
  static const char* kNames[] = {"train", "validation"};
  const size_t first = with_train ? 0 : 1;
  std::vector<void*> evaluated(matrices.begin() + static_cast<std::ptrdiff_t>(first),
                               matrices.end());
  if (evaluated.empty()) {
    return OkStatus();
  }
  const char* line = nullptr;
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterEvalOneIter(booster_.get(), iteration, evaluated.data(),
                                                  kNames + first, evaluated.size(), &line),
                   "evaluating"));
  RoundMetrics fresh = ParseRoundMetrics(line);
  if (parameters_.learns_scaled) {
    RestoreErrors(parameters_.label_scale.scale, &fresh);
  }
  std::erase_if(*metrics, [&](const auto& metric) {
    return with_train || !metric.first.starts_with("train-");
  });
  metrics->insert(metrics->end(), fresh.begin(), fresh.end());
  return OkStatus();
}

Status XgboostModel::RunRounds(const std::vector<void*>& matrices,
                               const std::function<void(const Round&)>& progress,
                               const std::stop_token& stop, const std::stop_token& finish) {
  int first = 0;
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterBoostedRounds(booster_.get(), &first), "training"));
  bst_ulong rows = 0;
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGDMatrixNumRow(matrices.front(), &rows), "training"));
  const auto interval = static_cast<int>(rows / kRowsToldEveryRound) + 1;
  BestRound best(matrices.size() > 1 ? parameters_.early_stopping_rounds : 0);
  RoundMetrics metrics;
  for (int i = 0; i < parameters_.rounds; ++i) {
    if (stop.stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    RETURN_IF_ERROR(CheckXgboost(
        Xgboost().XGBoosterUpdateOneIter(booster_.get(), first + i, matrices.front()), "training"));
    const bool finishing = finish.stop_requested();
    const bool told = i % interval == 0 || i + 1 == parameters_.rounds || finishing;
    if (told || parameters_.early_stopping_rounds > 0) {
      RETURN_IF_ERROR(Evaluate(matrices, first + i, told, &metrics));
    }
    Round round{.round = i + 1, .rounds = parameters_.rounds, .best = 0, .metrics = metrics};
    const bool enough = best.Note(i, round.metrics);
    round.best = best.round() ? *best.round() + 1 : 0;
    if (progress) {
      progress(round);
    }
    if (enough || finish.stop_requested()) {
      break;
    }
  }
  return best.round() ? KeepRounds(first + *best.round() + 1) : OkStatus();
}

Status XgboostModel::KeepRounds(int count) {
  int rounds = 0;
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterBoostedRounds(booster_.get(), &rounds), "training"));
  if (count >= rounds || parameters_.booster == BoostingParameters::Booster::kLinear) {
    return OkStatus();  // a linear model has no rounds to undo
  }
  void* kept = nullptr;
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBoosterSlice(booster_.get(), 0, count, 1, &kept),
                               "keeping the best rounds"));
  booster_.reset(kept);
  return OkStatus();
}

Result<std::string> XgboostModel::SaveRaw(std::string_view format) const {
  if (booster_ == nullptr) {
    return Internal("a boosted model is saved before it was trained");
  }
  bst_ulong size = 0;
  const char* bytes = nullptr;
  const std::string settings = fmt::format(R"({{"format":"{}"}})", format);
  RETURN_IF_ERROR(CheckXgboost(
      Xgboost().XGBoosterSaveModelToBuffer(booster_.get(), settings.c_str(), &size, &bytes),
      "saving the model"));
  return std::string(bytes, size);
}

Status XgboostModel::LoadRaw(std::string_view bytes) {
  void* handle = nullptr;
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBoosterCreate(nullptr, 0, &handle), "making a booster"));
  BoosterHolder booster(handle);
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterLoadModelFromBuffer(handle, bytes.data(), bytes.size()),
                   "loading the model"));
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterSetParam(handle, "verbosity", "0"), "loading the model"));
  if (parameters_.threads > 0) {
    const std::string threads = std::to_string(parameters_.threads);
    RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBoosterSetParam(handle, "nthread", threads.c_str()),
                                 "loading the model"));
  }
  bst_ulong columns = 0;
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterGetNumFeature(handle, &columns), "loading the model"));
  if (columns != layout_.columns()) {
    return InvalidArgument(
        fmt::format("the stored model has {} columns, its plan {}", columns, layout_.columns()));
  }
  booster_ = std::move(booster);
  return OkStatus();
}

// The stored form: "SLXG", the checksum of the rest, libxgboost's UBJSON.
constexpr std::string_view kMagic = "SLXG";
constexpr size_t kHeader = kMagic.size() + sizeof(uint64_t);

Result<std::string> XgboostModel::Save() const {
  ASSIGN_OR_RETURN(const std::string raw, SaveRaw());
  const uint64_t checksum = ChecksumOf(raw);
  std::string bytes(kMagic);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  return bytes + raw;
}

Status XgboostModel::Load(std::string_view bytes) {
  uint64_t checksum = 0;
  const bool whole = bytes.size() > kHeader && bytes.starts_with(kMagic);
  if (whole) {
    std::memcpy(&checksum, bytes.data() + kMagic.size(), sizeof(checksum));
  }
  if (!whole || checksum != ChecksumOf(bytes.substr(kHeader))) {
    return InvalidArgument("the stored model is damaged: it is not as XGBoost saved it")
        .Hint("train the model again, or roll back to an older version");
  }
  RETURN_IF_ERROR(CheckBooster(bytes.substr(kHeader), parameters_, layout_.columns()));
  return LoadRaw(bytes.substr(kHeader));
}

Status XgboostModel::PredictInPlace(const RowMatrix& rows, const char* settings,
                                    const float** scores) {
  bst_ulong const* shape = nullptr;
  bst_ulong dimensions = 0;
  const int code =
      layout_.sparse()
          ? Xgboost().XGBoosterPredictFromCSR(booster_.get(), rows.RowEndsInterface().c_str(),
                                              rows.ColumnsInterface().c_str(),
                                              rows.ValuesInterface().c_str(), layout_.columns(),
                                              settings, nullptr, &shape, &dimensions, scores)
          : Xgboost().XGBoosterPredictFromDense(booster_.get(), rows.DenseInterface().c_str(),
                                                settings, nullptr, &shape, &dimensions, scores);
  RETURN_IF_ERROR(CheckXgboost(code, "predicting"));
  return CheckShape(shape, dimensions, rows.rows());
}

// A linear booster reads only matrices.
Status XgboostModel::PredictLinear(const FeatureBatch& batch, const float** scores) {
  RETURN_IF_ERROR(rows_.Fill(batch));
  void* handle = nullptr;
  const std::string settings =
      fmt::format(R"({{"missing":NaN,"nthread":{}}})", parameters_.threads);
  const int code =
      layout_.sparse()
          ? Xgboost().XGDMatrixCreateFromCSR(
                rows_.RowEndsInterface().c_str(), rows_.ColumnsInterface().c_str(),
                rows_.ValuesInterface().c_str(), layout_.columns(), settings.c_str(), &handle)
          : Xgboost().XGDMatrixCreateFromDense(rows_.DenseInterface().c_str(), settings.c_str(),
                                               &handle);
  RETURN_IF_ERROR(CheckXgboost(code, "predicting"));
  linear_rows_.reset(handle);
  bst_ulong const* shape = nullptr;
  bst_ulong dimensions = 0;
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterPredictFromDMatrix(booster_.get(), handle, kPredictSettings,
                                                         &shape, &dimensions, scores),
                   "predicting"));
  return CheckShape(shape, dimensions, batch.rows);
}

Status XgboostModel::Predict(const FeatureBatch& batch, std::vector<double>* predictions) {
  if (booster_ == nullptr) {
    return Internal("a boosted model predicts before it was trained or loaded");
  }
  predictions->clear();
  if (batch.rows == 0) {
    return OkStatus();
  }
  const float* scores = nullptr;
  if (parameters_.booster == BoostingParameters::Booster::kLinear) {
    RETURN_IF_ERROR(PredictLinear(batch, &scores));
  } else {
    RETURN_IF_ERROR(rows_.Fill(batch));
    RETURN_IF_ERROR(PredictInPlace(rows_, kPredictSettings, &scores));
  }
  return TakeScores(scores, batch.rows, predictions);
}

// Checks that libxgboost's result has the expected shape.
Status XgboostModel::CheckShape(const bst_ulong* shape, bst_ulong dimensions, size_t rows) const {
  size_t count = 1;
  for (bst_ulong i = 0; i < dimensions; ++i) {
    count *= shape[i];
  }
  return count == rows * parameters_.raw_outputs
             ? OkStatus()
             : Internal(fmt::format("XGBoost predicts {} numbers for {} rows", count, rows));
}

Status XgboostModel::TakeScores(const float* scores, size_t rows,
                                std::vector<double>* predictions) const {
  const size_t raw = parameters_.raw_outputs;
  if (raw == parameters_.outputs) {
    predictions->assign(scores, scores + rows * raw);
  } else {  // two classes of multi:softprob: take the second one's probability
    predictions->resize(rows);
    for (size_t r = 0; r < rows; ++r) {
      (*predictions)[r] = static_cast<double>(scores[r * raw + 1]);
    }
  }
  if (parameters_.objective == "binary:logitraw") {
    std::vector<float> probabilities(predictions->begin(), predictions->end());
    ActiveKernels().sigmoid(probabilities.data(), probabilities.size());
    std::copy(probabilities.begin(), probabilities.end(), predictions->begin());
  }
  if (parameters_.learns_scaled) {
    for (double& one : *predictions) {
      one = parameters_.label_scale.Predicted(one);
    }
  }
  return OkStatus();
}

Result<std::vector<GradientBoosting::Importance>> XgboostModel::FeatureImportance() const {
  if (booster_ == nullptr) {
    return Internal("a boosted model is explained before it was trained or loaded");
  }
  const bool linear = parameters_.booster == BoostingParameters::Booster::kLinear;
  ASSIGN_OR_RETURN(auto importance, ImportanceOfFeatures(booster_.get(), layout_, linear));
  if (parameters_.learns_scaled) {
    const double scale = parameters_.label_scale.scale;
    for (Importance& one : importance) {  // weights are in the label's unit, gains in its square
      one.gain *= linear ? scale : scale * scale;
    }
  }
  return importance;
}

Result<GradientBoosting::Exported> XgboostModel::Export(const ModelSpec& spec) const {
  ASSIGN_OR_RETURN(const std::string json, SaveRaw("json"));
  return ExportBooster(json, spec, *transform_, layout_, parameters_);
}

}  // namespace

void BoosterFree::operator()(void* handle) const {
  Xgboost().XGBoosterFree(handle);
}

bool GradientBoosting::GrowsHere(const ModelSpec& spec) {
  const Result<BoostingParameters> parameters = ParametersOf(spec);
  return parameters.ok() && histogram::Learns(*parameters);
}

Result<std::unique_ptr<GradientBoosting>> GradientBoosting::Make(const ModelSpec& spec) {
  RETURN_IF_ERROR(LoadXgboost());
  // libxgboost would print its warnings to the process's standard output.
  RETURN_IF_ERROR(CheckXgboost(Xgboost().XGBRegisterLogCallback(IgnoreLog), "starting"));
  ASSIGN_OR_RETURN(BoostingParameters parameters, ParametersOf(spec));
  ASSIGN_OR_RETURN(auto transform,
                   FeatureTransform::Make(spec.features(), FeatureTransform::Target::kTrees));
  ASSIGN_OR_RETURN(ColumnLayout layout, ColumnLayout::Make(spec, *transform, parameters));
  return std::unique_ptr<GradientBoosting>(std::make_unique<XgboostModel>(
      std::move(transform), std::move(layout), std::move(parameters)));
}

}  // namespace sluice::models
