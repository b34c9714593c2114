#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "models/linear/linear_form_internal.h"

// The least squares of a linear model, and what its other passes add up. Only models/linear
// includes this.
namespace sluice::models {

// Sums of slopes (LinearPass::Kind::kSlopes): these, the gradient, the diagonal.
enum SlopeHead : size_t { kSlopeRows, kSlopeWeight, kSlopeLoss, kSlopeHeads };

// The penalty on half the squared weights, of numbers and of categories and words.
struct Ridge {
  double numbers = 0;
  double categories = 0;
};

// The normal equations of a linear model with squared loss.
class LinearEquations {
 public:
  explicit LinearEquations(const LinearShape& shape);
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

  const LinearShape& shape_;
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
