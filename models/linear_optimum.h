#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/model.h"

namespace sluice::models {

class ModelSpec;

// Finds the weights that minimise a linear model's loss over all rows plus a small ridge penalty:
// squared loss with few columns by the normal equations, in one pass over the rows; any other loss
// by Newton's method, with steps found by conjugate gradients, in many passes. Sums over the rows
// in the given order: the same rows give the same bits. Not thread-safe.
class LinearOptimum {
 public:
  // Whether the loss is convex and smooth, so that the minimum exists and can be found.
  static bool Finds(const ModelSpec& spec);
  static Result<std::unique_ptr<LinearOptimum>> Make(const ModelSpec& spec);
  virtual ~LinearOptimum() = default;

  // False: Solve reads the rows many times.
  virtual bool one_pass() const = 0;

  // When requested, Solve ends with the weights reached so far, after at least one step.
  void FinishOn(std::stop_token finish) { finish_ = std::move(finish); }

  // Calls the visitor with all training rows: the same ones in the same order each time.
  using Visitor = std::function<Status(const FeatureBatch&)>;
  using Pass = std::function<Status(const Visitor&)>;
  // Called after each step: the number of steps, the mean loss before it, and how far the gradient
  // has fallen (from 0 to 1, where 1 is the end). An error ends the search.
  struct Step {
    int number = 0;
    double loss = 0;
    double progress = 0;
  };
  using StepCallback = std::function<Status(const Step&)>;
  struct Found {
    NetworkWeights weights;
    double loss = 0;  // weighted mean over the rows
    int steps = 0;
    int64_t rows = 0;
  };
  virtual Result<Found> Solve(const Pass& pass, const StepCallback& on_step) = 0;

 protected:
  bool ShouldFinish() const { return finish_.stop_requested(); }

 private:
  std::stop_token finish_;
};

}  // namespace sluice::models
