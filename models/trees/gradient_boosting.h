#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/pass_training.h"

namespace sluice::models {

class ModelSpec;

// Gradient-boosted trees: gbtree, dart, gblinear, random forests, ranking. Those that GrowsHere are
// trained by models/trees/histogram, the others by libxgboost, which applies all of them. Rows are
// read once and packed until there are bins of them (README.md).
// Not thread-safe; training uses its own threads (attribute nthread).
class GradientBoosting {
 public:
  // Provides the next batch of rows; rows == 0 ends the pass; Rewind starts the next pass, with the
  // same rows. libxgboost needs four passes: all but the first read packed rows, unless these take
  // more than most_kept bytes and more than libxgboost is going to. 0: nothing is packed.
  struct BatchSource {
    std::function<Result<const FeatureBatch*>()> next;
    std::function<Status()> rewind;
    size_t most_kept = 512U << 20U;
  };
  struct Round {
    int round = 0, rounds = 0;
    int best = 0;  // of the rounds so far, if there is early stopping; else 0
    // "train-logloss", "validation-auc": those of the training rows first. On tables of more than
    // 100,000 rows they may be from some rounds ago: with early stopping those of the training
    // rows, without it all.
    std::vector<std::pair<std::string, double>> metrics;
  };

  static Result<std::unique_ptr<GradientBoosting>> Make(const ModelSpec& spec);
  // Whether libxgboost is not needed to train it; false for a spec that Make refuses, too.
  static bool GrowsHere(const ModelSpec& spec);
  // The most nodes that all trees of a training on so many rows have together; 0 for a spec that
  // Make refuses, and without trees.
  static double MostNodes(const ModelSpec& spec, double rows);
  virtual ~GradientBoosting() = default;
  virtual const FeatureTransform& transform() const = 0;  // Target::kTrees
  virtual size_t outputs() const = 0;
  // Scratch memory for predicting one row, including the row itself.
  virtual size_t bytes_per_row() const = 0;

  // Trains all rounds; `validation` may be empty (no next). Calls `progress` after every round.
  // When `finish` is requested, ends with the rounds trained so far, or the best of them.
  // `memory`: empty unless it GrowsHere.
  virtual Status Train(const BatchSource& train, const BatchSource& validation,
                       const std::function<void(const Round&)>& progress, std::stop_token stop,
                       std::stop_token finish = {}, const TrainingMemory& memory = {}) = 0;
  // The same model, of rows that PassSums add up. `holds_out`: the workers hold rows out
  // for validation; else they are those of `validation`, which may be empty. There must be no model
  // to go on from, and it GrowsHere.
  virtual Status TrainByPasses(const PassSearch& search, const BatchSource& validation,
                               bool holds_out, const std::function<void(const Round&)>& progress,
                               std::stop_token stop, std::stop_token finish) = 0;
  virtual Result<std::string> Save() const = 0;
  virtual Status Load(std::string_view bytes) = 0;
  // rows x outputs(): probabilities, class probabilities, or numbers.
  virtual Status Predict(const FeatureBatch& batch, std::vector<double>* predictions) = 0;
  // (feature name, split count, total gain) of every feature that occurs in a tree.
  struct Importance {
    std::string feature;
    double splits = 0;
    double gain = 0;
  };
  virtual Result<std::vector<Importance>> FeatureImportance() const = 0;
  // XGBoost's JSON form of the trained model, in the units of columns and label. Its attribute
  // "sluice" says what each of XGBoost's columns is made of. `spec`: that it was made from.
  struct Exported {
    std::string json;
    std::vector<std::string> notes;  // what the form does not hold, for the user
  };
  virtual Result<Exported> Export(const ModelSpec& spec) const = 0;
};

}  // namespace sluice::models
