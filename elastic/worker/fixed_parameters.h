#pragma once

#include <functional>
#include <vector>

#include "elastic/rpc/links.h"
#include "models/model.h"

namespace sluice::elastic {

// Final weights, for evaluation. One thread.
class FixedParameters final : public ParameterLink {
 public:
  // `fetch` is called once, when they are first needed. The network must outlive this.
  using Fetch = std::function<Result<models::NetworkWeights>()>;
  FixedParameters(const models::Network& network, Fetch fetch)
      : network_(network), fetch_(std::move(fetch)) {}

  Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) override;
  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override;
  Status PushEnd(const BatchIdentity& batch) override;
  std::vector<int64_t> Versions() const override { return {1}; }
  Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) override;

 private:
  const models::Network& network_;
  Fetch fetch_;
  models::NetworkWeights weights_;
};

}  // namespace sluice::elastic
