#include <fmt/core.h>

#include <algorithm>

#include "models/graph/broadcast_internal.h"
#include "models/graph/operator_internal.h"

// Matrix products.
namespace sluice::models::graph {
namespace {

// A matrix in memory: rows x columns, or transposed.
struct Matrix {
  const float* values = nullptr;
  bool transposed = false;
};

// C (+)= A x B by the kernels, with a buffer for a transposed B.
class Product {
 public:
  void Multiply(const Kernels& kernels, size_t m, size_t n, size_t k, Matrix a, Matrix b, bool add,
                const float* bias, float* c, bool dots = true) {
    const bool row = n == 1 && !add && dots;  // B's column is contiguous either way
    if (row && !a.transposed && k > 0) {
      return kernels.row_dots(m, k, a.values, k, b.values, bias == nullptr ? 0.0F : *bias, c);
    }
    const float* rows = b.values;
    if (b.transposed && n > 1 && k > 1) {
      transposed_.resize(k * n);
      kernels.transpose(n, k, b.values, k, transposed_.data(), n);
      rows = transposed_.data();
    }
    GemmShape shape = {m, n, k, k, 1, n, n};
    if (a.transposed) {
      shape.a_row_stride = 1;
      shape.a_column_stride = m;
    }
    if (n == 1 && m > 1) {  // as a row: a column of width one would use few registers
      // C' = B' x A': needs A' in memory, which a transposed A is.
      if (a.transposed) {
        shape = {1, m, k, k, 1, m, m};
        return Run(kernels, shape, rows, a.values, add, nullptr, c);
      }
    }
    Run(kernels, shape, a.values, rows, add, bias, c);
  }

 private:
  static void Run(const Kernels& kernels, const GemmShape& shape, const float* a, const float* b,
                  bool add, const float* bias, float* c) {
    if (shape.m == 0 || shape.n == 0) {
      return;
    }
    if (add) {
      kernels.gemm_add(shape, a, b, c);
    } else if (bias != nullptr) {
      kernels.gemm_bias(shape, a, b, bias, c);
    } else {
      kernels.gemm(shape, a, b, c);
    }
  }
  std::vector<float> transposed_;
};

// alpha x A' x B' + beta x C. Not of ONNX: `dots`, 0: a single column is computed as wider products
// are, not as dot products of rows; the sums are rounded otherwise.
class Gemm final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    RETURN_IF_ERROR(node.NeedFloat(1));
    const Shape& a = node.In(0).shape;
    const Shape& b = node.In(1).shape;
    if (a.size() != 2 || b.size() != 2) {
      return InvalidArgument(fmt::format("matrices have two axes, not the shapes {} and {}",
                                         ShapeText(a), ShapeText(b)))
          .Hint("MatMul takes any number of axes");
    }
    a_turned_ = node.attributes->Integer("transA", 0) != 0;
    b_turned_ = node.attributes->Integer("transB", 0) != 0;
    alpha_ = node.attributes->Number("alpha", 1);
    beta_ = node.attributes->Number("beta", 1);
    dots_ = node.attributes->Integer("dots", 1) != 0;
    m_ = static_cast<size_t>(a_turned_ ? a[1] : a[0]);
    k_ = static_cast<size_t>(a_turned_ ? a[0] : a[1]);
    n_ = static_cast<size_t>(b_turned_ ? b[0] : b[1]);
    if (static_cast<size_t>(b_turned_ ? b[1] : b[0]) != k_) {
      return InvalidArgument(fmt::format("matrices of the shapes {} and {} have no product",
                                         ShapeText(a), ShapeText(b)));
    }
    Shape shape = {static_cast<int64_t>(m_), static_cast<int64_t>(n_)};
    RETURN_IF_ERROR(CheckShape(shape));
    simple_bias_ = false;
    if (node.Has(2)) {
      RETURN_IF_ERROR(node.NeedFloat(2));
      const Shape& c = node.In(2).shape;
      ASSIGN_OR_RETURN(const Shape both, BroadcastShape(shape, c));
      if (both != shape) {
        return InvalidArgument(fmt::format("a value of shape {} cannot be added to one of {}",
                                           ShapeText(c), ShapeText(shape)));
      }
      addend_ = Broadcast(shape, {&c});
      const bool as_row = n_ == 1 && a_turned_;  // see Product
      simple_bias_ = alpha_ == 1 && beta_ == 1 && !as_row && node.In(2).size() == shape[1] &&
                     (c.size() == 1 || (c.size() == 2 && c[0] == 1));
    }
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    float* c = node.Out().numbers;
    product_.Multiply(*node.kernels, m_, n_, k_, {node.In(0).numbers, a_turned_},
                      {node.In(1).numbers, b_turned_}, false,
                      simple_bias_ ? node.In(2).numbers : nullptr, c, dots_);
    if (simple_bias_) {
      return;
    }
    if (alpha_ != 1) {
      for (size_t i = 0; i < m_ * n_; ++i) {
        c[i] *= alpha_;
      }
    }
    if (node.Has(2)) {
      const float* addend = node.In(2).numbers;
      const size_t step = addend_.step(0);
      addend_.ForEachRun([&](size_t place, size_t n, const auto& first) {
        for (size_t i = 0; i < n; ++i) {
          c[place + i] += beta_ * addend[static_cast<size_t>(first[0]) + i * step];
        }
      });
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    if (node.Has(2)) {
      BackwardAddend(node, back);
    }
    if (alpha_ != 1) {
      scaled_.resize(m_ * n_);
      for (size_t i = 0; i < m_ * n_; ++i) {
        scaled_[i] = alpha_ * back[i];
      }
      back = scaled_.data();
    }
    const Matrix a = {node.In(0).numbers, a_turned_};
    const Matrix b = {node.In(1).numbers, b_turned_};
    if (const GradientTarget target = node.Target(0)) {
      if (a_turned_) {  // k x m = B G'
        product_.Multiply(*node.kernels, k_, m_, n_, b, {back, true}, target.add, nullptr,
                          target.to);
      } else {  // m x k = G B'
        product_.Multiply(*node.kernels, m_, k_, n_, {back, false}, {b.values, !b.transposed},
                          target.add, nullptr, target.to, dots_);
      }
    }
    if (const GradientTarget target = node.Target(1)) {
      if (b_turned_) {  // n x k = G' A
        product_.Multiply(*node.kernels, n_, k_, m_, {back, true}, a, target.add, nullptr,
                          target.to);
      } else {  // k x n = A' G
        product_.Multiply(*node.kernels, k_, n_, m_, {a.values, !a.transposed}, {back, false},
                          target.add, nullptr, target.to);
      }
    }
  }

 private:
  void BackwardAddend(const OperatorContext& node, const float* back) {
    if (simple_bias_) {
      if (const GradientTarget target = node.Target(2)) {
        sums_.resize(n_);
        float* to = target.add ? sums_.data() : target.to;
        node.kernels->column_sums(m_, n_, back, n_, to);
        for (size_t j = 0; target.add && j < n_; ++j) {
          target.to[j] += to[j];
        }
      }
    } else if (float* to = node.Zeroed(2)) {
      AddPlaces(addend_, 0, to,
                [&](size_t place, size_t, const auto&) { return beta_ * back[place]; });
    }
  }

  size_t m_ = 0;
  size_t n_ = 0;
  size_t k_ = 0;
  bool a_turned_ = false;
  bool b_turned_ = false;
  bool simple_bias_ = false;  // C is a row, added by the kernel
  bool dots_ = true;
  float alpha_ = 1;
  float beta_ = 1;
  Broadcast addend_;
  Product product_;
  std::vector<float> scaled_;
  std::vector<float> sums_;
};

// For any number of axes: the last two are matrices, the others are batch axes.
class MatMul final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    RETURN_IF_ERROR(node.NeedFloat(1));
    Shape a = node.In(0).shape;
    Shape b = node.In(1).shape;
    if (a.empty() || b.empty()) {
      return InvalidArgument("a single number is no matrix").Hint("say Mul");
    }
    const bool row = a.size() == 1;
    const bool column = b.size() == 1;
    if (row) {
      a.insert(a.begin(), 1);
    }
    if (column) {
      b.push_back(1);
    }
    m_ = static_cast<size_t>(a[a.size() - 2]);
    k_ = static_cast<size_t>(a.back());
    n_ = static_cast<size_t>(b.back());
    if (b[b.size() - 2] != a.back()) {
      return InvalidArgument(fmt::format("values of the shapes {} and {} have no product",
                                         ShapeText(node.In(0).shape), ShapeText(node.In(1).shape)));
    }
    const Shape batch_a(a.begin(), a.end() - 2);
    const Shape batch_b(b.begin(), b.end() - 2);
    ASSIGN_OR_RETURN(Shape shape, BroadcastShape(batch_a, batch_b));
    products_ = Broadcast(shape, {&batch_a, &batch_b});
    batches_ = static_cast<size_t>(ExtentOf(shape, 0));
    a_repeats_ = ExtentOf(batch_a, 0) != ExtentOf(shape, 0);
    b_repeats_ = ExtentOf(batch_b, 0) != ExtentOf(shape, 0);
    if (batch_b.empty()) {  // one B for all: a single product of all rows
      m_ *= batches_;
      batches_ = 1;
      products_ = Broadcast(Shape{}, {});
      a_repeats_ = b_repeats_ = false;
    }
    if (!row) {
      shape.push_back(a[a.size() - 2]);
    }
    if (!column) {
      shape.push_back(b.back());
    }
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    ForEach([&](size_t place, size_t at_a, size_t at_b) {
      product_.Multiply(*node.kernels, m_, n_, k_, {node.In(0).numbers + at_a * m_ * k_, false},
                        {node.In(1).numbers + at_b * k_ * n_, false}, false, nullptr,
                        node.Out().numbers + place * m_ * n_);
    });
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    if (const GradientTarget target = TargetOf(node, 0, a_repeats_)) {
      ForEach([&](size_t place, size_t at_a, size_t at_b) {
        product_.Multiply(*node.kernels, m_, k_, n_, {back + place * m_ * n_, false},
                          {node.In(1).numbers + at_b * k_ * n_, true}, target.add, nullptr,
                          target.to + at_a * m_ * k_);
      });
    }
    if (const GradientTarget target = TargetOf(node, 1, b_repeats_)) {
      ForEach([&](size_t place, size_t at_a, size_t at_b) {
        product_.Multiply(*node.kernels, k_, n_, m_, {node.In(0).numbers + at_a * m_ * k_, true},
                          {back + place * m_ * n_, false}, target.add, nullptr,
                          target.to + at_b * k_ * n_);
      });
    }
  }

 private:
  static GradientTarget TargetOf(const OperatorContext& node, size_t k, bool repeats) {
    return repeats ? GradientTarget{node.Zeroed(k), true} : node.Target(k);
  }
  template <typename Body>
  void ForEach(Body body) const {
    products_.ForEachRun([&](size_t place, size_t n, const auto& first) {
      for (size_t i = 0; i < n; ++i) {
        body(place + i, static_cast<size_t>(first[0]) + i * products_.step(0),
             static_cast<size_t>(first[1]) + i * products_.step(1));
      }
    });
  }

  size_t m_ = 0;
  size_t n_ = 0;
  size_t k_ = 0;
  size_t batches_ = 0;
  bool a_repeats_ = false;
  bool b_repeats_ = false;
  Broadcast products_;
  Product product_;
};

}  // namespace

std::span<const OperatorEntry> ProductOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"MatMul", 2, 2, 1, "", MakeOperator<MatMul>},
      {"Gemm", 2, 3, 1, "alpha beta transA transB dots", MakeOperator<Gemm>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
