#include "executor/scoring/blend_scorer.h"

#include <fmt/core.h>

#include <cmath>
#include <map>
#include <utility>

#include "models/blend/blend.h"
#include "models/blend/joined_transform.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

class BlendScorer final : public Scorer {
 public:
  BlendScorer(std::vector<std::unique_ptr<Scorer>> members, std::vector<double> weights)
      : members_(std::move(members)),
        weights_(std::move(weights)),
        transform_(TransformsOf(members_)) {}

  Result<std::unique_ptr<Scorer>> Another() const override {
    std::vector<std::unique_ptr<Scorer>> members;
    for (const auto& member : members_) {
      ASSIGN_OR_RETURN(auto another, member->Another());
      members.push_back(std::move(another));
    }
    return std::unique_ptr<Scorer>(std::make_unique<BlendScorer>(std::move(members), weights_));
  }
  const models::FeatureTransform& transform() const override { return transform_; }
  size_t outputs() const override { return members_.front()->outputs(); }

  Status Score(const models::FeatureBatch& batch, std::vector<double>* scores) override {
    scores->assign(batch.rows * outputs(), 0);
    for (size_t m = 0; m < members_.size(); ++m) {
      transform_.Part(batch, m, &part_);
      RETURN_IF_ERROR(members_[m]->Score(part_, &said_));
      for (size_t i = 0; i < scores->size(); ++i) {
        (*scores)[i] += weights_[m] * said_[i];
      }
    }
    return OkStatus();
  }

  // Averages the importances of those members that have any, each as its shares of the gain, by the
  // members' weights.
  Result<std::vector<Importance>> FeatureImportance() const override {
    std::map<std::string, Importance> sums;
    bool any = false;
    Status first;
    for (size_t m = 0; m < members_.size(); ++m) {
      const Result<std::vector<Importance>> own = members_[m]->FeatureImportance();
      if (!own.ok()) {
        first = first.ok() ? own.status() : first;
        continue;
      }
      any = true;
      double total = 0;
      for (const Importance& feature : *own) {
        total += feature.gain;
      }
      for (const Importance& feature : *own) {
        Importance& sum = sums[feature.feature];
        sum.feature = feature.feature;
        sum.splits += feature.splits;
        sum.gain += total > 0 ? weights_[m] * feature.gain / total : 0;
      }
    }
    if (!any) {
      return first;
    }
    std::vector<Importance> importance;
    importance.reserve(sums.size());
    for (auto& [name, sum] : sums) {
      importance.push_back(std::move(sum));
    }
    return importance;
  }

 private:
  static std::vector<const models::FeatureTransform*> TransformsOf(
      const std::vector<std::unique_ptr<Scorer>>& members) {
    std::vector<const models::FeatureTransform*> transforms;
    transforms.reserve(members.size());
    for (const auto& member : members) {
      transforms.push_back(&member->transform());
    }
    return transforms;
  }
  size_t bytes_per_row() const override {
    size_t bytes = transform_.dense_width() * 2 * sizeof(float);
    for (const auto& member : members_) {
      bytes += member->bytes_per_row();
    }
    return bytes;
  }

  const std::vector<std::unique_ptr<Scorer>> members_;
  const std::vector<double> weights_;
  const models::JoinedTransform transform_;
  models::FeatureBatch part_;
  std::vector<double> said_;
};

}  // namespace

Result<std::unique_ptr<Scorer>> MakeBlendScorer(const models::ModelSpec& spec,
                                                std::string_view weights) {
  if (spec.members_size() == 0) {
    return InvalidArgument("a blend without members");
  }
  ASSIGN_OR_RETURN(const auto parts,
                   models::UnpackBlend(weights, static_cast<size_t>(spec.members_size())));
  std::vector<std::unique_ptr<Scorer>> members;
  std::vector<double> shares;
  for (int m = 0; m < spec.members_size(); ++m) {
    models::ModelSpec member = spec.members(m).model();
    const double share = spec.members(m).weight();
    if (member.members_size() > 0 || member.type() == models::kBlendType || !(share > 0) ||
        !std::isfinite(share)) {
      return InvalidArgument(fmt::format("member {} of a blend is a blend, or weighs nothing", m));
    }
    member.mutable_features()->mutable_label()->clear_class_weights();
    ASSIGN_OR_RETURN(auto scorer, Scorer::Make(member, parts[static_cast<size_t>(m)]));
    if (!members.empty() &&
        (scorer->transform().ColumnNames(true) != members.front()->transform().ColumnNames(true) ||
         scorer->outputs() != members.front()->outputs())) {
      return InvalidArgument("the members of a blend read or answer differently");
    }
    members.push_back(std::move(scorer));
    shares.push_back(share);
  }
  return std::unique_ptr<Scorer>(
      std::make_unique<BlendScorer>(std::move(members), std::move(shares)));
}

}  // namespace sluice::executor
