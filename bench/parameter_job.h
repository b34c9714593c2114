#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/check.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/rpc/links.h"
#include "models/model.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {

inline constexpr int64_t kTableRows = 1'000'000;
inline constexpr size_t kBatchRows = 4'096;
inline constexpr uint32_t kDimension = 16;
inline constexpr int kBatches = 400;

// A network with one table of 8 million rows, and batches of ids of the first million.
class ParameterJob {
 public:
  ParameterJob() : plan_(SmallPlan(1, 64)) {
    models::Feature* category = plan_.mutable_model()->mutable_features()->mutable_features(2);
    category->set_dimension(kDimension);
    category->mutable_categorizer()->set_buckets(kTableRows * 8);
    network_ = models::Network::Make(plan_.model()).value();
    std::mt19937_64 random(3);
    for (int i = 0; i < kBatches; ++i) {
      std::vector<int64_t> ids(kBatchRows);
      for (int64_t& id : ids) {
        id = static_cast<int64_t>(random() % kTableRows);
      }
      std::sort(ids.begin(), ids.end());
      ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
      for (int64_t id = 0; ids.size() < kBatchRows; ++id) {
        if (!std::binary_search(ids.begin(), ids.end(), id)) {
          ids.insert(std::lower_bound(ids.begin(), ids.end(), id), id);
        }
      }
      std::shuffle(ids.begin(), ids.end(), random);
      batches_.push_back(std::move(ids));
    }
  }

  std::unique_ptr<ParameterShard> Shard(uint32_t partitions, bool empty) const {
    return ParameterShard::Make(plan_.model(), *network_, {partitions, false, empty}, nullptr)
        .value();
  }
  // One exchange for a batch: pull, then push.
  void Exchange(ParameterLink& link, const std::vector<int64_t>& ids, int64_t shard,
                int64_t batch) const {
    models::ParameterView view;
    view.tables.resize(network_->tables().size());
    view.tables[0].ids = ids;
    models::Gradient gradient;
    for (const models::DenseTensor& tensor : network_->dense()) {
      gradient.dense.emplace_back(tensor.size(), 0.01F);
    }
    gradient.tables.resize(view.tables.size());
    gradient.tables[0].assign(ids.size() * kDimension, 0.01F);
    BatchIdentity identity;
    identity.shard = elastic::ShardId(shard);
    identity.batch = elastic::BatchIndex(batch);
    Status status = link.Pull(identity, elastic::Purpose::kStep, &view);
    if (status.ok()) {
      status = link.Push(identity, 1, view, gradient);
    }
    SLUICE_CHECK(status.ok(), status.message());
  }
  const models::Network& network() const { return *network_; }
  const plan::TrainPlan& plan() const { return plan_; }
  const std::vector<int64_t>& ids(int batch) const {
    return batches_[static_cast<size_t>(batch) % batches_.size()];
  }

 private:
  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
  std::vector<std::vector<int64_t>> batches_;
};

}  // namespace sluice::elastic
