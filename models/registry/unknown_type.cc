#include "models/registry/unknown_type.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/letter_case.h"
#include "base/status.h"
#include "models/registry/registry.h"

namespace sluice::models {
namespace {

struct Synonym {
  std::string_view name;  // for a classifier or a regressor without that ending, if `both`
  std::string_view ours;
  bool both = false;
};

// Names of scikit-learn, Keras, LightGBM, CatBoost and SQLFlow's zoo.
constexpr Synonym kSynonyms[] = {
    {"RandomForest", "XGBRF", true},
    {"ExtraTrees", "XGBRF", true},
    {"GradientBoosting", "XGB", true},
    {"HistGradientBoosting", "XGB", true},
    {"AdaBoost", "XGB", true},
    {"DecisionTree", "XGB", true},
    {"LGBM", "XGB", true},
    {"CatBoost", "XGB", true},
    {"LGBMRanker", "XGBRanker"},
    {"LogisticRegression", "LinearClassifier"},
    {"LogisticRegressionCV", "LinearClassifier"},
    {"RidgeClassifier", "LinearClassifier"},
    {"Perceptron", "LinearClassifier"},
    {"LinearSVC", "LinearClassifier"},
    {"ScoreCard", "LinearClassifier"},
    {"SGD", "Linear", true},
    {"LinearRegression", "LinearRegressor"},
    {"Ridge", "LinearRegressor"},
    {"Lasso", "LinearRegressor"},
    {"ElasticNet", "LinearRegressor"},
    {"LinearSVR", "LinearRegressor"},
    {"MLP", "DNN", true},
    {"Keras", "DNN", true},
    {"TabNet", "DNN", true},
    {"Sequential", "DNNClassifier"},
    {"WideDeep", "DNNLinearCombined", true},
    {"WideAndDeep", "DNNLinearCombined", true},
};

struct Absent {
  std::string_view part;  // of the name
  std::string_view what;
};

constexpr Absent kAbsent[] = {
    {"oneclass", "finds outliers without a label"},
    {"isolationforest", "finds outliers without a label"},
    {"kmeans", "makes clusters"},
    {"cluster", "makes clusters"},
    {"dbscan", "makes clusters"},
    {"lstm", "reads sequences"},
    {"rnn", "reads sequences"},
    {"gru", "reads sequences"},
    {"arima", "continues a time series"},
    {"prophet", "continues a time series"},
    {"timeseries", "continues a time series"},
    {"gcn", "reads graphs"},
};

// "a/b:v1/sklearn.svm.SVC" -> "SVC".
std::string_view LastPart(std::string_view name) {
  const size_t cut = name.find_last_of("./");
  return cut == std::string_view::npos ? name : name.substr(cut + 1);
}

std::optional<std::string> TypeElsewhere(std::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (!synonym.both && SameIgnoringCase(name, synonym.name)) {
      return std::string(synonym.ours);
    }
    for (const std::string_view task : {"Classifier", "Regressor"}) {
      if (synonym.both && SameIgnoringCase(name, fmt::format("{}{}", synonym.name, task))) {
        return fmt::format("{}{}", synonym.ours, task);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

MeantType WhatTypeIsMeant(std::string_view name, const std::vector<std::string>& brought) {
  const std::string_view last = LastPart(name);
  MeantType meant;
  meant.name = TypeElsewhere(last);
  if (!meant.name) {
    const std::string lower = LowerAscii(last);
    for (const Absent& absent : kAbsent) {
      if (lower.find(absent.part) != std::string::npos) {
        meant.hint =
            fmt::format("no model type {}; SHOW MODEL TYPES lists what there is", absent.what);
        return meant;
      }
    }
    std::vector<std::string> names = brought;
    for (const ModelType& type : ModelTypes()) {
      names.push_back(type.name);
    }
    // A prefix that both have does not make them alike.
    meant.name = NearestName(name.find('/') == std::string_view::npos ? name : last, names);
    if (meant.name && !NearestName(last, {std::string(LastPart(*meant.name))})) {
      meant.name.reset();
    }
  }
  meant.hint = meant.name ? fmt::format("did you mean '{}'?", *meant.name)
                          : "SHOW MODEL TYPES lists what there is";
  if (name.find('/') != std::string_view::npos) {
    meant.hint += "; images of a model zoo are not run here";
  }
  return meant;
}

}  // namespace sluice::models
