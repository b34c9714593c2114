#include "models/linear_optimum.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/linear/linear_equations_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

// Up to this many columns the normal equations are cheaper than passes over the rows.
constexpr size_t kMaxEquations = 1'000;
// Penalty: half of this times the squared weights, added to the sum of the rows' losses. It weighs
// like one row, so that rare categories and words stay near 0. For numbers as features of numbers
// it is just enough for redundant columns to share a weight, and a straight line is still found
// exactly.
constexpr double kRidge = 1.0;
constexpr double kStraightRidge = 0.01;
constexpr double kLeastRidge = 1e-9;
// The search ends when the gradient has shrunk by this factor; the rest does not change the first
// five digits of any metric.
constexpr double kGradientLeft = 1e-5;
constexpr int kMaxSteps = 60;
constexpr int kMaxConjugateSteps = 100;
constexpr int kMaxHalvings = 20;

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

class LinearSearch final : public LinearOptimum {
 public:
  LinearSearch(LinearShape linear, Ridge ridge)
      : linear_(std::move(linear)),
        form_(linear_),
        squared_(linear_.kind == Loss::Kind::kSquared),
        ridge_(ridge),
        n_(linear_.outputs) {}

  bool one_pass() const override { return squared_ && form_.size() / n_ <= kMaxEquations; }

  Result<Found> Solve(const Pass& pass, const StepCallback& on_step) override {
    return one_pass() ? SolveEquations(pass, on_step) : Descend(pass, on_step);
  }

 private:
  Result<Found> SolveEquations(const Pass& pass, const StepCallback& on_step);
  Result<Found> Descend(const Pass& pass, const StepCallback& on_step);
  // Loss, gradient and the preconditioner at `at_`.
  Status LookAround(const Pass& pass);
  Status Curve(const Pass& pass, const Vector& direction, Vector* out);
  Result<Vector> FindDirection(const Pass& pass, double tolerance);
  Result<bool> Go(const Pass& pass, const Vector& direction);
  LinearPass PassAt(LinearPass::Kind kind) const { return {kind, point_, way_, at_, {}, 0}; }
  double Penalty(const Vector& weights) const;
  // As in Loss: squared errors are not halved.
  double MeanLoss() const { return weight_ > 0 ? (squared_ ? 2 : 1) * sum_ / weight_ : 0; }
  double RidgeOf(size_t weight) const {
    return form_.IsBias(weight)         ? 0
           : form_.IsOfCategory(weight) ? ridge_.categories
                                        : ridge_.numbers;
  }
  void AddRidge(const Vector& of, Vector* to) const;

  const LinearShape linear_;
  const LinearForm form_;
  const bool squared_;
  const Ridge ridge_;
  const size_t n_;

  Vector at_, gradient_, diagonal_;
  int64_t point_ = 0;  // grows with at_
  int64_t way_ = 0;    // grows with each direction
  double sum_ = 0;     // of the rows' weighted losses at at_
  double weight_ = 0;  // of all rows
  int64_t rows_ = -1;  // before the first pass
};

double LinearSearch::Penalty(const Vector& weights) const {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += RidgeOf(i) * weights[i] * weights[i];
  }
  return 0.5 * sum;
}

void LinearSearch::AddRidge(const Vector& of, Vector* to) const {
  for (size_t i = 0; i < of.size(); ++i) {
    (*to)[i] += RidgeOf(i) * of[i];
  }
}

Status LinearSearch::LookAround(const Pass& pass) {
  ASSIGN_OR_RETURN(const Vector sums, pass(PassAt(LinearPass::Kind::kSlopes)));
  const auto size = static_cast<std::ptrdiff_t>(form_.size());
  if (sums.size() != kSlopeHeads + 2 * form_.size()) {
    return Internal("the slopes of another model");
  }
  const auto rows = static_cast<int64_t>(sums[kSlopeRows]);
  if (rows_ >= 0 && rows != rows_) {
    return Status(Code::kAborted, "the rows changed while they were trained on").SqlState("40001");
  }
  rows_ = rows;
  weight_ = sums[kSlopeWeight];
  sum_ = sums[kSlopeLoss];
  const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(kSlopeHeads);
  gradient_.assign(begin, begin + size);
  diagonal_.assign(begin + size, sums.end());
  AddRidge(at_, &gradient_);
  for (size_t i = 0; i < diagonal_.size(); ++i) {
    diagonal_[i] += form_.IsBias(i) ? 1e-9 : RidgeOf(i);
  }
  return OkStatus();
}

// out = the second derivative times `direction`.
Status LinearSearch::Curve(const Pass& pass, const Vector& direction, Vector* out) {
  ++way_;
  LinearPass along = PassAt(LinearPass::Kind::kBend);
  along.direction = direction;
  ASSIGN_OR_RETURN(*out, pass(along));
  if (out->size() != form_.size()) {
    return Internal("the second derivative of another model");
  }
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
  for (int step = 0; step < kMaxConjugateSteps && error > wanted; ++step) {
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
  const double slope = Dot(gradient_, direction);
  const double before = sum_ + Penalty(at_);
  ++way_;
  LinearPass along = PassAt(LinearPass::Kind::kLosses);
  along.direction = direction;
  along.length = 1;
  for (int halving = 0; halving < kMaxHalvings && slope < 0; ++halving, along.length /= 2) {
    Vector there = at_;
    for (size_t i = 0; i < there.size(); ++i) {
      there[i] += along.length * direction[i];
    }
    ASSIGN_OR_RETURN(const Vector loss, pass(along));
    if (loss.size() == 1 &&
        loss.front() + Penalty(there) <= before + kEnough * along.length * slope) {
      at_ = std::move(there);
      ++point_;
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
    RETURN_IF_ERROR(LookAround(pass));
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
    if (rows_ == 0 || left <= kGradientLeft || step == kMaxSteps || (step > 0 && ShouldFinish())) {
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
  found.rows = rows_;
  return found;
}

Result<LinearOptimum::Found> LinearSearch::SolveEquations(const Pass& pass,
                                                          const StepCallback& on_step) {
  LinearPass all;
  all.kind = LinearPass::Kind::kEquations;
  ASSIGN_OR_RETURN(const Vector sums, pass(all));
  LinearEquations equations(linear_);
  RETURN_IF_ERROR(equations.AddSums(sums));
  Found found;
  found.rows = equations.rows();
  found.steps = 1;
  ASSIGN_OR_RETURN(const Vector solution, equations.Solve(ridge_));
  found.weights = form_.Export(solution);
  found.loss = equations.MeanLoss(solution);
  RETURN_IF_ERROR(on_step({1, found.loss, 1.0}));
  return found;
}

}  // namespace

Result<std::unique_ptr<LinearOptimum>> LinearOptimum::Make(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(LinearShape linear, LinearShape::Of(spec));
  Ridge ridge = {linear.kind == Loss::Kind::kSquared ? kStraightRidge : kRidge, kRidge};
  for (const Attribute& attribute : spec.attributes()) {
    if (attribute.name() == "model.ridge") {
      ridge = {attribute.number(), attribute.number()};
    }
  }
  if (!(ridge.numbers >= 0) || !std::isfinite(ridge.numbers)) {
    return InvalidArgument(fmt::format("a ridge cannot be {}", ridge.numbers));
  }
  // With none, a category that no row has would leave the equations without a single solution.
  ridge = {std::max(ridge.numbers, kLeastRidge), std::max(ridge.categories, kLeastRidge)};
  return std::unique_ptr<LinearOptimum>(std::make_unique<LinearSearch>(std::move(linear), ridge));
}

}  // namespace sluice::models
