#include "models/linear_optimum.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/kernels/kernels.h"
#include "models/model.pb.h"
#include "models/networks/linear_equations_internal.h"
#include "models/networks/loss.h"
#include "models/networks/network_internal.h"

namespace sluice::models {
namespace {

// Up to this many columns the normal equations are cheaper than passes over the rows.
constexpr size_t kMostEquations = 1'000;
// Penalty: half of this times the squared weights, added to the sum of the rows' losses. For
// classes it weighs like one row, so that rare categories stay near 0; for numbers it is just
// enough for redundant columns to share a weight, and a straight line is still found exactly.
constexpr double kClassRidge = 1.0;
constexpr double kNumberRidge = 0.01;
// The search ends when the gradient has shrunk by this factor; the rest does not change the first
// five digits of any metric.
constexpr double kGradientLeft = 1e-5;
constexpr int kMostSteps = 60;
constexpr int kMostConjugateSteps = 100;
constexpr int kMostHalvings = 20;

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

// The derivatives of one kind of loss for a row: residual = slope by each logit, and how the
// residuals change along a direction.
class RowLoss {
 public:
  RowLoss(Loss::Kind kind, size_t outputs) : kind_(kind), n_(outputs) {}

  // Sum of weighted losses at the logits; `state` (one per logit) receives what Bend needs,
  // `residuals` the slopes, unless they are null.
  double At(const FeatureBatch& batch, const float* logits, float* state, float* residuals) {
    const size_t count = batch.rows * n_;
    losses_.resize(count);
    scratch_.resize(count);
    float* values = state == nullptr ? scratch_.data() : state;
    if (kind_ == Loss::Kind::kLogistic) {
      ActiveKernels().logistic(logits, batch.labels.data(), losses_.data(), values, count);
    } else if (kind_ == Loss::Kind::kSoftmax) {
      Softmax(batch, logits, values);
    }
    double sum = 0;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float weight = batch.weights.empty() ? 1.0F : batch.weights[r];
      double loss = 0;
      for (size_t o = 0; o < n_; ++o) {
        const size_t i = r * n_ + o;
        float slope = 0;
        if (kind_ == Loss::Kind::kSoftmax) {
          loss += o == 0 ? static_cast<double>(losses_[r]) : 0.0;
          slope = values[i] - (static_cast<size_t>(batch.labels[r]) == o ? 1.0F : 0.0F);
        } else if (kind_ == Loss::Kind::kLogistic) {
          loss += static_cast<double>(losses_[i]);
          slope = values[i] - batch.labels[i];
        } else {
          slope = logits[i] - batch.labels[i];
          loss += 0.5 * static_cast<double>(slope) * static_cast<double>(slope);
        }
        if (residuals != nullptr) {
          residuals[i] = slope * weight;
        }
      }
      sum += loss * static_cast<double>(weight);
    }
    return sum;
  }

  // In place: converts a change of the logits to the change of the residuals.
  void Bend(const FeatureBatch& batch, const float* state, float* change) const {
    for (size_t r = 0; r < batch.rows; ++r) {
      const float weight = batch.weights.empty() ? 1.0F : batch.weights[r];
      const float* p = state + r * n_;
      float* u = change + r * n_;
      float mean = 0;
      for (size_t o = 0; kind_ == Loss::Kind::kSoftmax && o < n_; ++o) {
        mean += p[o] * u[o];
      }
      for (size_t o = 0; o < n_; ++o) {
        const float slope = kind_ == Loss::Kind::kSoftmax    ? p[o] * (u[o] - mean)
                            : kind_ == Loss::Kind::kLogistic ? p[o] * (1 - p[o]) * u[o]
                                                             : u[o];
        u[o] = slope * weight;
      }
    }
  }

  // For each logit separately: the derivative of its residual.
  void Curvature(const FeatureBatch& batch, const float* state, float* curvature) const {
    for (size_t r = 0; r < batch.rows; ++r) {
      const float weight = batch.weights.empty() ? 1.0F : batch.weights[r];
      for (size_t i = r * n_; i < (r + 1) * n_; ++i) {
        curvature[i] = weight * (kind_ == Loss::Kind::kSquared ? 1.0F : state[i] * (1 - state[i]));
      }
    }
  }

 private:
  void Softmax(const FeatureBatch& batch, const float* logits, float* values) {
    std::copy_n(logits, batch.rows * n_, values);
    for (size_t r = 0; r < batch.rows; ++r) {
      float* row = values + r * n_;
      const float largest = *std::max_element(row, row + n_);
      for (size_t o = 0; o < n_; ++o) {
        row[o] -= largest;
      }
      losses_[r] = -row[static_cast<size_t>(batch.labels[r])];
    }
    ActiveKernels().exp(values, batch.rows * n_);
    for (size_t r = 0; r < batch.rows; ++r) {
      float* row = values + r * n_;
      float sum = 0;
      for (size_t o = 0; o < n_; ++o) {
        sum += row[o];
      }
      losses_[r] += std::log(sum);
      for (size_t o = 0; o < n_; ++o) {
        row[o] /= sum;
      }
    }
  }

  const Loss::Kind kind_;
  const size_t n_;
  std::vector<float> losses_, scratch_;
};

class LinearSearch final : public LinearOptimum {
 public:
  LinearSearch(std::unique_ptr<FeatureTransform> transform, NetworkShape shape, Loss::Kind kind,
               size_t outputs, double ridge)
      : transform_(std::move(transform)),
        form_(std::move(shape), outputs),
        kind_(kind),
        ridge_(ridge),
        loss_(kind, outputs),
        n_(outputs) {}

  bool one_pass() const override {
    return kind_ == Loss::Kind::kSquared && form_.size() / n_ <= kMostEquations;
  }

  Result<Found> Solve(const Pass& pass, const StepCallback& on_step) override {
    return one_pass() ? SolveEquations(pass, on_step) : Descend(pass, on_step);
  }

 private:
  Result<Found> SolveEquations(const Pass& pass, const StepCallback& on_step);
  Result<Found> Descend(const Pass& pass, const StepCallback& on_step);
  // Computes logits, states, the residuals' gradient and the preconditioner at `at_`.
  Status LookAround(const Pass& pass, bool again);
  Status Curve(const Pass& pass, const Vector& direction, Vector* out);
  Result<Vector> FindDirection(const Pass& pass, double tolerance);
  Result<bool> Go(const Pass& pass, const Vector& direction);
  Status CheckRows(size_t row, const FeatureBatch& batch) const;
  double Penalty(const Vector& weights) const;
  // As in Loss: squared errors are not halved.
  double MeanLoss() const {
    return weight_ > 0 ? (kind_ == Loss::Kind::kSquared ? 2 : 1) * sum_ / weight_ : 0;
  }
  void AddRidge(const Vector& of, Vector* to) const;

  const std::unique_ptr<FeatureTransform> transform_;
  LinearForm form_;
  const Loss::Kind kind_;
  const double ridge_;
  RowLoss loss_;
  const size_t n_;

  Vector at_, gradient_, diagonal_;
  double sum_ = 0;                                // sum of the rows' weighted losses at at_
  double weight_ = 0;                             // total weight of the rows
  std::vector<float> logits_, states_, changes_;  // n_ per row, in the order of the pass
  size_t rows_ = 0;
};

double LinearSearch::Penalty(const Vector& weights) const {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += form_.IsBias(i) ? 0 : weights[i] * weights[i];
  }
  return 0.5 * ridge_ * sum;
}

void LinearSearch::AddRidge(const Vector& of, Vector* to) const {
  for (size_t i = 0; i < of.size(); ++i) {
    (*to)[i] += form_.IsBias(i) ? 0 : ridge_ * of[i];
  }
}

Status LinearSearch::CheckRows(size_t row, const FeatureBatch& batch) const {
  return row + batch.rows <= rows_
             ? OkStatus()
             : Status(Code::kAborted, "the rows changed while they were trained on")
                   .SqlState("40001");
}

Status LinearSearch::LookAround(const Pass& pass, bool again) {
  gradient_.assign(form_.size(), 0);
  diagonal_.assign(form_.size(), 0);
  sum_ = 0;
  form_.Load(at_);
  size_t row = 0;
  std::vector<float> residuals;
  const auto visit = [&](const FeatureBatch& batch) -> Status {
    if (!again) {
      rows_ += batch.rows;
      logits_.resize(rows_ * n_);
      states_.resize(rows_ * n_);
      for (size_t r = 0; r < batch.rows; ++r) {
        weight_ += batch.weights.empty() ? 1.0 : static_cast<double>(batch.weights[r]);
      }
    }
    RETURN_IF_ERROR(CheckRows(row, batch));
    float* logits = logits_.data() + row * n_;
    float* states = states_.data() + row * n_;
    residuals.resize(batch.rows * n_);
    form_.Multiply(batch, logits);
    sum_ += loss_.At(batch, logits, states, residuals.data());
    form_.AddTransposed(batch, residuals.data(), &gradient_);
    loss_.Curvature(batch, states, residuals.data());
    form_.AddSquaresTransposed(batch, residuals.data(), &diagonal_);
    row += batch.rows;
    return OkStatus();
  };
  RETURN_IF_ERROR(pass(visit));
  AddRidge(at_, &gradient_);
  for (size_t i = 0; i < diagonal_.size(); ++i) {
    diagonal_[i] += form_.IsBias(i) ? 1e-9 : ridge_;
  }
  return OkStatus();
}

// out = the second derivative times `direction`.
Status LinearSearch::Curve(const Pass& pass, const Vector& direction, Vector* out) {
  out->assign(form_.size(), 0);
  form_.Load(direction);
  size_t row = 0;
  std::vector<float> change;
  const auto visit = [&](const FeatureBatch& batch) -> Status {
    RETURN_IF_ERROR(CheckRows(row, batch));
    change.resize(batch.rows * n_);
    form_.Multiply(batch, change.data());
    loss_.Bend(batch, states_.data() + row * n_, change.data());
    form_.AddTransposed(batch, change.data(), out);
    row += batch.rows;
    return OkStatus();
  };
  RETURN_IF_ERROR(pass(visit));
  AddRidge(direction, out);
  return OkStatus();
}

// Newton's direction, as precisely as it is worth the passes: conjugate gradients, with each column
// scaled by its own curvature.
Result<Vector> LinearSearch::FindDirection(const Pass& pass, double tolerance) {
  const size_t size = form_.size();
  Vector direction(size, 0), residual(size), scaled(size), search(size), curved;
  for (size_t i = 0; i < size; ++i) {
    residual[i] = -gradient_[i];
    scaled[i] = residual[i] / diagonal_[i];
  }
  search = scaled;
  double error = Dot(residual, scaled);
  const double wanted = error * tolerance * tolerance;
  for (int step = 0; step < kMostConjugateSteps && error > wanted; ++step) {
    RETURN_IF_ERROR(Curve(pass, search, &curved));
    const double bend = Dot(search, curved);
    if (!(bend > 0)) {
      break;
    }
    const double length = error / bend;
    for (size_t i = 0; i < size; ++i) {
      direction[i] += length * search[i];
      residual[i] -= length * curved[i];
      scaled[i] = residual[i] / diagonal_[i];
    }
    const double next = Dot(residual, scaled);
    for (size_t i = 0; i < size; ++i) {
      search[i] = scaled[i] + next / error * search[i];
    }
    error = next;
    if (ShouldFinish()) {
      break;  // the direction found so far leads downhill, too
    }
  }
  return direction;
}

// Moves along the direction as far as the loss decreases. False: it does not.
Result<bool> LinearSearch::Go(const Pass& pass, const Vector& direction) {
  constexpr double kEnough = 1e-4;  // share of the decrease that the slope predicts
  changes_.resize(logits_.size());
  form_.Load(direction);
  size_t row = 0;
  const auto multiply = [&](const FeatureBatch& batch) -> Status {
    RETURN_IF_ERROR(CheckRows(row, batch));
    form_.Multiply(batch, changes_.data() + row * n_);
    row += batch.rows;
    return OkStatus();
  };
  RETURN_IF_ERROR(pass(multiply));
  const double slope = Dot(gradient_, direction);
  const double before = sum_ + Penalty(at_);
  double length = 1;
  std::vector<float> moved;
  for (int halving = 0; halving < kMostHalvings && slope < 0; ++halving, length /= 2) {
    Vector there = at_;
    for (size_t i = 0; i < there.size(); ++i) {
      there[i] += length * direction[i];
    }
    double sum = 0;
    row = 0;
    RETURN_IF_ERROR(pass([&](const FeatureBatch& batch) -> Status {
      moved.resize(batch.rows * n_);
      for (size_t i = 0; i < moved.size(); ++i) {
        moved[i] = logits_[row * n_ + i] + static_cast<float>(length) * changes_[row * n_ + i];
      }
      sum += loss_.At(batch, moved.data(), nullptr, nullptr);
      row += batch.rows;
      return OkStatus();
    }));
    if (sum + Penalty(there) <= before + kEnough * length * slope) {
      at_ = std::move(there);
      return true;
    }
  }
  return false;
}

Result<LinearOptimum::Found> LinearSearch::Descend(const Pass& pass, const StepCallback& on_step) {
  at_.assign(form_.size(), 0);
  double first = 0;
  double left = 1;
  int step = 0;
  for (;; ++step) {
    RETURN_IF_ERROR(LookAround(pass, step > 0));
    const double length = std::sqrt(Dot(gradient_, gradient_));
    first = step == 0 ? length : first;
    left = first > 0 ? length / first : 0;
    if (!std::isfinite(left)) {
      return Internal("the loss of a linear model is not a number");
    }
    const double done = left > 0 ? std::log(left) / std::log(kGradientLeft) : 1.0;
    if (step > 0 || rows_ > 0) {
      RETURN_IF_ERROR(on_step({step, MeanLoss(), std::clamp(done, 0.0, 1.0)}));
    }
    if (rows_ == 0 || left <= kGradientLeft || step == kMostSteps || (step > 0 && ShouldFinish())) {
      break;
    }
    constexpr double kCoarsest = 0.1;
    ASSIGN_OR_RETURN(const Vector direction,
                     FindDirection(pass, std::min(kCoarsest, std::sqrt(left))));
    ASSIGN_OR_RETURN(const bool further, Go(pass, direction));
    if (!further) {
      break;  // as close as floating-point precision allows
    }
  }
  Found found;
  found.weights = form_.Export(at_);
  found.loss = MeanLoss();
  found.steps = std::max(step, 1);
  found.rows = static_cast<int64_t>(rows_);
  return found;
}

Result<LinearOptimum::Found> LinearSearch::SolveEquations(const Pass& pass,
                                                          const StepCallback& on_step) {
  LinearEquations equations(form_.shape(), n_);
  RETURN_IF_ERROR(pass([&](const FeatureBatch& batch) -> Status {
    equations.Add(batch);
    return OkStatus();
  }));
  Found found;
  found.rows = equations.rows();
  found.steps = 1;
  ASSIGN_OR_RETURN(const Vector solution, equations.Solve(ridge_));
  found.weights = form_.Export(solution);
  found.loss = equations.MeanLoss(solution);
  RETURN_IF_ERROR(on_step({1, found.loss, 1.0}));
  return found;
}

bool HasOptimum(Loss::Kind kind) {
  return kind == Loss::Kind::kLogistic || kind == Loss::Kind::kSoftmax ||
         kind == Loss::Kind::kSquared;
}

}  // namespace

bool LinearOptimum::Finds(const ModelSpec& spec) {
  const Result<Loss> loss = Loss::Make(spec);
  return loss.ok() && HasOptimum(loss->kind());
}

Result<std::unique_ptr<LinearOptimum>> LinearOptimum::Make(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(const Loss loss, Loss::Make(spec));
  ASSIGN_OR_RETURN(auto transform,
                   FeatureTransform::Make(spec.features(), FeatureTransform::Target::kNetwork));
  ASSIGN_OR_RETURN(NetworkShape shape, ShapeOf(spec, *transform, loss.outputs()));
  if (shape.deep || !shape.wide || !HasOptimum(loss.kind())) {
    return Unimplemented(fmt::format("{} has no optimum that could be computed", spec.type()));
  }
  double ridge = loss.kind() == Loss::Kind::kSquared ? kNumberRidge : kClassRidge;
  for (const Attribute& attribute : spec.attributes()) {
    ridge = attribute.name() == "model.ridge" ? attribute.number() : ridge;
  }
  if (!(ridge >= 0) || !std::isfinite(ridge)) {
    return InvalidArgument(fmt::format("a ridge cannot be {}", ridge));
  }
  return std::unique_ptr<LinearOptimum>(std::make_unique<LinearSearch>(
      std::move(transform), std::move(shape), loss.kind(), loss.outputs(), ridge));
}

}  // namespace sluice::models
