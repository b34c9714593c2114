#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/trees/histogram/gradient_sums.h"

namespace sluice::models::histogram {

struct ObjectiveSettings {
  std::string name;  // XGBoost's: "binary:logistic"
  size_t classes = 0;
  double scale_pos_weight = 1;
  double tweedie_variance_power = 1.5;
  double huber_slope = 1;
  double poisson_max_delta_step = 0.7;
};

// What trees minimise, as in XGBoost 1.7; the same bits on every machine. Immutable, thread-safe.
class Objective {
 public:
  static bool Knows(std::string_view name);
  // Precondition: Knows(settings.name).
  static std::unique_ptr<Objective> Make(const ObjectiveSettings& settings);
  virtual ~Objective() = default;

  // Margins for each row, and trees for each round.
  virtual size_t outputs() const { return 1; }
  // "": it can be learnt; else what labels must be.
  virtual std::string_view Refusal(float /*label*/) const { return ""; }
  // Of rows that weigh 1: rows x outputs().
  virtual void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
                      double* hessians) const = 0;
  // The largest that derivatives can be, of rows that weigh 1; nullopt: that depends.
  virtual std::optional<GradientRange> Bounds() const { return std::nullopt; }
  // In what the weighted mean of all labels gives the best constant: ToMean(label); and the base
  // score that this mean is. Not of objectives that begin at 0.5.
  virtual std::optional<double> ToMean(float /*label*/) const { return std::nullopt; }
  virtual double WeightInMean(float /*label*/) const { return 1; }
  virtual double BaseScore(double mean) const { return mean; }
  // A margin of what a base score says, as libxgboost computes it: nullopt: it may not be that.
  virtual std::optional<float> Margin(float base_score) const { return base_score; }
  // In place: what metrics compare with labels; rows x outputs().
  virtual void Predict(size_t /*rows*/, double* /*margins*/) const {}
  virtual std::string DefaultMetric() const = 0;
  // XGBoost's object of the objective's settings; name "": none.
  struct Stored {
    std::string name;
    std::vector<std::pair<std::string, std::string>> settings;
  };
  virtual Stored ToStore() const { return {}; }
};

}  // namespace sluice::models::histogram
