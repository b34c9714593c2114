#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/metrics/metric.h"
#include "models/metrics/score_histogram_internal.h"

namespace sluice::models {

// Prefix before the cost of a missed positive: names the threshold of least cost.
inline constexpr std::string_view kCostThreshold = "cost_threshold:";
// Prefixes before a threshold: names the weight of true, and of false, positives from it on.
inline constexpr std::string_view kTruePositivesFrom = "true_positives@";
inline constexpr std::string_view kFalsePositivesFrom = "false_positives@";
// In place of the threshold: the rule that chooses it ("cost:5").
inline constexpr std::string_view kByF1 = "f1";
inline constexpr std::string_view kByCost = "cost:";

// Sums that all classification metrics are computed from. Binary is the case of two classes.
struct ClassSums {
  struct Class {
    double hits = 0;       // weight of rows predicted as this class and of this class
    double predicted = 0;  // weight of rows predicted as it
    double actual = 0;     // weight of rows of it
  };
  std::vector<Class> classes;
  double loss = 0;
  double score = 0;                    // binary: sum of the positive class's probability
  double brier = 0;                    // binary
  std::vector<ScoreHistogram> curves;  // binary: one; multiclass: one per class, or none
};

// The curves of the sums, each sorted once, when a metric first needs it.
class ScoreCurves {
 public:
  explicit ScoreCurves(const ClassSums& sums) : sums_(sums), curves_(sums.curves.size()) {}
  const ScoreCurve& Of(size_t i) {
    if (!curves_[i].has_value()) {
      curves_[i] = sums_.curves[i].Curve();
    }
    return *curves_[i];
  }

 private:
  const ClassSums& sums_;
  std::vector<std::optional<ScoreCurve>> curves_;
};

// For one predicted number. Numbers whose squares no double holds are counted in a unit of their
// magnitude, a power of two.
struct NumberSums {
  double unit = 1;
  double weight = 0;
  double absolute = 0, squared = 0, error = 0;
  double percent = 0, percent_weight = 0;  // over labels that are not 0
  double mean = 0, deviation = 0;          // of labels: Welford's mean and sum of squares
};

// For one predicted quantile.
struct QuantileSums {
  double quantile = 0;
  double loss = 0;
  double covered = 0;  // weight of rows whose label is not above it
};

// Of a model's own loss.
struct OwnLossSums {
  double loss = 0;
  double weight = 0;
};

struct RankingSums {
  double ndcg = 0;
  double queries = 0;
  bool open = false;  // a query that may continue in the next call
  int64_t group = 0;
  std::vector<std::pair<double, double>> rows;  // of the open query: score, label
};

struct Metrics::State {
  Task task = Task::kBinary;
  size_t outputs = 1;
  double rows = 0;
  double weight = 0;
  std::optional<double> threshold;  // of a binary decision; not serialised
  ClassSums classes;
  std::vector<NumberSums> numbers;  // regression: one per number of the label; else one, unused
  RankingSums ranking;
  std::vector<QuantileSums> quantiles;  // one per output; empty until they are known
  std::optional<OwnLossSums> own_loss;  // nullopt: the model has none, or it is not known yet

  State(Task task_of_it, size_t outputs_of_it);
  void AddBinary(std::span<const double> predictions, std::span<const double> labels,
                 std::span<const float> weights);
  void AddClasses(std::span<const double> predictions, std::span<const double> labels,
                  std::span<const float> weights);
  void AddNumbers(std::span<const double> predictions, std::span<const double> labels,
                  std::span<const float> weights);
  void AddQuantiles(std::span<const double> predictions, std::span<const double> labels,
                    std::span<const float> weights);
  void AddRanking(std::span<const double> predictions, std::span<const double> labels,
                  std::span<const int64_t> groups);
  double Value(std::string_view name, ScoreCurves* curves) const;
  double ClassValue(std::string_view name, ScoreCurves* curves) const;
  double MeanAuc(ScoreCurves* curves) const;
  double BinaryValue(std::string_view name, ScoreCurves* curves) const;
  double ThresholdBy(std::string_view prefix, std::string_view name, ScoreCurves* curves) const;
  double NumberValue(std::string_view name) const;
  double QuantileValue(std::string_view name) const;
};

inline constexpr std::string_view kOwnLoss = "own_loss";
// Begins the name of the metric of a quantile, before its QuantileName.
inline constexpr std::string_view kCoverage = "coverage_";

// NDCG over all rows of one query.
double NdcgOf(std::vector<std::pair<double, double>> rows);
void CloseQuery(RankingSums* sums);

}  // namespace sluice::models
