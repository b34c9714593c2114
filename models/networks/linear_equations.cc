#include "models/networks/linear_equations_internal.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/kernels/kernels.h"

namespace sluice::models {

LinearForm::LinearForm(NetworkShape shape, size_t outputs)
    : shape_(std::move(shape)), outputs_(outputs) {
  SLUICE_CHECK(shape_.wide_dense.runs.size() <= 1, "a linear model has all dense columns");
  bias_ = shape_.wide_dense.width * outputs_;
  size_ = bias_ + outputs_;
  rows_.resize(shape_.tables.size());
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    tables_.push_back(size_);
    size_ += static_cast<size_t>(shape_.tables[t].rows) * outputs_;
  }
}

void LinearForm::Load(const std::vector<double>& weights) {
  const auto copy = [&weights](size_t from, size_t count, std::vector<float>* to) {
    to->resize(count);
    for (size_t i = 0; i < count; ++i) {
      (*to)[i] = static_cast<float>(weights[from + i]);
    }
  };
  copy(0, bias_, &kernel_);
  copy(bias_, outputs_, &bias_values_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    copy(tables_[t], static_cast<size_t>(shape_.tables[t].rows) * outputs_, &rows_[t].values);
  }
}

// Maps each id of the batch to its row in the whole table.
void LinearForm::Place(const TableUse& use, const FeatureBatch& batch, RowSet* rows) const {
  rows->positions.clear();
  for (const SlotUse& slot : use.slots) {
    for (const uint32_t id : batch.slots[slot.slot].ids) {
      rows->positions.push_back(static_cast<uint32_t>(slot.offset) + id);
    }
  }
}

void LinearForm::Multiply(const FeatureBatch& batch, float* logits) {
  const Kernels& kernels = ActiveKernels();
  const size_t width = shape_.wide_dense.width;
  if (width == 0) {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::copy_n(bias_values_.data(), outputs_, logits + r * outputs_);
    }
  } else {
    const float* input = batch.dense.data() + shape_.wide_dense.runs.front().from;
    if (outputs_ == 1) {
      kernels.row_dots(batch.rows, width, input, batch.dense_width, kernel_.data(),
                       bias_values_.front(), logits);
    } else {
      kernels.gemm_bias({batch.rows, outputs_, width, batch.dense_width, 1, outputs_, outputs_},
                        input, kernel_.data(), bias_values_.data(), logits);
    }
  }
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    Place(shape_.uses[t], batch, &rows_[t]);
    columns_.Forward(shape_.uses[t], batch, rows_[t], outputs_, logits, outputs_);
  }
}

void LinearForm::AddTransposed(const FeatureBatch& batch, const float* values,
                               std::vector<double>* sums) {
  if (batch.rows == 0) {
    return;
  }
  const Kernels& kernels = ActiveKernels();
  const auto add = [&](size_t place) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      (*sums)[place + i] += static_cast<double>(sums_[i]);
    }
  };
  if (const size_t width = shape_.wide_dense.width; width > 0) {
    const float* input = batch.dense.data() + shape_.wide_dense.runs.front().from;
    sums_.assign(width * outputs_, 0);
    kernels.gemm({width, outputs_, batch.rows, 1, batch.dense_width, outputs_, outputs_}, input,
                 values, sums_.data());
    add(0);
  }
  sums_.assign(outputs_, 0);
  kernels.column_sums(batch.rows, outputs_, values, outputs_, sums_.data());
  add(bias_);
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    Place(shape_.uses[t], batch, &rows_[t]);
    sums_.assign(static_cast<size_t>(shape_.tables[t].rows) * outputs_, 0);
    columns_.Backward(shape_.uses[t], batch, rows_[t], outputs_, values, outputs_, sums_.data());
    add(tables_[t]);
  }
}

void LinearForm::AddSquaresTransposed(const FeatureBatch& batch, const float* values,
                                      std::vector<double>* sums) {
  FeatureBatch squared;
  squared.rows = batch.rows;
  squared.dense_width = batch.dense_width;
  squares_.resize(batch.dense.size());
  std::transform(batch.dense.begin(), batch.dense.end(), squares_.begin(),
                 [](float cell) { return cell * cell; });
  squared.dense.swap(squares_);
  squared.slots = batch.slots;
  for (IdSlot& slot : squared.slots) {
    for (float& weight : slot.weights) {
      weight *= weight;
    }
  }
  AddTransposed(squared, values, sums);
  squared.dense.swap(squares_);
}

NetworkWeights LinearForm::Export(const std::vector<double>& weights) const {
  NetworkWeights exported;
  const auto tensor = [&](size_t from, size_t count) {
    std::vector<float>& to = exported.dense.emplace_back(count);
    std::transform(weights.begin() + static_cast<std::ptrdiff_t>(from),
                   weights.begin() + static_cast<std::ptrdiff_t>(from + count), to.begin(),
                   [](double weight) { return static_cast<float>(weight); });
  };
  if (bias_ > 0) {
    tensor(0, bias_);
  }
  tensor(bias_, outputs_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    NetworkWeights::Table& table = exported.tables.emplace_back();
    for (int64_t id = 0; id < shape_.tables[t].rows; ++id) {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(
                                               tables_[t] + static_cast<size_t>(id) * outputs_);
      const auto end = begin + static_cast<std::ptrdiff_t>(outputs_);
      if (std::all_of(begin, end, [](double weight) { return weight == 0; })) {
        continue;  // does not occur in any row
      }
      table.ids.push_back(id);
      std::transform(begin, end, std::back_inserter(table.values),
                     [](double weight) { return static_cast<float>(weight); });
    }
  }
  return exported;
}

LinearEquations::LinearEquations(const NetworkShape& shape, size_t outputs)
    : shape_(shape), outputs_(outputs), dense_(shape.wide_dense.width) {
  columns_ = dense_ + 1;
  for (const EmbeddingTable& table : shape.tables) {
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
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    for (const SlotUse& use : shape_.uses[t].slots) {
      const IdSlot& slot = batch.slots[use.slot];
      const size_t first = cells_.size();
      double sum = 0;
      double squares = 0;
      for (size_t i = slot.Begin(row); i < slot.End(row); ++i) {
        const double weight = slot.weights.empty() ? 1 : static_cast<double>(slot.weights[i]);
        sum += weight;
        squares += weight * weight;
        cells_.push_back({tables_[t] + static_cast<size_t>(use.offset) + slot.ids[i], weight});
      }
      const double divisor = use.combiner == Combiner::kMean    ? sum
                             : use.combiner == Combiner::kSqrtn ? std::sqrt(squares)
                                                                : 1;
      for (size_t i = first; i < cells_.size(); ++i) {  // see TableColumns
        cells_[i].value *= divisor == 0 ? 0 : 1 / divisor;
      }
    }
  }
}

// Adds the products of dense columns with each other.
void LinearEquations::AddDense(const FeatureBatch& batch) {
  const float* input = batch.dense.data() + shape_.wide_dense.runs.front().from;
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
  const size_t from = dense_ > 0 ? shape_.wide_dense.runs.front().from : 0;
  if (dense_ > 0) {
    AddDense(batch);
  }
  for (size_t r = 0; r < batch.rows; ++r) {
    const double weight = batch.weights.empty() ? 1 : static_cast<double>(batch.weights[r]);
    const float* dense = batch.dense.data() + r * batch.dense_width + from;
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
