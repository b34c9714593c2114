#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"

namespace sluice::models {

class Calibration;

// Fits a classifier's probabilities to observed frequencies; with several classes, each against the
// others. Not thread-safe.
class CalibrationFit {
 public:
  // `outputs`: number per row; one for two classes.
  explicit CalibrationFit(size_t outputs);
  ~CalibrationFit();

  // Rows that the model was not trained on, as for Metrics::Add.
  void Add(std::span<const double> predictions, std::span<const double> labels,
           std::span<const float> weights);

  // Fills in the curves of `method`: "platt" or "isotonic". The curve is the identity for a class
  // whose scores do not separate it from the others in these rows.
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

// Checks that a calibration, which may come from a stored model, fits a model with this many
// outputs.
Status CheckCalibration(const Calibration& calibration, size_t outputs);

// Converts scores to probabilities in place, rows x outputs. Does nothing without curves.
// CheckCalibration must have accepted `calibration`.
void Calibrate(const Calibration& calibration, size_t outputs, std::span<double> scores);

}  // namespace sluice::models
