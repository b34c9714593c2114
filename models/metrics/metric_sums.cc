#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/check.h"
#include "models/features/label_quantiles.h"
#include "models/metrics/metric_state_internal.h"

namespace sluice::models {
namespace {

// Probabilities are floats: a value closer to 0 or 1 than this is rounding, not confidence.
constexpr double kMinProbability = 1e-7;
constexpr size_t kBinaryBins = size_t{1} << 17;  // 5 MB at most, 0.5 MB serialised
constexpr size_t kClassBins = size_t{1} << 12;
constexpr size_t kMaxCurves = 100;  // classes with a curve each: 16 MB
// Rows of one query that are kept until it ends; a longer query is measured in pieces.
constexpr size_t kLongestQuery = size_t{1} << 20;

double LogLoss(double probability) {
  return -std::log(std::clamp(probability, kMinProbability, 1 - kMinProbability));
}

double WeightOf(std::span<const float> weights, size_t row) {
  return weights.empty() ? 1 : static_cast<double>(weights[row]);
}

double NumberBehind(std::string_view prefix, std::string_view name) {
  double number = 0;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return number;
}

double Ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

Metrics::State::State(Task task_of_it, size_t outputs_of_it)
    : task(task_of_it), outputs(outputs_of_it) {
  SLUICE_CHECK(outputs >= 1, "metrics of no outputs");
  numbers.resize(task == Task::kRegression ? outputs : 1);
  if (task == Task::kBinary) {
    classes.classes.resize(2);
    classes.curves.emplace_back(kBinaryBins);
  } else if (task == Task::kMulticlass) {
    classes.classes.resize(outputs);
    if (outputs <= kMaxCurves) {
      classes.curves.assign(outputs, ScoreHistogram(kClassBins));
    }
  }
}

void Metrics::State::AddBinary(std::span<const double> predictions, std::span<const double> labels,
                               std::span<const float> weights) {
  for (size_t row = 0; row < labels.size(); ++row) {
    // With two outputs, the last one is the positive class's probability.
    const double probability = predictions[row * outputs + outputs - 1];
    const double w = WeightOf(weights, row);
    const size_t actual = labels[row] > 0.5 ? 1 : 0;
    const bool taken = threshold ? probability >= *threshold : probability > 0.5;
    const size_t predicted = taken ? 1 : 0;
    weight += w;
    classes.classes[actual].actual += w;
    classes.classes[predicted].predicted += w;
    classes.classes[actual].hits += actual == predicted ? w : 0;
    classes.loss += w * LogLoss(actual == 1 ? probability : 1 - probability);
    classes.score += w * probability;
    const double miss = probability - static_cast<double>(actual);
    classes.brier += w * miss * miss;
    classes.curves.front().Add(static_cast<float>(probability), actual == 1, w);
  }
}

void Metrics::State::AddClasses(std::span<const double> predictions, std::span<const double> labels,
                                std::span<const float> weights) {
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const double> scores = predictions.subspan(row * outputs, outputs);
    const double w = WeightOf(weights, row);
    const auto actual = static_cast<size_t>(labels[row]);
    SLUICE_CHECK(actual < outputs, "a class id outside the model's classes");
    const auto predicted =
        static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    weight += w;
    classes.classes[actual].actual += w;
    classes.classes[predicted].predicted += w;
    classes.classes[actual].hits += actual == predicted ? w : 0;
    classes.loss += w * LogLoss(scores[actual]);
    for (size_t i = 0; i < classes.curves.size(); ++i) {
      classes.curves[i].Add(static_cast<float>(scores[i]), actual == i, w);
    }
  }
}

void Metrics::State::AddNumbers(std::span<const double> predictions, std::span<const double> labels,
                                std::span<const float> weights) {
  SLUICE_CHECK(labels.size() == predictions.size(), "one label per predicted number");
  for (size_t i = 0; i < labels.size(); ++i) {
    const double w = WeightOf(weights, i / outputs);
    if (w == 0) {
      continue;
    }
    NumberSums& sums = numbers[i % outputs];
    const double label = labels[i] / sums.unit;
    const double error = predictions[i] / sums.unit - label;
    sums.weight += w;
    sums.error += w * error;
    sums.absolute += w * std::abs(error);
    sums.squared += w * error * error;
    if (label != 0) {
      sums.percent += w * std::abs(error / label);
      sums.percent_weight += w;
    }
    const double distance = label - sums.mean;
    sums.mean += distance * (w / sums.weight);  // exactly the label if all are the same
    sums.deviation += w * distance * (label - sums.mean);
  }
}

void Metrics::State::AddQuantiles(std::span<const double> predictions,
                                  std::span<const double> labels, std::span<const float> weights) {
  SLUICE_CHECK(quantiles.size() == outputs, "one prediction per quantile");
  for (size_t row = 0; row < labels.size(); ++row) {
    const double w = WeightOf(weights, row);
    weight += w;
    for (size_t i = 0; i < outputs; ++i) {
      QuantileSums& sums = quantiles[i];
      const double error = labels[row] - predictions[row * outputs + i];
      sums.loss += w * error * (error > 0 ? sums.quantile : sums.quantile - 1);
      sums.covered += error > 0 ? 0 : w;
    }
  }
}

double NdcgOf(std::vector<std::pair<double, double>> rows) {
  const auto gain = [](double label) { return std::exp2(label) - 1; };
  const auto sum = [&rows, &gain] {
    double total = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      total += gain(rows[i].second) / std::log2(static_cast<double>(i) + 2);
    }
    return total;
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const double found = sum();
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const double ideal = sum();
  return ideal > 0 ? found / ideal : 1;
}

void CloseQuery(RankingSums* sums) {
  if (sums->open && !sums->rows.empty()) {
    sums->ndcg += NdcgOf(sums->rows);
    sums->queries += 1;
  }
  sums->open = false;
  sums->rows.clear();
}

void Metrics::State::AddRanking(std::span<const double> predictions, std::span<const double> labels,
                                std::span<const int64_t> groups) {
  if (groups.empty()) {
    CloseQuery(&ranking);
  }
  for (size_t row = 0; row < labels.size(); ++row) {
    const int64_t group = groups.empty() ? 0 : groups[row];
    if (ranking.open && (group != ranking.group || ranking.rows.size() >= kLongestQuery)) {
      CloseQuery(&ranking);
    }
    ranking.open = true;
    ranking.group = group;
    ranking.rows.emplace_back(predictions[row * outputs], labels[row]);
  }
  if (groups.empty()) {
    CloseQuery(&ranking);
  }
  weight += static_cast<double>(labels.size());
}

double Metrics::State::MeanAuc(ScoreCurves* curves) const {
  double sum = 0, known = 0;
  for (size_t i = 0; i < classes.curves.size(); ++i) {
    const double auc = curves->Of(i).Auc();
    if (!std::isnan(auc)) {
      sum += auc;
      known += 1;
    }
  }
  return known > 0 ? sum / known : kNotANumber;
}

double Metrics::State::ClassValue(std::string_view name, ScoreCurves* curves) const {
  if (!(weight > 0)) {
    return kNotANumber;
  }
  double hits = 0, chance = 0;
  double precision = 0, recall = 0, f1 = 0, seen = 0, recalled = 0, actual_classes = 0;
  for (const ClassSums::Class& one : classes.classes) {
    hits += one.hits;
    chance += one.predicted / weight * (one.actual / weight);
    // As in scikit-learn's macro average, classes that occur neither as label nor as prediction are
    // left out.
    if (one.predicted > 0 || one.actual > 0) {
      seen += 1;
      precision += Ratio(one.hits, one.predicted);
      recall += Ratio(one.hits, one.actual);
      f1 += Ratio(2 * one.hits, one.predicted + one.actual);
    }
    if (one.actual > 0) {
      actual_classes += 1;
      recalled += one.hits / one.actual;
    }
  }
  const ClassSums::Class& positive = classes.classes.back();
  const bool binary = task == Task::kBinary;
  if (name == "accuracy") {
    return hits / weight;
  }
  if (name == "zero_one_loss") {
    return 1 - hits / weight;
  }
  if (name == "log_loss") {
    return classes.loss / weight;
  }
  if (name == "precision") {
    return binary ? Ratio(positive.hits, positive.predicted) : precision / seen;
  }
  if (name == "recall") {
    return binary ? Ratio(positive.hits, positive.actual) : recall / seen;
  }
  if (name == "f1") {
    return binary ? Ratio(2 * positive.hits, positive.predicted + positive.actual) : f1 / seen;
  }
  if (name == "balanced_accuracy") {
    return recalled / actual_classes;
  }
  if (name == "cohen_kappa") {
    return chance < 1 ? (hits / weight - chance) / (1 - chance) : kNotANumber;
  }
  if (name == "auc") {
    return MeanAuc(curves);
  }
  return binary ? BinaryValue(name, curves) : kNotANumber;
}

// Behind the prefix: a probability, or the rule by which the rows choose it.
double Metrics::State::ThresholdBy(std::string_view prefix, std::string_view name,
                                   ScoreCurves* curves) const {
  const std::string_view rule = name.substr(prefix.size());
  if (rule == kByF1) {
    return curves->Of(0).BestF1().threshold;
  }
  if (rule.starts_with(kByCost)) {
    return BinaryValue(Metrics::CostThresholdName(rule.substr(kByCost.size())), curves);
  }
  return NumberBehind(prefix, name);
}

double Metrics::State::BinaryValue(std::string_view name, ScoreCurves* curves) const {
  const ClassSums::Class& positive = classes.classes.back();
  if (name == "pr_auc") {
    return curves->Of(0).AveragePrecision();
  }
  if (name == "best_f1") {
    return curves->Of(0).BestF1().f1;
  }
  if (name == "best_f1_threshold") {
    return curves->Of(0).BestF1().threshold;
  }
  if (name.starts_with(kTruePositivesFrom)) {
    return curves->Of(0).From(ThresholdBy(kTruePositivesFrom, name, curves)).positive;
  }
  if (name.starts_with(kFalsePositivesFrom)) {
    return curves->Of(0).From(ThresholdBy(kFalsePositivesFrom, name, curves)).negative;
  }
  if (name.starts_with(kCostThreshold)) {
    const double cost = NumberBehind(kCostThreshold, name);
    return cost > 0 ? curves->Of(0).LeastCost(cost).threshold : kNotANumber;
  }
  if (name == "calibration") {
    return positive.actual > 0 ? classes.score / positive.actual : kNotANumber;
  }
  if (name == "brier_score") {
    return classes.brier / weight;
  }
  if (name == "true_positives") {
    return positive.hits;
  }
  if (name == "false_positives") {
    return positive.predicted - positive.hits;
  }
  if (name == "true_negatives") {
    return classes.classes.front().hits;
  }
  return name == "false_negatives" ? positive.actual - positive.hits : kNotANumber;
}

namespace {

double ValueOf(const NumberSums& numbers, std::string_view name) {
  const double total = numbers.weight;
  if (!(total > 0)) {
    return kNotANumber;
  }
  const bool spread = numbers.deviation > 0;
  if (name == "rmse") {
    return std::sqrt(numbers.squared / total) * numbers.unit;
  }
  if (name == "mae") {
    return numbers.absolute / total * numbers.unit;
  }
  if (name == "mse") {
    return numbers.squared / total * numbers.unit * numbers.unit;
  }
  if (name == "r2") {
    return spread ? 1 - numbers.squared / numbers.deviation : kNotANumber;
  }
  if (name == "explained_variance") {
    const double unexplained = numbers.squared - numbers.error * numbers.error / total;
    return spread ? 1 - unexplained / numbers.deviation : kNotANumber;
  }
  if (name == "mape") {
    return numbers.percent_weight > 0 ? 100 * numbers.percent / numbers.percent_weight
                                      : kNotANumber;
  }
  return kNotANumber;
}

}  // namespace

// With several numbers, the average of their values, as in scikit-learn.
double Metrics::State::NumberValue(std::string_view name) const {
  double sum = 0, known = 0;
  for (const NumberSums& one : numbers) {
    const double value = ValueOf(one, name);
    if (!std::isnan(value)) {
      sum += value;
      known += 1;
    }
  }
  return known > 0 ? sum / known : kNotANumber;
}

double Metrics::State::QuantileValue(std::string_view name) const {
  if (!(weight > 0)) {
    return kNotANumber;
  }
  double loss = 0;
  for (const QuantileSums& sums : quantiles) {
    if (name == std::string(kCoverage) + QuantileName(sums.quantile)) {
      return sums.covered / weight;
    }
    loss += sums.loss;
  }
  return name == "pinball_loss" ? loss / weight / static_cast<double>(outputs) : kNotANumber;
}

}  // namespace sluice::models
