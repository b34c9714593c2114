#include <charconv>
#include <cmath>
#include <limits>

#include "models/trees/gradient_boosting_internal.h"

namespace sluice::models {
namespace {

bool HigherIsBetter(std::string_view metric) {
  const std::string_view name = metric.substr(metric.find('-') + 1);
  for (const std::string_view rising : {"auc", "map", "ndcg", "pre"}) {
    if (name.starts_with(rising) && name != "mape") {
      return true;
    }
  }
  return false;
}

}  // namespace

RoundMetrics ParseRoundMetrics(std::string_view line) {
  RoundMetrics metrics;
  size_t begin = line.find('\t');
  while (begin != std::string_view::npos) {
    size_t end = line.find('\t', begin + 1);
    const std::string_view part = line.substr(
        begin + 1, end == std::string_view::npos ? std::string_view::npos : end - begin - 1);
    const size_t colon = part.rfind(':');
    if (colon != std::string_view::npos) {
      double value = std::numeric_limits<double>::quiet_NaN();  // libxgboost may print "nan"
      const std::string_view digits = part.substr(colon + 1);
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
      metrics.emplace_back(part.substr(0, colon), value);
    }
    begin = end;
  }
  return metrics;
}

void RestoreErrors(double scale, RoundMetrics* metrics) {
  for (auto& [name, value] : *metrics) {
    value *= name.ends_with("-rmse") || name.ends_with("-mae") ? scale : 1;
  }
}

bool BestRound::Note(int round, const RoundMetrics& metrics) {
  if (patience_ == 0 || metrics.empty()) {
    return false;
  }
  const auto& [name, value] = metrics.back();
  const double better = HigherIsBetter(name) ? value : -value;
  if (!std::isnan(value) && (!best_ || better > *best_)) {
    best_ = better;
    round_ = round;
  }
  return round - round_ >= patience_;
}

}  // namespace sluice::models
