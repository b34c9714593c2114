#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/model.h"
#include "models/networks/loss.h"

// A linear model's rows as a matrix that is never materialised. Only models/linear includes this.
namespace sluice::models {

// A feature's rows of a table: its id i is row first_row + i.
struct LinearFeature {
  size_t slot = 0;  // in FeatureBatch::slots
  int64_t first_row = 0;
};

struct LinearTable {
  int64_t rows = 0;
  std::vector<LinearFeature> features;
};

// What a linear model with an optimum is: its parameters in the order of its Network's.
struct LinearShape {
  size_t numbers = 0;  // columns of FeatureBatch::dense
  std::vector<LinearTable> tables;
  std::string combiner;  // of a row's ids of one feature
  Loss::Kind kind = Loss::Kind::kSquared;
  size_t outputs = 1;
  // Unimplemented: it has none.
  static Result<LinearShape> Of(const ModelSpec& spec);
};

// The columns: numbers, biases, the rows of the tables; each has `outputs` weights.
class LinearForm {
 public:
  explicit LinearForm(const LinearShape& shape);

  size_t size() const { return size_; }  // number of weights
  bool IsBias(size_t weight) const { return weight >= bias_ && weight < bias_ + outputs_; }
  bool IsOfCategory(size_t weight) const { return weight >= bias_ + outputs_; }

  // The weights for Multiply.
  void Load(const std::vector<double>& weights);
  // logits (rows x outputs) = the rows times the weights.
  void Multiply(const FeatureBatch& batch, float* logits);
  // sums += the rows, transposed, times `values` (rows x outputs).
  void AddTransposed(const FeatureBatch& batch, const float* values, std::vector<double>* sums);
  // The same with each cell squared.
  void AddSquaresTransposed(const FeatureBatch& batch, const float* values,
                            std::vector<double>* sums);
  NetworkWeights Export(const std::vector<double>& weights) const;

 private:
  template <typename Body>
  void ForEachId(const FeatureBatch& batch, const LinearFeature& feature, Body body);
  // The row of each id in the whole table.
  const std::vector<uint32_t>& PlacesOf(const IdSlot& slot, const LinearFeature& feature);
  void AddFeature(const FeatureBatch& batch, const LinearFeature& feature, const float* table,
                  float* logits);
  void AddFeatureTransposed(const FeatureBatch& batch, const LinearFeature& feature,
                            const float* values, float* table);

  const LinearShape shape_;
  const size_t outputs_;
  size_t bias_ = 0;             // place of the first one
  std::vector<size_t> tables_;  // places of their first weights
  size_t size_ = 0;
  std::vector<float> kernel_, bias_values_, sums_, squares_, factors_;
  std::vector<std::vector<float>> table_values_;
  std::vector<uint32_t> places_;
};

}  // namespace sluice::models
