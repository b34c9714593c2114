#include "executor/in_process/calibrate.h"

#include <algorithm>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/further_metrics.h"
#include "elastic/worker/feature_reader.h"
#include "elastic/worker/split.h"
#include "executor/scoring/scorer.h"
#include "models/metrics/calibration.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr size_t kMaxScores = size_t{1} << 24;  // 128 MB

// The mean squared distance of the probabilities from the outcomes, for several classes summed over
// them.
double BrierScore(const ScoredRows& rows, const std::vector<double>& scores) {
  double sum = 0, weight = 0;
  for (size_t row = 0; row < rows.rows(); ++row) {
    const double w = rows.weights.empty() ? 1 : static_cast<double>(rows.weights[row]);
    const auto actual = static_cast<size_t>(rows.labels[row]);
    for (size_t i = 0; i < rows.outputs; ++i) {
      const bool so = rows.outputs == 1 ? actual == 1 : actual == i;
      const double miss = scores[row * rows.outputs + i] - (so ? 1 : 0);
      sum += w * miss * miss;
    }
    weight += w;
  }
  return weight > 0 ? sum / weight : 0;
}

// Calibrates each fifth of the rows by a fit to the other fifths: an estimate for new rows.
std::vector<double> CalibratedByOthers(const ScoredRows& rows, const std::string& method) {
  constexpr size_t kParts = 5;
  const size_t width = rows.outputs;
  std::vector<double> calibrated(rows.scores.size());
  for (size_t part = 0; part < kParts; ++part) {
    models::CalibrationFit fit(width);
    for (size_t row = 0; row < rows.rows(); ++row) {
      if (row % kParts != part) {
        fit.Add(std::span(rows.scores).subspan(row * width, width),
                std::span(rows.labels).subspan(row, 1),
                rows.weights.empty() ? std::span<const float>()
                                     : std::span(rows.weights).subspan(row, 1));
      }
    }
    models::Calibration calibration;
    calibration.set_method(method);
    fit.Fit(&calibration);
    for (size_t row = part; row < rows.rows(); row += kParts) {
      const auto begin = static_cast<int64_t>(row * width);
      std::copy_n(rows.scores.begin() + begin, width, calibrated.begin() + begin);
      models::Calibrate(calibration, width, std::span(calibrated).subspan(row * width, width));
    }
  }
  return calibrated;
}

}  // namespace

void ScoredRows::Append(const ScoredRows& other) {
  if (!other.weights.empty() || !weights.empty()) {
    weights.resize(rows(), 1);
    weights.insert(weights.end(), other.weights.begin(), other.weights.end());
    weights.resize(rows() + other.rows(), 1);
  }
  outputs = other.outputs;
  scores.insert(scores.end(), other.scores.begin(), other.scores.end());
  labels.insert(labels.end(), other.labels.begin(), other.labels.end());
}

bool WantsCalibration(const plan::TrainPlan& plan) {
  return !plan.model().calibration().method().empty();
}

Result<ScoredRows> ScoreValidation(const plan::TrainPlan& plan, catalog::DataSource& source,
                                   const catalog::DatasetSpec& dataset,
                                   const catalog::DatasetSpec* validation, std::string_view weights,
                                   std::stop_token stop) {
  models::ModelSpec model = plan.model();
  model.mutable_features()->mutable_label()->clear_class_weights();
  model.clear_calibration();
  ASSIGN_OR_RETURN(const auto scorer, Scorer::Make(model, weights));
  const catalog::DatasetSpec& from = validation != nullptr ? *validation : dataset;
  elastic::FeatureReader::Options options;
  if (validation == nullptr) {
    ASSIGN_OR_RETURN(options.split, elastic::SplitRule::Make(plan.split()));
  }
  ASSIGN_OR_RETURN(const auto reader,
                   elastic::FeatureReader::Make(source, from, scorer->transform(), options));
  ScoredRows all;
  all.outputs = scorer->outputs();
  int shard = 0;
  models::FeatureBatch rows;
  while (all.scores.size() < kMaxScores) {
    if (stop.stop_requested()) {
      return Cancelled("the training was cancelled");
    }
    if (!reader->open()) {
      if (shard == from.shards_size()) {
        break;
      }
      RETURN_IF_ERROR(reader->Open(elastic::ShardId(shard++)));
    }
    ASSIGN_OR_RETURN(const bool more, reader->Next(scorer->rows_per_batch()));
    if (!more) {
      continue;
    }
    rows.Clear();
    validation == nullptr ? reader->AppendValidation(&rows) : reader->AppendTraining(&rows);
    if (rows.rows == 0) {
      continue;
    }
    ScoredRows scored;
    scored.outputs = all.outputs;
    RETURN_IF_ERROR(scorer->Score(rows, &scored.scores));
    scored.labels = rows.OwnLabels();
    scored.weights = rows.weights;
    all.Append(scored);
  }
  return all;
}

void CalibrateModel(const ScoredRows& rows, plan::TrainPlan* plan,
                    std::vector<std::pair<std::string, double>>* metrics) {
  models::Calibration* calibration = plan->mutable_model()->mutable_calibration();
  if (rows.rows() == 0) {
    return;  // a validation select without rows; there are no metrics either
  }
  models::CalibrationFit fit(rows.outputs);
  fit.Add(rows.scores, rows.labels, rows.weights);
  fit.Fit(calibration);
  const std::vector<double> calibrated = CalibratedByOthers(rows, calibration->method());
  const models::Task task = models::TaskOf(plan->model());
  models::Metrics before(task, rows.outputs), after(task, rows.outputs);
  before.Add(rows.scores, rows.labels, rows.weights);
  after.Add(calibrated, rows.labels, rows.weights);
  calibration->set_rows(static_cast<double>(rows.rows()));
  calibration->set_log_loss_before(before.Value("log_loss"));
  calibration->set_log_loss_after(after.Value("log_loss"));
  calibration->set_brier_before(BrierScore(rows, rows.scores));
  calibration->set_brier_after(BrierScore(rows, calibrated));
  const auto own_loss = std::find_if(metrics->begin(), metrics->end(),
                                     [](const auto& one) { return one.first == "own_loss"; });
  auto calibrated_values = after.Values(elastic::FurtherMetrics(*plan));
  if (own_loss != metrics->end()) {  // is of the outputs, which calibration does not change
    calibrated_values.push_back(*own_loss);
  }
  *metrics = std::move(calibrated_values);
}

}  // namespace sluice::executor
