#include "models/networks/loss.h"

#include <fmt/core.h>

#include <array>

#include "base/letter_case.h"
#include "models/features/label_quantiles.h"
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
    // Of the output; what a graph with this loss minimises is its own.
    NamedLoss{"in_batch_softmax", Kind::kLogistic},
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
    NamedLoss{kQuantileLoss, Kind::kQuantile},
};

Result<Kind> FindKind(const std::string& name) {
  std::vector<std::string> names;
  for (const NamedLoss& loss : kLosses) {
    if (SameIgnoringCase(loss.name, name)) {
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
      "Poisson, Gamma, Tweedie, quantile");
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

// A stored plan is not trusted.
Result<std::vector<float>> QuantilesOf(const ModelSpec& spec) {
  constexpr char kName[] = "model.quantiles";
  std::vector<float> quantiles;
  for (const double quantile : LabelQuantiles(spec)) {
    const auto next = static_cast<float>(quantile);
    if (!(next > 0 && next < 1)) {
      return InvalidArgument(
          fmt::format("attribute {} must be between 0 and 1, not {}", kName, quantile));
    }
    if (!quantiles.empty() && next <= quantiles.back()) {
      return InvalidArgument(fmt::format("attribute {} must ascend, and {} follows {}", kName,
                                         quantile, quantiles.back()));
    }
    quantiles.push_back(next);
  }
  if (quantiles.empty()) {
    return InvalidArgument(fmt::format("loss {} needs the quantiles to learn", kQuantileLoss))
        .Hint(fmt::format("{}=[0.1, 0.5, 0.9]", kName));
  }
  return quantiles;
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
      if (loss.kind_ == Kind::kQuantile) {
        ASSIGN_OR_RETURN(loss.quantiles_, QuantilesOf(spec));
        loss.outputs_ = loss.quantiles_.size();
      }
      break;
    }
    case LabelPlan::VECTOR: {
      ASSIGN_OR_RETURN(loss.kind_, KindForNumbers(spec.loss(), label));
      if (loss.kind_ == Kind::kQuantile) {
        return DoesNotFit(spec.loss(), label, "holds several numbers",
                          "train a model for each of them");
      }
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

}  // namespace sluice::models
