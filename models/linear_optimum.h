#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"
#include "models/model.h"
#include "models/pass_training.h"

namespace sluice::models {

class ModelSpec;

// One pass over all rows: what is added up, and at which weights. The search asks for one after the
// other; rows that lie elsewhere are added up there.
struct LinearPass {
  enum class Kind : uint8_t {
    kEquations,  // the normal equations
    kSlopes,     // loss, gradient and the second derivative's diagonal at `at`
    kBend,       // the second derivative at `at`, times `direction`
    kLosses,     // loss at `at` + `length` * `direction`
  };
  Kind kind = Kind::kEquations;
  // Which weights and which direction these are: equal numbers within a search, equal vectors.
  int64_t point = 0;
  int64_t way = 0;
  std::vector<double> at, direction;  // by weight
  double length = 0;

  std::string Serialize() const;
  static Result<LinearPass> Parse(const std::string& bytes);
};

// The contribution of rows to a pass. Equal rows give equal bits, in whichever process. Not
// thread-safe.
class LinearSums {
 public:
  static Result<std::unique_ptr<LinearSums>> Make(const ModelSpec& spec);
  virtual ~LinearSums() = default;
  // What earlier passes have found out about the same rows: saves time, changes nothing.
  struct Kept {
    int64_t point = -1;
    int64_t way = -1;
    std::vector<float> logits, states, changes;  // rows x outputs
  };
  // `sums` becomes what these rows add to the pass; its length depends on the pass alone.
  virtual Status Sum(const LinearPass& pass, const FeatureBatch& rows, Kept* kept,
                     std::vector<double>* sums) = 0;
};

// Adds the sums of another shard; `all` is empty before the first.
void AddUp(const std::vector<double>& own, std::vector<double>* all);

// Finds the weights at which a linear model's loss over all rows, with a small ridge, is least:
// squared loss of few columns by the normal equations, in one pass over the rows; any other by
// Newton's method, whose steps are found by conjugate gradients, in many passes. The same sums, the
// same bits. Not thread-safe.
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

  // The sums of all training rows (LinearSums), those of each shard added in the shards' order.
  using Pass = std::function<Result<std::vector<double>>(const LinearPass&)>;
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

// LinearSums of shards, as a worker's part of passes; and the passes that such workers do, for a
// search.
Result<std::unique_ptr<PassSums>> MakeLinearPassSums(const ModelSpec& spec);
Result<LinearOptimum::Pass> LinearPassesBy(const ModelSpec& spec, PassRun run);

}  // namespace sluice::models
