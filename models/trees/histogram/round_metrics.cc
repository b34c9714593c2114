#include "models/trees/histogram/round_metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/value.h"
#include "models/features/cell_format.h"
#include "models/trees/histogram/exact_math.h"

namespace sluice::models::histogram {
namespace {

// Of a row: the error, from its label and the first of its predictions.
using RowError = std::function<double(double label, const double* predicted)>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeast = 1e-16;
constexpr size_t kRowsPerBlock = 4096;  // sums of blocks are added in their order

double Square(double x) {
  return x * x;
}
double LogOf(double x) {
  return Log(std::max(x, kLeast));
}

struct MetricName {
  std::string_view name;
  std::optional<double> at;
};
MetricName Parse(std::string_view text) {
  const size_t mark = text.find('@');
  if (mark == std::string_view::npos) {
    return {text, std::nullopt};
  }
  return {text.substr(0, mark), ParseNumber(std::string(text.substr(mark + 1)))};
}

RowError OfClasses(std::string_view name, size_t outputs) {
  if (name == "merror") {
    return [outputs](double label, const double* p) {
      return static_cast<double>(std::max_element(p, p + outputs) - p) == label ? 0.0 : 1.0;
    };
  }
  return [](double label, const double* p) { return -LogOf(p[static_cast<size_t>(label)]); };
}

// Precondition: the metric has one, and there is one output.
RowError ErrorOf(const MetricName& metric, const ObjectiveSettings& settings) {
  const std::string_view name = metric.name;
  if (name == "rmse") {
    return [](double y, const double* p) { return Square(*p - y); };
  }
  if (name == "rmsle") {
    return [](double y, const double* p) {
      return *p > -1 && y > -1 ? Square(Log1p(*p) - Log1p(y)) : kNone;
    };
  }
  if (name == "mae") {
    return [](double y, const double* p) { return std::fabs(*p - y); };
  }
  if (name == "mape") {
    return [](double y, const double* p) { return std::fabs((y - *p) / y); };
  }
  if (name == "mphe") {
    return [square = Square(settings.huber_slope)](double y, const double* p) {
      return square * (std::sqrt(1 + Square(y - *p) / square) - 1);
    };
  }
  if (name == "error") {
    return
        [at = metric.at.value_or(0.5)](double y, const double* p) { return *p > at ? 1 - y : y; };
  }
  if (name == "poisson-nloglik") {
    return [](double y, const double* p) { return std::lgamma(y + 1) + *p - LogOf(*p) * y; };
  }
  if (name == "gamma-nloglik") {
    return [](double y, const double* p) { return y / *p + LogOf(*p); };
  }
  if (name == "gamma-deviance") {
    constexpr double kSmall = 1e-6;
    return [](double y, const double* p) {
      return 2 * (LogOf((*p + kSmall) / (y + kSmall)) + (y + kSmall) / (*p + kSmall) - 1);
    };
  }
  if (name == "tweedie-nloglik") {
    return [rho = metric.at.value_or(settings.tweedie_variance_power)](double y, const double* p) {
      const double log = LogOf(*p);
      // Of powers 1 and 2 one of both has no bound: the loss is Poisson's or gamma's.
      const double mean = rho == 2 ? log : Exp((2 - rho) * log) / (2 - rho);
      return mean - y * (rho == 1 ? log : Exp((1 - rho) * log) / (1 - rho));
    };
  }
  return [](double y, const double* p) {
    return (y == 0 ? 0 : -y * LogOf(*p)) - (y == 1 ? 0 : (1 - y) * LogOf(1 - *p));
  };
}

ErrorSum AddErrors(const RowError& error, const Objective& objective, const RowShare& rows,
                   Threads* threads) {
  const size_t outputs = objective.outputs();
  std::vector<ErrorSum> blocks((rows.rows() + kRowsPerBlock - 1) / kRowsPerBlock);
  threads->Run(blocks.size(), [&](size_t block, size_t) {
    const size_t first = block * kRowsPerBlock;
    const size_t count = std::min(kRowsPerBlock, rows.rows() - first);
    const auto margins = rows.margins().subspan(first * outputs, count * outputs);
    std::vector<double> predicted(margins.begin(), margins.end());
    objective.Predict(count, predicted.data());
    for (size_t r = 0; r < count; ++r) {
      const double weight =
          rows.weights().empty() ? 1 : static_cast<double>(rows.weights()[first + r]);
      blocks[block].weights += weight;
      blocks[block].errors +=
          weight * error(static_cast<double>(rows.labels()[first + r]), &predicted[r * outputs]);
    }
  });
  ErrorSum all;
  for (const ErrorSum& block : blocks) {
    all.errors += block.errors;
    all.weights += block.weights;
  }
  return all;
}

struct Scored {
  float score = 0;
  double positive = 0, negative = 0;  // weights
};

// Rows of one score together, the highest first.
std::vector<Scored> ByScore(const RowShare& rows, size_t outputs, size_t output) {
  std::vector<Scored> scored(rows.rows());
  for (size_t r = 0; r < rows.rows(); ++r) {
    const double weight = rows.weights().empty() ? 1 : static_cast<double>(rows.weights()[r]);
    const auto label = static_cast<double>(rows.labels()[r]);
    const double share = outputs == 1 ? label : (label == static_cast<double>(output) ? 1 : 0);
    scored[r] = {rows.margins()[r * outputs + output], weight * share, weight * (1 - share)};
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  std::vector<Scored> together;
  for (const Scored& one : scored) {
    if (!together.empty() && together.back().score == one.score) {
      together.back().positive += one.positive;
      together.back().negative += one.negative;
    } else {
      together.push_back(one);
    }
  }
  return together;
}

double AreaUnderRoc(const std::vector<Scored>& scored, double* positives) {
  double area = 0, positive = 0, negative = 0;
  for (const Scored& one : scored) {
    area += one.negative * (positive + one.positive / 2);
    positive += one.positive;
    negative += one.negative;
  }
  *positives = positive;
  return positive > 0 && negative > 0 ? area / positive / negative : kNone;
}

// The mean precision over the positives, with precision between two scores as XGBoost has it
// (Davis and Goadrich 2006).
double AreaUnderPrecision(const std::vector<Scored>& scored, double* positives) {
  double all = 0, negatives = 0;
  for (const Scored& one : scored) {
    all += one.positive;
    negatives += one.negative;
  }
  *positives = all;
  double area = 0, positive = 0, negative = 0;
  for (const Scored& one : scored) {
    if (one.positive > 0) {
      const double slope = one.negative / one.positive;
      const double base = (negative - slope * positive) / all;
      const double before = positive / all, after = (positive + one.positive) / all;
      const double width = after - before;
      area += base == 0 ? width / (1 + slope)
                        : (width - base / (1 + slope) *
                                       (Log((1 + slope) * after + base) -
                                        LogOf((1 + slope) * before + base))) /
                              (1 + slope);
    }
    positive += one.positive;
    negative += one.negative;
  }
  return all > 0 && negatives > 0 ? area : kNone;
}

// Of several classes the mean of each against the others, by how frequent it is.
double Area(std::string_view name, const RowShare& rows, size_t outputs) {
  double sum = 0, weights = 0;
  for (size_t k = 0; k < outputs; ++k) {
    const std::vector<Scored> scored = ByScore(rows, outputs, k);
    double positives = 0;
    const double area =
        name == "auc" ? AreaUnderRoc(scored, &positives) : AreaUnderPrecision(scored, &positives);
    sum += area * (outputs == 1 ? 1 : positives);
    weights += outputs == 1 ? 1 : positives;
  }
  return sum / weights;
}

}  // namespace

bool KnowsMetric(std::string_view text, size_t outputs) {
  const MetricName metric = Parse(text);
  if (text.find('@') != std::string_view::npos &&
      !(metric.at.has_value() && (metric.name == "error" || metric.name == "tweedie-nloglik"))) {
    return false;
  }
  if (metric.name == "auc") {
    return true;
  }
  if (outputs > 1) {
    return metric.name == "merror" || metric.name == "mlogloss";
  }
  for (const std::string_view known :
       {"rmse", "rmsle", "mae", "mape", "mphe", "logloss", "error", "poisson-nloglik", "aucpr",
        "gamma-nloglik", "gamma-deviance", "tweedie-nloglik"}) {
    if (metric.name == known) {
      return true;
    }
  }
  return false;
}

bool IsMean(std::string_view metric) {
  return !metric.starts_with("auc");
}

ErrorSum SumErrors(const std::string& name, const ObjectiveSettings& settings,
                   const Objective& objective, const RowShare& rows, Threads* threads) {
  const MetricName metric = Parse(name);
  return AddErrors(objective.outputs() > 1 ? OfClasses(metric.name, objective.outputs())
                                           : ErrorOf(metric, settings),
                   objective, rows, threads);
}

double MetricOf(std::string_view name, const ErrorSum& sum) {
  const double mean = sum.errors / sum.weights;
  return name == "rmse" || name == "rmsle" ? std::sqrt(mean) : mean;
}

double RoundMetric(const std::string& name, const ObjectiveSettings& settings,
                   const Objective& objective, const RowShare& rows, Threads* threads) {
  return IsMean(name) ? MetricOf(name, SumErrors(name, settings, objective, rows, threads))
                      : Area(Parse(name).name, rows, objective.outputs());
}

}  // namespace sluice::models::histogram
