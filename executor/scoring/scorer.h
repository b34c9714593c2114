#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "catalog/model_store.h"
#include "models/features/feature_transform.h"
#include "models/metrics/metric.h"
#include "models/model.h"

namespace sluice::plan {
class TrainPlan;
}

namespace sluice::models {
class LabelPlan;
class ModelSpec;
}  // namespace sluice::models

namespace sluice::executor {

// A stored model of any family, loaded and ready to score rows. Not thread-safe.
class Scorer {
 public:
  // Loads the weights and checks them against their checksum and the model's shape.
  // The stored bytes are not trusted: nothing in them causes an allocation of more than a few times
  // their own size, and a model that would not fit into `memory_bytes` is refused (53200) unread.
  // `label`: the label's column where it has another name than in training.
  static Result<std::unique_ptr<Scorer>> Load(catalog::ModelStore& models,
                                              const catalog::ModelVersion& version,
                                              int64_t memory_bytes, const std::string& label = "");
  // The same from the parts of a row; neither is trusted.
  static Result<std::unique_ptr<Scorer>> Make(const models::ModelSpec& spec,
                                              std::string_view weights);
  virtual ~Scorer() = default;
  // A further scorer of the same model, for another thread. They share the weights.
  virtual Result<std::unique_ptr<Scorer>> Another() const = 0;

  virtual const models::FeatureTransform& transform() const = 0;
  virtual size_t outputs() const = 0;
  // The number of rows to score at once: a scan's usual number, or fewer if they are wide.
  size_t rows_per_batch() const;
  // rows x outputs: for classifiers probabilities (one column for two classes: that of class 1),
  // otherwise numbers in the label's own unit.
  virtual Status Score(const models::FeatureBatch& batch, std::vector<double>* scores) = 0;
  // Of the rows that were scored last, which had labels; nullopt: the model has no loss of its own.
  virtual std::optional<models::LossSum> own_loss() const { return std::nullopt; }
  // Text report of what the model learnt from: (feature, splits, gain) for trees; 0A000 otherwise.
  struct Importance {
    std::string feature;
    double splits = 0;
    double gain = 0;
  };
  virtual Result<std::vector<Importance>> FeatureImportance() const = 0;
  // Scratch memory for one row.
  virtual size_t bytes_per_row() const = 0;
};

}  // namespace sluice::executor
