#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::models {

class ModelSpec;

enum class Task { kBinary, kMulticlass, kRegression, kRanking, kQuantiles };

// The task of a model, which determines its metrics: ranking or quantiles if its objective or loss
// says so, else by its label.
Task TaskOf(const ModelSpec& model);

// All metrics of a task, accumulated batch by batch, mergeable across shards in any order, in
// memory that does not depend on the number of rows. AUC and PR-AUC are exact while there are few
// distinct scores, then from a histogram that refines where scores are (error <= 1e-4). binary:
// auc, pr_auc, log_loss, accuracy, precision, recall, f1, calibration (mean score / base rate);
// multiclass: accuracy, log_loss, macro precision/recall/f1, auc (macro one-vs-rest, up to 100
// classes); regression: rmse, mae, r2, mse, mape (percent, over labels that are not 0); ranking:
// ndcg (gain 2^label - 1; 1 for a query without a relevant row); quantiles: pinball_loss (their
// mean), and of each coverage_q10, the share of rows whose label is not above it. A model with a
// loss of its own also has own_loss, the mean of that.
// Not thread-safe.
class Metrics {
 public:
  Metrics(Task task, size_t outputs);
  // Of the model's task; of its quantiles, its own loss and its label's magnitude, which the other
  // constructor does not know: sums made by it learn them from those that are merged into them.
  Metrics(const ModelSpec& model, size_t outputs);
  ~Metrics();
  Metrics(Metrics&&) noexcept;
  Metrics& operator=(Metrics&&) noexcept;

  // predictions: rows x outputs as from Network::Predict; labels: rows (class ids or numbers, in
  // the label's own unit), or rows x outputs for vector labels, as from FeatureBatch::OwnLabels;
  // weights: rows, or empty; groups:
  // the query of every row for ranking (empty: all rows are one query). The rows of a query are
  // adjacent, also across calls.
  void Add(std::span<const double> predictions, std::span<const double> labels,
           std::span<const float> weights, std::span<const int64_t> groups = {});
  // The weighted sum of the model's own losses of some rows, and the sum of the weights.
  void AddOwnLoss(double loss, double weight);
  // Predict the second of two classes from this probability on; the default is 0.5. Call before any
  // row is added. Affects metrics that depend on decisions; it is not serialised.
  void DecideFrom(double threshold);
  void Merge(const Metrics& other);
  std::string Serialize() const;
  static Result<Metrics> Deserialize(std::string_view bytes);

  // The standard metrics of the task in a stable order; NaN where undefined (AUC of one class).
  std::vector<std::pair<std::string, double>> Values() const;
  // Followed by those of `further`, by their canonical names, that are not among them.
  std::vector<std::pair<std::string, double>> Values(const std::vector<std::string>& further) const;
  // One of Names(task), including those that Values leaves out; NaN for any other name.
  double Value(std::string_view canonical_name) const;
  double rows() const;

  // Converts SQLFlow's spellings ("Accuracy", "AUC", "accuracy_score") to ours; empty if unknown.
  static std::string CanonicalName(std::string_view name);
  // All metrics that can be requested: those of Values first. Of quantiles only what all such
  // models have; the second form knows the model's.
  static std::vector<std::string> Names(Task task);
  static std::vector<std::string> Names(const ModelSpec& model);
  // Those of Values.
  static std::vector<std::string> StandardNames(const ModelSpec& model);
  // The metric whose value is the threshold of least cost, if a missed positive costs this much and
  // a false one 1.
  static std::string CostThresholdName(std::string_view cost);
  static bool HigherIsBetter(std::string_view canonical_name);

 private:
  struct State;
  explicit Metrics(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::models
