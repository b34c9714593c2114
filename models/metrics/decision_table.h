#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::models {

// The outcome of predicting the second of two classes from a given probability on: weights of rows.
struct Decision {
  double threshold = 0;
  double true_positives = 0, false_positives = 0, true_negatives = 0, false_negatives = 0;

  double precision() const;  // 0 if no row is taken
  double recall() const;     // 0 without positives
  double f1() const;
  double taken() const;  // share of all rows predicted to be of the second class
  // By its name in Metrics; nullopt: it does not depend on decisions.
  std::optional<double> Value(std::string_view name) const;
};

// The metrics of a binary task that a decision table is made from, to be requested from
// Metrics::Values; the first four are the counts of the confusion matrix.
std::vector<std::string> DecisionMetrics();
// Whether it is one of the others, which are useful only in a table.
bool IsDecisionMetric(std::string_view name);

// At some ten probabilities, ascending; empty if `metrics` lacks those counts.
std::vector<Decision> DecisionTable(const std::vector<std::pair<std::string, double>>& metrics);

// What DecideBy needs of Metrics::Values. `rule`: a probability, "f1" (the best), or "cost:5" (the
// least, if a missed positive costs 5 and a false one 1).
std::vector<std::string> CountsBy(std::string_view rule);
// Replaces the metrics that depend on decisions by those of predicting the second class from the
// rule's probability on. Without CountsBy's among the metrics it changes nothing.
void DecideBy(std::string_view rule, std::vector<std::pair<std::string, double>>* metrics);

}  // namespace sluice::models
