#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"

namespace sluice::models {

class Calibration;

// Fits the probabilities of a classifier to how often what it says is so. Of several classes each
// against the others. Not thread-safe.
class CalibrationFit {
 public:
  // `outputs`: of the model for each row: one of two classes.
  explicit CalibrationFit(size_t outputs);
  ~CalibrationFit();

  // Rows that the model was not trained on, as Metrics::Add.
  void Add(std::span<const float> predictions, std::span<const float> labels,
           std::span<const float> weights);

  // Fills in the curves of `method`: "platt" or "isotonic". The curve of a class that the rows do
  // not tell from the others is the identity.
  void Fit(Calibration* calibration) const;

 private:
  struct Bin {
    double score = 0;  // sum over the rows
    double positive = 0;
    double weight = 0;
  };
  const size_t outputs_;
  std::vector<std::vector<Bin>> bins_;  // by output, by score
};

// What is stored may come from elsewhere: whether it fits a model of so many outputs.
Status CheckCalibration(const Calibration& calibration, size_t outputs);

// From scores to probabilities, rows x outputs, in place. Without curves: nothing is done.
// `calibration` is one that CheckCalibration accepts.
void Calibrate(const Calibration& calibration, size_t outputs, std::span<float> scores);

}  // namespace sluice::models
