#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"

namespace sluice::models {

class ModelSpec;
class OptimizerSpec;

// A dense parameter tensor, row-major. Its initial values depend only on (seed, name, index).
struct DenseTensor {
  enum class Group {
    kDeep,        // updated by the deep optimizer
    kWide,        // updated by the wide one
    kStatistics,  // tracks batch statistics, which a step returns as its "gradient"
    kFrozen,      // never changes
  };
  std::string name;
  std::vector<int64_t> shape;
  Group group = Group::kDeep;
  float momentum = 0;       // kStatistics: share of the old value that a step keeps
  std::string initializer;  // "zeros", "glorot_uniform", "he_normal"
  size_t size() const;
};

// A table of rows, each created when first touched; one row per id.
struct EmbeddingTable {
  std::string name;
  int64_t rows = 0;  // ids are [0, rows)
  uint32_t dimension = 0;
  bool wide = false;
  std::string initializer;
};

// The rows of one table that a batch touches: each distinct id once.
struct RowSet {
  std::vector<int64_t> ids;         // distinct, in order of first occurrence
  std::vector<float> values;        // ids.size() x dimension
  std::vector<uint32_t> positions;  // for every occurrence, in slot order: index into ids
};

// The parameters during one step. Pointers stay valid for the call.
struct ParameterView {
  std::vector<const float*> dense;  // one per Network::dense(), row-major
  std::vector<RowSet> tables;       // one per Network::tables(): filled by CollectIds, then pulled
};

struct Gradient {
  std::vector<std::vector<float>> dense;  // as Network::dense()
  // as ParameterView::tables: values of duplicates already summed
  std::vector<std::vector<float>> tables;
};

// Sum over rows of weight x loss, and of the weights.
struct LossSum {
  double loss = 0;
  double weight = 0;
};

// Networks as pure functions of (batch, parameters), each a graph of operators. They own no
// parameters, so the same object serves a local run, one of many workers, and prediction. Not
// thread-safe (has scratch buffers); use one per thread.
class Network {
 public:
  static Result<std::unique_ptr<Network>> Make(const ModelSpec& spec);
  virtual ~Network() = default;

  virtual const FeatureTransform& transform() const = 0;
  virtual const std::vector<DenseTensor>& dense() const = 0;
  virtual const std::vector<EmbeddingTable>& tables() const = 0;
  virtual size_t outputs() const = 0;  // 1 for binary and regression, else the number of classes
  virtual int64_t parameter_count() const = 0;
  // Scratch memory for one row of a batch, including the batch itself.
  virtual size_t bytes_per_row() const = 0;
  // Whether a batch of so many rows can be computed; its values may be too many.
  virtual Status CheckRows(size_t rows) = 0;

  // Fills view->tables[t].ids and positions with the rows that `batch` needs.
  virtual void CollectIds(const FeatureBatch& batch, ParameterView* view) = 0;
  // Mean loss over the batch and its gradient. Dropout depends only on (seed, step).
  virtual LossSum Step(const FeatureBatch& batch, const ParameterView& view, uint64_t step,
                       Gradient* gradient) = 0;
  // rows x outputs: probabilities for classifiers, numbers in the label's own unit for regressors.
  // The loss of a batch with labels: the one that Step minimises.
  virtual LossSum Predict(const FeatureBatch& batch, const ParameterView& view,
                          std::vector<double>* predictions) = 0;
};
// Whether what is minimised is a loss of the user's, part of the graph, instead of a named one.
bool HasOwnLoss(const ModelSpec& spec);

// A trained network in serialisable form: dense tensors and the existing rows of tables.
struct NetworkWeights {
  std::vector<std::vector<float>> dense;
  struct Table {
    std::vector<int64_t> ids;  // ascending
    std::vector<float> values;
  };
  std::vector<Table> tables;
};
std::string SaveWeights(const NetworkWeights& weights);
Result<NetworkWeights> LoadWeights(std::string_view bytes);
// Fails if the weights do not have the network's shape.
Status CheckShape(const NetworkWeights& weights, const Network& network);

}  // namespace sluice::models
