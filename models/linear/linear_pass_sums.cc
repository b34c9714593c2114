#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>
#include <utility>

#include "models/linear_optimum.h"

// Linear models' sums as texts: the answer of one shard each, which are added in the shards' order.
namespace sluice::models {
namespace {

std::string ToBytes(const std::vector<double>& sums) {
  std::string bytes(sums.size() * sizeof(double), '\0');
  if (!sums.empty()) {
    std::memcpy(bytes.data(), sums.data(), bytes.size());
  }
  return bytes;
}

Result<std::vector<double>> FromBytes(const std::string& bytes, size_t length) {
  if (bytes.size() != length * sizeof(double)) {
    return Internal("a worker's sums are of another model");
  }
  std::vector<double> sums(length);
  if (length > 0) {
    std::memcpy(sums.data(), bytes.data(), bytes.size());
  }
  return sums;
}

class LinearPassSums final : public PassSums {
 public:
  explicit LinearPassSums(std::unique_ptr<LinearSums> sums) : sums_(std::move(sums)) {}

  Result<bool> Begin(const std::string& pass) override {
    ASSIGN_OR_RETURN(pass_, LinearPass::Parse(pass));
    return true;
  }
  bool NeedsRows(int64_t) const override { return true; }
  Status Add(int64_t shard, const FeatureBatch* training, const FeatureBatch*) override {
    std::vector<double> sums;
    RETURN_IF_ERROR(sums_->Sum(pass_, *training, &kept_[shard], &sums));
    answer_ = ToBytes(sums);
    return OkStatus();
  }
  std::string Take() override { return std::exchange(answer_, {}); }

 private:
  const std::unique_ptr<LinearSums> sums_;
  std::unordered_map<int64_t, LinearSums::Kept> kept_;
  LinearPass pass_;
  std::string answer_;
};

}  // namespace

void AddUp(const std::vector<double>& own, std::vector<double>* all) {
  all->resize(own.size());
  std::transform(own.begin(), own.end(), all->begin(), all->begin(), std::plus<>());
}

Result<std::unique_ptr<PassSums>> MakeLinearPassSums(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(auto sums, LinearSums::Make(spec));
  return std::unique_ptr<PassSums>(std::make_unique<LinearPassSums>(std::move(sums)));
}

Result<LinearOptimum::Pass> LinearPassesBy(const ModelSpec& spec, PassRun run) {
  ASSIGN_OR_RETURN(std::shared_ptr<LinearSums> nothing, LinearSums::Make(spec));
  return LinearOptimum::Pass([nothing, run = std::move(run)](
                                 const LinearPass& which) -> Result<std::vector<double>> {
    const std::string step = which.Serialize();
    ASSIGN_OR_RETURN(const std::vector<std::string> answers, run({step, [step] { return step; }}));
    std::vector<double> all;
    RETURN_IF_ERROR(nothing->Sum(which, {}, nullptr, &all));  // of no rows
    for (const std::string& answer : answers) {
      ASSIGN_OR_RETURN(const std::vector<double> own, FromBytes(answer, all.size()));
      AddUp(own, &all);
    }
    return all;
  });
}

}  // namespace sluice::models
