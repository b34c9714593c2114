#include "models/trees/histogram/objective.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/trees/histogram/exact_math.h"

namespace sluice::models::histogram {
namespace {

constexpr double kLeastHessian = 1e-16;

// XGBoost reads no more digits than a float's.
std::string FloatText(double number) {
  return fmt::format("{}", static_cast<float>(number));
}

class SquaredError final : public Objective {
 public:
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      gradients[r] = static_cast<double>(margins[r]) - static_cast<double>(labels[r]);
      hessians[r] = 1;
    }
  }
  std::optional<double> ToMean(float label) const override { return label; }
  std::string DefaultMetric() const override { return "rmse"; }
  Stored ToStore() const override { return {"reg_loss_param", {{"scale_pos_weight", "1"}}}; }
};

// binary:logistic, binary:logitraw, reg:logistic.
class LogisticError final : public Objective {
 public:
  explicit LogisticError(const ObjectiveSettings& settings)
      : positive_(settings.scale_pos_weight),
        regression_(settings.name == "reg:logistic"),
        raw_(settings.name == "binary:logitraw") {}

  std::string_view Refusal(float label) const override {
    return label >= 0 && label <= 1 ? "" : "must lie between 0 and 1";
  }
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      const double p = Sigmoid(static_cast<double>(margins[r]));
      const double weight = labels[r] == 1 ? positive_ : 1;
      gradients[r] = (p - static_cast<double>(labels[r])) * weight;
      hessians[r] = std::max(p * (1 - p), kLeastHessian) * weight;
    }
  }
  std::optional<GradientRange> Bounds() const override {
    const double most = std::max(1.0, positive_);
    return GradientRange{most, most / 4};
  }
  std::optional<double> ToMean(float label) const override { return label; }
  double WeightInMean(float label) const override { return label == 1 ? positive_ : 1; }
  double BaseScore(double mean) const override {
    const double share = std::clamp(mean, kRarest, 1 - kRarest);
    return raw_ ? -Log(1 / share - 1) : share;
  }
  std::optional<float> Margin(float base_score) const override {
    if (raw_) {
      return base_score;
    }
    if (!(base_score > 0 && base_score < 1)) {
      return std::nullopt;
    }
    return -static_cast<float>(Log(static_cast<double>(1.0F / base_score - 1.0F)));
  }
  void Predict(size_t rows, double* margins) const override {
    for (size_t r = 0; r < rows; ++r) {
      margins[r] = Sigmoid(margins[r]);
    }
  }
  std::string DefaultMetric() const override { return regression_ ? "rmse" : "logloss"; }
  Stored ToStore() const override {
    return {"reg_loss_param", {{"scale_pos_weight", FloatText(positive_)}}};
  }

 private:
  static constexpr double kRarest = 1e-5;  // 1 minus it is a float of its own
  const double positive_;
  const bool regression_, raw_;
};

class HingeError final : public Objective {
 public:
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      const double sign = labels[r] > 0 ? 1 : -1;
      const bool wrong = static_cast<double>(margins[r]) * sign < 1;
      gradients[r] = wrong ? -sign : 0;
      hessians[r] = wrong ? 1 : static_cast<double>(std::numeric_limits<float>::min());
    }
  }
  void Predict(size_t rows, double* margins) const override {
    for (size_t r = 0; r < rows; ++r) {
      margins[r] = margins[r] > 0 ? 1 : 0;
    }
  }
  std::string DefaultMetric() const override { return "error"; }
};

class SoftmaxError final : public Objective {
 public:
  explicit SoftmaxError(size_t classes) : classes_(classes) {}

  size_t outputs() const override { return classes_; }
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      double* row = gradients + r * classes_;
      std::copy_n(margins + r * classes_, classes_, row);
      Shares(row);
      for (size_t c = 0; c < classes_; ++c) {
        const double p = row[c];
        hessians[r * classes_ + c] = std::max(2 * p * (1 - p), kLeastHessian);
        row[c] = p - (labels[r] == static_cast<float>(c) ? 1 : 0);
      }
    }
  }
  std::optional<GradientRange> Bounds() const override { return GradientRange{1, 0.5}; }
  void Predict(size_t rows, double* margins) const override {
    for (size_t r = 0; r < rows; ++r) {
      Shares(margins + r * classes_);
    }
  }
  std::string DefaultMetric() const override { return "mlogloss"; }
  Stored ToStore() const override {
    return {"softmax_multiclass_param", {{"num_class", std::to_string(classes_)}}};
  }

 private:
  void Shares(double* row) const {
    const double largest = *std::max_element(row, row + classes_);
    double sum = 0;
    for (size_t c = 0; c < classes_; ++c) {
      row[c] = Exp(row[c] - largest);
      sum += row[c];
    }
    for (size_t c = 0; c < classes_; ++c) {
      row[c] /= sum;
    }
  }

  const size_t classes_;
};

// Counts and amounts, which margins are the logarithms of.
class OfLogarithm : public Objective {
 public:
  std::optional<double> ToMean(float label) const override { return label; }
  double BaseScore(double mean) const override { return std::max(mean, 1e-16); }
  std::optional<float> Margin(float base_score) const override {
    constexpr float kLeast = std::numeric_limits<float>::min();
    if (!(base_score >= kLeast && std::isfinite(base_score))) {
      return std::nullopt;
    }
    return static_cast<float>(Log(static_cast<double>(base_score)));
  }
  void Predict(size_t rows, double* margins) const override {
    for (size_t r = 0; r < rows; ++r) {
      margins[r] = Exp(margins[r]);
    }
  }
};

class PoissonError final : public OfLogarithm {
 public:
  explicit PoissonError(double most_step) : most_step_(most_step) {}
  std::string_view Refusal(float label) const override {
    return label >= 0 ? "" : "must be 0 or more";
  }
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      const auto margin = static_cast<double>(margins[r]);
      gradients[r] = Exp(margin) - static_cast<double>(labels[r]);
      hessians[r] = Exp(margin + most_step_);
    }
  }
  std::string DefaultMetric() const override { return "poisson-nloglik"; }
  Stored ToStore() const override {
    return {"poisson_regression_param", {{"max_delta_step", FloatText(most_step_)}}};
  }

 private:
  const double most_step_;
};

class GammaError final : public OfLogarithm {
 public:
  std::string_view Refusal(float label) const override {
    return label > 0 ? "" : "must be above 0";
  }
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      const double ratio = static_cast<double>(labels[r]) * Exp(-static_cast<double>(margins[r]));
      gradients[r] = 1 - ratio;
      hessians[r] = ratio;
    }
  }
  std::string DefaultMetric() const override { return "gamma-nloglik"; }
};

class TweedieError final : public OfLogarithm {
 public:
  explicit TweedieError(double power) : power_(power) {}
  std::string_view Refusal(float label) const override {
    return label >= 0 ? "" : "must be 0 or more";
  }
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      const auto margin = static_cast<double>(margins[r]);
      const double a = static_cast<double>(labels[r]) * Exp((1 - power_) * margin);
      const double b = Exp((2 - power_) * margin);
      gradients[r] = b - a;
      hessians[r] = (2 - power_) * b - (1 - power_) * a;
    }
  }
  std::string DefaultMetric() const override { return "tweedie-nloglik@" + FloatText(power_); }
  Stored ToStore() const override {
    return {"tweedie_regression_param", {{"tweedie_variance_power", FloatText(power_)}}};
  }

 private:
  const double power_;
};

class PseudoHuberError final : public Objective {
 public:
  explicit PseudoHuberError(double slope) : slope_(slope) {}
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    const double square = slope_ * slope_;
    for (size_t r = 0; r < rows; ++r) {
      const double z = static_cast<double>(margins[r]) - static_cast<double>(labels[r]);
      const double scale = std::sqrt(1 + z * z / square);
      gradients[r] = z / scale;
      // Not XGBoost's second derivative, which vanishes far from the label, so that steps
      // overshoot: the curvature of the parabola that touches the loss and lies above it.
      hessians[r] = 1 / scale;
    }
  }
  std::optional<double> ToMean(float label) const override { return label; }
  std::string DefaultMetric() const override { return "mphe"; }
  Stored ToStore() const override {
    return {"pseudo_huber_param", {{"huber_slope", FloatText(slope_)}}};
  }

 private:
  const double slope_;
};

class SquaredLogError final : public Objective {
 public:
  std::string_view Refusal(float label) const override {
    return label > -1 ? "" : "must be above -1";
  }
  void Derive(const float* labels, const float* margins, size_t rows, double* gradients,
              double* hessians) const override {
    for (size_t r = 0; r < rows; ++r) {
      const double p = std::max(static_cast<double>(margins[r]), -1 + kClose);
      const double difference = Log1p(p) - Log1p(static_cast<double>(labels[r]));
      gradients[r] = difference / (p + 1);
      hessians[r] = std::max((1 - difference) / ((p + 1) * (p + 1)), kClose);
    }
  }
  std::optional<double> ToMean(float label) const override {
    return Log1p(static_cast<double>(label));
  }
  double BaseScore(double mean) const override { return Exp(mean) - 1; }
  std::string DefaultMetric() const override { return "rmsle"; }
  Stored ToStore() const override { return {"reg_loss_param", {{"scale_pos_weight", "1"}}}; }

 private:
  static constexpr double kClose = 1e-6;
};

}  // namespace

bool Objective::Knows(std::string_view name) {
  for (const std::string_view known :
       {"reg:squarederror", "reg:linear", "reg:logistic", "binary:logistic", "binary:logitraw",
        "binary:hinge", "multi:softprob", "count:poisson", "reg:gamma", "reg:tweedie",
        "reg:pseudohubererror", "reg:squaredlogerror"}) {
    if (name == known) {
      return true;
    }
  }
  return false;
}

std::unique_ptr<Objective> Objective::Make(const ObjectiveSettings& settings) {
  const std::string& name = settings.name;
  if (name == "binary:hinge") {
    return std::make_unique<HingeError>();
  }
  if (name.ends_with("logistic") || name == "binary:logitraw") {
    return std::make_unique<LogisticError>(settings);
  }
  if (name == "multi:softprob") {
    return std::make_unique<SoftmaxError>(settings.classes);
  }
  if (name == "count:poisson") {
    return std::make_unique<PoissonError>(settings.poisson_max_delta_step);
  }
  if (name == "reg:gamma") {
    return std::make_unique<GammaError>();
  }
  if (name == "reg:tweedie") {
    return std::make_unique<TweedieError>(settings.tweedie_variance_power);
  }
  if (name == "reg:pseudohubererror") {
    return std::make_unique<PseudoHuberError>(settings.huber_slope);
  }
  if (name == "reg:squaredlogerror") {
    return std::make_unique<SquaredLogError>();
  }
  return std::make_unique<SquaredError>();
}

}  // namespace sluice::models::histogram
