#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "models/networks/loss.h"
#include "models/networks/network_internal.h"

// A linear model's rows as a matrix that is never materialised. Only linear_*.cc include this.
namespace sluice::models {

// What a linear model with an optimum is, of the parts that its search and its sums share.
struct LinearShape {
  NetworkShape shape;
  Loss::Kind kind = Loss::Kind::kSquared;
  size_t outputs = 1;
  // Unimplemented: it has none.
  static Result<LinearShape> Of(const ModelSpec& spec);
};

// Sums of slopes (LinearPass::Kind::kSlopes): these, the gradient, the diagonal.
enum SlopeHead : size_t { kSlopeRows, kSlopeWeight, kSlopeLoss, kSlopeHeads };

// The penalty on half the squared weights, of numbers and of categories and words.
struct Ridge {
  double numbers = 0;
  double categories = 0;
};

// The columns: dense ones, biases, the rows of the tables; each has `outputs` weights.
class LinearForm {
 public:
  LinearForm(NetworkShape shape, size_t outputs);

  const NetworkShape& shape() const { return shape_; }
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
  void Place(const TableUse& use, const FeatureBatch& batch, RowSet* rows) const;

  const NetworkShape shape_;
  const size_t outputs_;
  size_t bias_ = 0;             // place of the first one
  std::vector<size_t> tables_;  // places of their first weights
  size_t size_ = 0;
  std::vector<float> kernel_, bias_values_, sums_, squares_;
  std::vector<RowSet> rows_;  // whole tables
  TableColumns columns_;
};

// The normal equations of a linear model with squared loss.
class LinearEquations {
 public:
  LinearEquations(const NetworkShape& shape, size_t outputs);
  void Add(const FeatureBatch& batch);
  // What has been added, and the same of other rows on top of it.
  std::vector<double> Sums() const;
  Status AddSums(const std::vector<double>& sums);
  int64_t rows() const { return rows_; }
  // The weights, in LinearForm's order. Uses a larger ridge if this one is too small for the
  // rounding errors in the sums.
  Result<std::vector<double>> Solve(Ridge ridge) const;
  // Of the rows, in their labels' scale.
  double MeanLoss(const std::vector<double>& weights) const;

 private:
  struct Cell {
    size_t column = 0;
    double value = 0;
  };
  // The cells of a row outside the dense columns: the bias, and its ids.
  void CollectCells(const FeatureBatch& batch, size_t row);
  void AddDense(const FeatureBatch& batch);
  bool Factorize(Ridge ridge, std::vector<double>* upper) const;

  const NetworkShape& shape_;
  const size_t outputs_;
  const size_t dense_;          // columns
  std::vector<size_t> tables_;  // column of their first row
  size_t columns_ = 0;
  std::vector<double> squares_;   // columns x columns: the upper half
  std::vector<double> products_;  // columns x outputs
  std::vector<double> labels_;    // sums of the squared labels, by output
  double weight_ = 0;
  int64_t rows_ = 0;
  std::vector<Cell> cells_;

  std::vector<float> weighted_, block_;
};

}  // namespace sluice::models
