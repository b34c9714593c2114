#include "models/networks/loss.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "models/kernels/kernels.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

struct NamedLoss {
  std::string_view name;
  Loss::Kind kind;
};
using Kind = Loss::Kind;
constexpr std::array kLosses = {
    NamedLoss{"logistic", Kind::kLogistic},
    NamedLoss{"BinaryCrossentropy", Kind::kLogistic},
    NamedLoss{"binary_crossentropy", Kind::kLogistic},
    NamedLoss{"Hinge", Kind::kHinge},
    NamedLoss{"SquaredHinge", Kind::kSquaredHinge},
    NamedLoss{"squared_hinge", Kind::kSquaredHinge},
    NamedLoss{"softmax", Kind::kSoftmax},
    NamedLoss{"SparseCategoricalCrossentropy", Kind::kSoftmax},
    NamedLoss{"sparse_categorical_crossentropy", Kind::kSoftmax},
    NamedLoss{"CategoricalCrossentropy", Kind::kSoftmax},
    NamedLoss{"categorical_crossentropy", Kind::kSoftmax},
    NamedLoss{"squared", Kind::kSquared},
    NamedLoss{"MeanSquaredError", Kind::kSquared},
    NamedLoss{"mean_squared_error", Kind::kSquared},
    NamedLoss{"mse", Kind::kSquared},
    NamedLoss{"absolute", Kind::kAbsolute},
    NamedLoss{"MeanAbsoluteError", Kind::kAbsolute},
    NamedLoss{"mean_absolute_error", Kind::kAbsolute},
    NamedLoss{"mae", Kind::kAbsolute},
    NamedLoss{"Huber", Kind::kHuber},
    NamedLoss{"LogCosh", Kind::kLogCosh},
    NamedLoss{"log_cosh", Kind::kLogCosh},
    NamedLoss{"Poisson", Kind::kPoisson},
    NamedLoss{"Gamma", Kind::kGamma},
    NamedLoss{"Tweedie", Kind::kTweedie},
};

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

Result<Kind> FindKind(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedLoss& loss : kLosses) {
    if (SameName(loss.name, name)) {
      return loss.kind;
    }
    names.emplace_back(loss.name);
  }
  Status status = NotFound(fmt::format("no loss '{}'", name));
  if (const auto near = NearestName(name, names)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return std::move(status).Hint(
      "losses: logistic, softmax, Hinge, SquaredHinge; squared, MeanAbsoluteError, Huber, LogCosh, "
      "Poisson, Gamma, Tweedie");
}

bool IsTwoClass(Kind kind) {
  return kind == Kind::kLogistic || kind == Kind::kHinge || kind == Kind::kSquaredHinge;
}

Status DoesNotFit(const std::string& loss, const LabelPlan& label, std::string_view what,
                  std::string_view hint) {
  return InvalidArgument(
             fmt::format("loss {} does not fit label '{}', which {}", loss, label.column(), what))
      .Hint(std::string(hint));
}

Result<Kind> KindForClasses(const std::string& name, const LabelPlan& label) {
  const int classes = label.classes_size();
  if (classes < 2) {
    return InvalidArgument(fmt::format("label '{}' has {} class{}: a classifier needs two or more",
                                       label.column(), classes, classes == 1 ? "" : "es"));
  }
  if (name.empty()) {
    return classes == 2 ? Kind::kLogistic : Kind::kSoftmax;
  }
  ASSIGN_OR_RETURN(const Kind kind, FindKind(name));
  if (IsTwoClass(kind)) {
    if (classes == 2) {
      return kind;
    }
    return DoesNotFit(name, label, fmt::format("has {} classes", classes), "use softmax");
  }
  if (kind != Kind::kSoftmax) {
    return DoesNotFit(name, label, "holds classes", "use logistic or softmax");
  }
  return classes == 2 ? Kind::kLogistic : kind;  // the same function with half the weights
}

Result<Kind> KindForNumbers(const std::string& name, const LabelPlan& label) {
  if (name.empty()) {
    return Kind::kSquared;
  }
  ASSIGN_OR_RETURN(const Kind kind, FindKind(name));
  if (IsTwoClass(kind) || kind == Kind::kSoftmax) {
    return DoesNotFit(name, label, "holds numbers", "use squared, MeanAbsoluteError or Huber");
  }
  return kind;
}

}  // namespace

Result<Loss> Loss::Make(const ModelSpec& spec) {
  const LabelPlan& label = spec.features().label();
  Loss loss;
  switch (label.kind()) {
    case LabelPlan::CLASS: {
      ASSIGN_OR_RETURN(loss.kind_, KindForClasses(spec.loss(), label));
      loss.outputs_ =
          loss.kind_ == Kind::kSoftmax ? static_cast<size_t>(label.classes_size()) : size_t{1};
      break;
    }
    case LabelPlan::NUMBER: {
      ASSIGN_OR_RETURN(loss.kind_, KindForNumbers(spec.loss(), label));
      ASSIGN_OR_RETURN(loss.scales_, LabelScales(label));
      if (loss.learns_logarithms() && label.curve() != LabelPlan::STRAIGHT) {
        return DoesNotFit(spec.loss(), label, "is learnt on a curve",
                          fmt::format("{} learns logarithms by itself: leave train.label_scale out",
                                      spec.loss()));
      }
      loss.never_negative_ = label.never_negative();
      break;
    }
    case LabelPlan::VECTOR: {
      ASSIGN_OR_RETURN(loss.kind_, KindForNumbers(spec.loss(), label));
      if (label.width() == 0) {
        return InvalidArgument(fmt::format("label '{}' has no width", label.column()));
      }
      loss.outputs_ = label.width();
      ASSIGN_OR_RETURN(loss.scales_, LabelScales(label));
      break;
    }
    default:
      return InvalidArgument(fmt::format("{} needs a label", spec.type())).Hint("say LABEL column");
  }
  for (const Attribute& attribute : spec.attributes()) {
    const auto number = static_cast<float>(attribute.value_case() == Attribute::kInteger
                                               ? static_cast<double>(attribute.integer())
                                               : attribute.number());
    if (attribute.name() == "loss.delta") {
      loss.delta_ = number;
    } else if (attribute.name() == "loss.variance_power") {
      if (!(number > 1 && number < 2)) {
        return InvalidArgument(fmt::format(
            "attribute {} must be more than 1 and less than 2, not {}", attribute.name(), number));
      }
      loss.power_ = number;
    }
  }
  return loss;
}

LossSum Loss::Compute(size_t rows, const float* logits, const float* labels, const float* weights,
                      float* gradient) {
  const size_t per_row = kind_ == Kind::kSoftmax ? 1 : outputs_;
  losses_.resize(rows * per_row);
  if (kind_ == Kind::kLogistic) {
    ComputeLogistic(rows, logits, labels, gradient);
  } else if (kind_ == Kind::kSoftmax) {
    ComputeSoftmax(rows, logits, labels, gradient);
  } else {
    ComputeEach(rows * outputs_, logits, labels, gradient);
  }
  LossSum sum;
  for (size_t r = 0; r < rows; ++r) {
    double loss = 0;
    for (size_t o = 0; o < per_row; ++o) {
      loss += static_cast<double>(losses_[r * per_row + o]);
    }
    const double weight = weights == nullptr ? 1.0 : static_cast<double>(weights[r]);
    sum.loss += weight * loss;
    sum.weight += weight;
  }
  if (gradient != nullptr) {
    const float share = sum.weight > 0 ? static_cast<float>(1.0 / sum.weight) : 0.0f;
    for (size_t r = 0; r < rows; ++r) {
      const float factor = weights == nullptr ? share : share * weights[r];
      for (size_t o = 0; o < outputs_; ++o) {
        gradient[r * outputs_ + o] *= factor;
      }
    }
  }
  return sum;
}

void Loss::ComputeLogistic(size_t rows, const float* logits, const float* labels, float* gradient) {
  exponents_.resize(rows);
  ActiveKernels().logistic(logits, labels, losses_.data(), exponents_.data(), rows);
  if (gradient != nullptr) {
    for (size_t r = 0; r < rows; ++r) {
      gradient[r] = exponents_[r] - labels[r];
    }
  }
}

namespace {

// So that no exponential overflows.
void SubtractLargest(float* row, size_t n) {
  const float largest = *std::max_element(row, row + n);
  for (size_t o = 0; o < n; ++o) {
    row[o] -= largest;
  }
}

float Sum(const float* row, size_t n) {
  float sum = 0;
  for (size_t o = 0; o < n; ++o) {
    sum += row[o];
  }
  return sum;
}

}  // namespace

void Loss::ComputeSoftmax(size_t rows, const float* logits, const float* labels, float* gradient) {
  const size_t n = outputs_;
  exponents_.assign(logits, logits + rows * n);
  for (size_t r = 0; r < rows; ++r) {
    float* row = exponents_.data() + r * n;
    SubtractLargest(row, n);
    const auto id = static_cast<size_t>(labels[r]);
    SLUICE_CHECK(id < n, "a label is a class id");
    losses_[r] = -row[id];
  }
  ActiveKernels().exp(exponents_.data(), rows * n);
  for (size_t r = 0; r < rows; ++r) {
    const float* row = exponents_.data() + r * n;
    const float sum = Sum(row, n);
    losses_[r] += std::log(sum);
    if (gradient != nullptr) {
      for (size_t o = 0; o < n; ++o) {
        gradient[r * n + o] = row[o] / sum;
      }
      gradient[r * n + static_cast<size_t>(labels[r])] -= 1;
    }
  }
}

namespace {

// Loss and slope of one output.
struct LossAndSlope {
  float loss = 0;
  float slope = 0;
};

LossAndSlope HingeOf(float z, float y, bool squared) {
  const float sign = y > 0.5f ? 1.0f : -1.0f;
  const float margin = std::max(0.0f, 1.0f - sign * z);
  if (squared) {
    return {margin * margin, -2.0f * sign * margin};
  }
  return {margin, margin > 0 ? -sign : 0.0f};
}

LossAndSlope HuberOf(float error, float delta) {
  const float size = std::fabs(error);
  if (size <= delta) {
    return {0.5f * error * error, error};
  }
  return {delta * (size - 0.5f * delta), error > 0 ? delta : -delta};
}

LossAndSlope LogCoshOf(float error) {
  const float size = std::fabs(error);
  // log(cosh(x)) = |x| + log(1 + exp(-2|x|)) - log(2)
  return {size + std::log1p(std::exp(-2.0f * size)) - 0.69314718f, std::tanh(error)};
}

// Rates beyond exp(+-30) times the mean are a diverged network's; the bound keeps the loss finite.
constexpr float kLargestLogRate = 30.0f;

// What is learnt is log(y / unit).
double UnitOf(const LabelScale& scale) {
  return scale.mean > 0 ? scale.mean : 1;
}

double InUnits(float label, const LabelScale& scale) {
  return (static_cast<double>(label) * scale.scale + scale.mean) / UnitOf(scale);
}

LossAndSlope PoissonOf(float z, double target) {
  const float bounded = std::clamp(z, -kLargestLogRate, kLargestLogRate);
  const float rate = std::exp(bounded);
  const auto y = static_cast<float>(target);
  return {rate - y * bounded, rate - y};
}

// Half the deviance but for what does not depend on z: of the gamma distribution y / rate + log
// rate.
LossAndSlope GammaOf(float z, double target) {
  const float bounded = std::clamp(z, -kLargestLogRate, kLargestLogRate);
  const float ratio = static_cast<float>(target) * std::exp(-bounded);
  return {ratio + bounded, 1.0F - ratio};
}

// Of the compound Poisson distribution with variance rate ^ power. Source: Jorgensen, The Theory of
// Dispersion Models, 1997, chapter 4.
LossAndSlope TweedieOf(float z, double target, float power) {
  const float bounded = std::clamp(z, -kLargestLogRate, kLargestLogRate);
  const float below = static_cast<float>(target) * std::exp((1.0F - power) * bounded);
  const float above = std::exp((2.0F - power) * bounded);
  return {below / (power - 1.0F) + above / (2.0F - power), above - below};
}

}  // namespace

void Loss::ComputeEach(size_t n, const float* logits, const float* labels, float* gradient) {
  for (size_t i = 0; i < n; ++i) {
    const float error = logits[i] - labels[i];
    LossAndSlope at;
    switch (kind_) {
      case Kind::kHinge:
      case Kind::kSquaredHinge:
        at = HingeOf(logits[i], labels[i], kind_ == Kind::kSquaredHinge);
        break;
      case Kind::kAbsolute:
        at = {std::fabs(error), error > 0 ? 1.0f : (error < 0 ? -1.0f : 0.0f)};
        break;
      case Kind::kHuber:
        at = HuberOf(error, delta_);
        break;
      case Kind::kLogCosh:
        at = LogCoshOf(error);
        break;
      case Kind::kPoisson:
        at = PoissonOf(logits[i], InUnits(labels[i], scales_[i % outputs_]));
        break;
      case Kind::kGamma:
        at = GammaOf(logits[i], InUnits(labels[i], scales_[i % outputs_]));
        break;
      case Kind::kTweedie:
        at = TweedieOf(logits[i], InUnits(labels[i], scales_[i % outputs_]), power_);
        break;
      default:
        at = {error * error, 2.0f * error};
    }
    losses_[i] = at.loss;
    if (gradient != nullptr) {
      gradient[i] = at.slope;
    }
  }
}

void Loss::ToPredictions(size_t rows, float* logits) const {
  const size_t n = rows * outputs_;
  switch (kind_) {
    case Kind::kLogistic:
    case Kind::kHinge:
    case Kind::kSquaredHinge:
      return ActiveKernels().sigmoid(logits, n);
    case Kind::kSoftmax:
      for (size_t r = 0; r < rows; ++r) {
        SubtractLargest(logits + r * outputs_, outputs_);
      }
      ActiveKernels().exp(logits, n);
      for (size_t r = 0; r < rows; ++r) {
        float* row = logits + r * outputs_;
        const float sum = Sum(row, outputs_);
        for (size_t o = 0; o < outputs_; ++o) {
          row[o] /= sum;
        }
      }
      return;
    case Kind::kPoisson:
    case Kind::kGamma:
    case Kind::kTweedie:
      for (size_t i = 0; i < n; ++i) {
        const float bounded = std::clamp(logits[i], -kLargestLogRate, kLargestLogRate);
        logits[i] = static_cast<float>(std::exp(static_cast<double>(bounded)) *
                                       UnitOf(scales_[i % outputs_]));
      }
      return;
    default:
      for (size_t i = 0; i < n; ++i) {
        const LabelScale& own = scales_[i % outputs_];
        const double number = own.Predicted(static_cast<double>(logits[i]));
        logits[i] = static_cast<float>(never_negative_ ? std::max(number, 0.0) : number);
      }
  }
}

}  // namespace sluice::models
