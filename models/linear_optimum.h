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

// Finds the weights at which a linear model's loss over all rows, with a small ridge, is least:
// squared loss of few columns by the normal equations, in one pass over the rows; any other by
// Newton's method, whose steps are found by conjugate gradients, in many passes. Reads the rows in
// the order in which they are given and adds up in that order: the same rows, the same bits. Not
// thread-safe.
class LinearOptimum {
 public:
  // Whether there is such a point, and a way to it: losses that are convex and smooth.
  static bool Finds(const ModelSpec& spec);
  static Result<std::unique_ptr<LinearOptimum>> Make(const ModelSpec& spec);
  virtual ~LinearOptimum() = default;

  // False: Solve reads the rows again and again.
  virtual bool one_pass() const = 0;

  // Requested: Solve ends with the weights that it has come to, those of one step at least.
  void FinishOn(std::stop_token finish) { finish_ = std::move(finish); }

  // Calls the visitor with all training rows, the same ones in the same order each time.
  using Visitor = std::function<Status(const FeatureBatch&)>;
  using Pass = std::function<Status(const Visitor&)>;
  // After each step: how many there have been, the mean loss before it, and how far the gradient
  // has come down (from 0 to 1, where 1 is the end). An error ends the search.
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
