#include "models/linear/linear_equations_internal.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/kernels/kernels.h"

namespace sluice::models {

LinearEquations::LinearEquations(const LinearShape& shape)
    : shape_(shape), outputs_(shape.outputs), dense_(shape.numbers) {
  columns_ = dense_ + 1;
  for (const LinearTable& table : shape.tables) {
    tables_.push_back(columns_);
    columns_ += static_cast<size_t>(table.rows);
  }
  squares_.assign(columns_ * columns_, 0);
  products_.assign(columns_ * outputs_, 0);
  labels_.assign(outputs_, 0);
}

void LinearEquations::CollectCells(const FeatureBatch& batch, size_t row) {
  cells_.clear();
  cells_.push_back({dense_, 1});
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    for (const LinearFeature& feature : shape_.tables[t].features) {
      const IdSlot& slot = batch.slots[feature.slot];
      const size_t first = cells_.size();
      double sum = 0;
      double squares = 0;
      for (size_t i = slot.Begin(row); i < slot.End(row); ++i) {
        const double weight = slot.weights.empty() ? 1 : static_cast<double>(slot.weights[i]);
        sum += weight;
        squares += weight * weight;
        cells_.push_back(
            {tables_[t] + static_cast<size_t>(feature.first_row) + slot.ids[i], weight});
      }
      const double divisor = shape_.combiner == "mean"    ? sum
                             : shape_.combiner == "sqrtn" ? std::sqrt(squares)
                                                          : 1;
      for (size_t i = first; i < cells_.size(); ++i) {  // see LinearForm
        cells_[i].value *= divisor == 0 ? 0 : 1 / divisor;
      }
    }
  }
}

// Adds the products of dense columns with each other.
void LinearEquations::AddDense(const FeatureBatch& batch) {
  const float* input = batch.dense.data();
  const size_t stride = batch.dense_width;
  const float* right = input;
  if (!batch.weights.empty()) {
    weighted_.assign(input, input + (batch.rows - 1) * stride + dense_);
    for (size_t r = 0; r < batch.rows; ++r) {
      for (size_t c = 0; c < dense_; ++c) {
        weighted_[r * stride + c] *= batch.weights[r];
      }
    }
    right = weighted_.data();
  }
  // A kernel sums floats. Over more rows at once the error would exceed the ridge, and columns that
  // are sums of others (such as a year and the year of a date) would have no solution.
  constexpr size_t kRowsAtOnce = 256;
  for (size_t begin = 0; begin < batch.rows; begin += kRowsAtOnce) {
    const size_t rows = std::min(kRowsAtOnce, batch.rows - begin);
    block_.assign(dense_ * dense_, 0);
    ActiveKernels().gemm({dense_, dense_, rows, 1, stride, stride, dense_}, input + begin * stride,
                         right + begin * stride, block_.data());
    for (size_t i = 0; i < dense_; ++i) {
      for (size_t j = i; j < dense_; ++j) {
        squares_[i * columns_ + j] += static_cast<double>(block_[i * dense_ + j]);
      }
    }
  }
}

void LinearEquations::Add(const FeatureBatch& batch) {
  if (batch.rows == 0) {
    return;
  }
  if (dense_ > 0) {
    AddDense(batch);
  }
  for (size_t r = 0; r < batch.rows; ++r) {
    const double weight = batch.weights.empty() ? 1 : static_cast<double>(batch.weights[r]);
    const float* dense = batch.dense.data() + r * batch.dense_width;
    const float* labels = batch.labels.data() + r * outputs_;
    CollectCells(batch, r);
    for (const Cell& cell : cells_) {
      const double value = weight * cell.value;
      for (size_t c = 0; c < dense_; ++c) {
        squares_[c * columns_ + cell.column] += value * static_cast<double>(dense[c]);
      }
      for (const Cell& other : cells_) {
        if (other.column >= cell.column) {
          squares_[cell.column * columns_ + other.column] += value * other.value;
        }
      }
      for (size_t o = 0; o < outputs_; ++o) {
        products_[cell.column * outputs_ + o] += value * static_cast<double>(labels[o]);
      }
    }
    for (size_t o = 0; o < outputs_; ++o) {
      const double label = weight * static_cast<double>(labels[o]);
      labels_[o] += label * static_cast<double>(labels[o]);
      for (size_t c = 0; c < dense_; ++c) {
        products_[c * outputs_ + o] += label * static_cast<double>(dense[c]);
      }
    }
    weight_ += weight;
  }
  rows_ += static_cast<int64_t>(batch.rows);
}

// Rows, weight, labels, products, and the upper half of the squares, row by row.
std::vector<double> LinearEquations::Sums() const {
  std::vector<double> sums = {static_cast<double>(rows_), weight_};
  sums.reserve(sums.size() + labels_.size() + products_.size() + columns_ * (columns_ + 1) / 2);
  sums.insert(sums.end(), labels_.begin(), labels_.end());
  sums.insert(sums.end(), products_.begin(), products_.end());
  for (size_t i = 0; i < columns_; ++i) {
    const double* row = squares_.data() + i * columns_;
    sums.insert(sums.end(), row + i, row + columns_);
  }
  return sums;
}

Status LinearEquations::AddSums(const std::vector<double>& sums) {
  if (sums.size() != 2 + labels_.size() + products_.size() + columns_ * (columns_ + 1) / 2) {
    return Internal("the normal equations of another model");
  }
  rows_ += static_cast<int64_t>(sums[0]);
  weight_ += sums[1];
  const double* next = sums.data() + 2;
  for (std::vector<double>* part : {&labels_, &products_}) {
    for (double& number : *part) {
      number += *next++;
    }
  }
  for (size_t i = 0; i < columns_; ++i) {
    for (size_t j = i; j < columns_; ++j) {
      squares_[i * columns_ + j] += *next++;
    }
  }
  return OkStatus();
}

// The upper Cholesky factor of the matrix with the ridge; false: it is not positive definite.
bool LinearEquations::Factorize(Ridge ridge, std::vector<double>* upper) const {
  const size_t n = columns_;
  std::vector<double>& factor = *upper;
  factor = squares_;
  for (size_t i = 0; i < n; ++i) {
    factor[i * n + i] += i == dense_ ? 1e-9 : i < dense_ ? ridge.numbers : ridge.categories;
  }
  for (size_t i = 0; i < n; ++i) {
    double* row = factor.data() + i * n;
    if (!(row[i] > 0) || !std::isfinite(row[i])) {
      return false;
    }
    const double root = std::sqrt(row[i]);
    for (size_t j = i; j < n; ++j) {
      row[j] /= root;
    }
    for (size_t k = i + 1; k < n; ++k) {
      const double scale = row[k];
      double* below = factor.data() + k * n;
      for (size_t j = k; scale != 0 && j < n; ++j) {
        below[j] -= scale * row[j];
      }
    }
  }
  return true;
}

Result<std::vector<double>> LinearEquations::Solve(Ridge ridge) const {
  // Sums are floats: for redundant columns, rounding errors may exceed the ridge, so increase it.
  constexpr double kMore = 10;
  const size_t n = columns_;
  std::vector<double> factor;
  while (!Factorize(ridge, &factor)) {
    if (!(ridge.numbers < weight_)) {
      return Internal("the normal equations of a linear model have no solution");
    }
    ridge.numbers *= kMore;
    ridge.categories = std::max(ridge.categories, ridge.numbers);
  }
  std::vector<double> weights = products_;  // columns x outputs: LinearForm's order
  for (size_t o = 0; o < outputs_; ++o) {
    for (size_t i = 0; i < n; ++i) {
      weights[i * outputs_ + o] /= factor[i * n + i];
      for (size_t k = i + 1; k < n; ++k) {
        weights[k * outputs_ + o] -= factor[i * n + k] * weights[i * outputs_ + o];
      }
    }
    for (size_t i = n; i-- > 0;) {
      for (size_t k = i + 1; k < n; ++k) {
        weights[i * outputs_ + o] -= factor[i * n + k] * weights[k * outputs_ + o];
      }
      weights[i * outputs_ + o] /= factor[i * n + i];
    }
  }
  return weights;
}

double LinearEquations::MeanLoss(const std::vector<double>& weights) const {
  double sum = 0;
  for (size_t o = 0; o < outputs_; ++o) {
    sum += labels_[o];
    for (size_t i = 0; i < columns_; ++i) {
      const double weight = weights[i * outputs_ + o];
      sum -= 2 * weight * products_[i * outputs_ + o];
      for (size_t j = i; j < columns_; ++j) {
        sum += (i == j ? 1 : 2) * weight * squares_[i * columns_ + j] * weights[j * outputs_ + o];
      }
    }
  }
  return weight_ > 0 ? sum / weight_ : 0;
}

}  // namespace sluice::models
