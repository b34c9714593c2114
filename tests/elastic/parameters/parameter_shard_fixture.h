#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "elastic/parameters/parameter_shard.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {

// A shard of SmallPlan's network with plain gradient descent, rate 0.1: effects can be computed by
// hand.
class ParameterShardTest : public ::testing::Test {
 protected:
  ParameterShardTest() : plan_(SmallPlan(1, 64)) {
    SetOptimizer("SGD", 0.1);
    network_ = models::Network::Make(plan_.model()).value();
  }
  void SetOptimizer(const std::string& name, double rate) {
    models::OptimizerSpec& optimizer = *plan_.mutable_model()->mutable_deep_optimizer();
    optimizer.set_name(name);
    optimizer.mutable_arguments(0)->set_number(rate);
  }
  std::unique_ptr<ParameterShard> Make(uint32_t partitions = 1, bool synchronous = false) const {
    return ParameterShard::Make(plan_.model(), *network_, {partitions, synchronous, false}, nullptr)
        .value();
  }

  // A gradient of `value` everywhere, for the rows `ids` of the first table.
  struct Owned {
    std::vector<uint32_t> partitions;
    std::vector<int64_t> versions;
    std::vector<std::vector<float>> dense;
    std::vector<std::vector<int64_t>> ids;
    std::vector<std::vector<float>> values;
    PushRequest request;
  };
  // `partitions`: those of a job of `of`; empty: all.
  Owned Gradient(BatchIdentity batch, float value, const std::vector<int64_t>& ids,
                 int64_t version = 0, uint32_t of = 1,
                 std::vector<uint32_t> partitions = {}) const {
    const PartitionLayout layout(*network_, of);
    if (partitions.empty()) {
      partitions.resize(of);
      std::iota(partitions.begin(), partitions.end(), 0);
    }
    Owned owned;
    owned.partitions = std::move(partitions);
    owned.versions.assign(owned.partitions.size(), version);
    owned.ids.resize(network_->tables().size());
    owned.values.resize(network_->tables().size());
    for (uint32_t partition : owned.partitions) {
      for (const PartitionLayout::Chunk& chunk : layout.chunks(partition)) {
        owned.dense.emplace_back(chunk.size(), value);
      }
      std::copy_if(ids.begin(), ids.end(), std::back_inserter(owned.ids[0]),
                   [&](int64_t id) { return layout.PartitionOf(0, id) == partition; });
    }
    owned.values[0].assign(owned.ids[0].size() * network_->tables()[0].dimension, value);
    owned.request.partitions = owned.partitions;
    owned.request.versions = owned.versions;
    owned.request.batch = batch;
    owned.request.weight = 1;
    for (const std::vector<float>& tensor : owned.dense) {
      owned.request.dense.emplace_back(tensor);
    }
    for (size_t t = 0; t < owned.ids.size(); ++t) {
      owned.request.tables.push_back({owned.ids[t], owned.values[t]});
    }
    return owned;
  }
  std::vector<float> Row(ParameterShard& shard, int64_t id, BatchIdentity step = {},
                         Purpose purpose = Purpose::kLatest, int64_t* version = nullptr) const {
    const uint32_t partition = shard.rules().layout.PartitionOf(0, id);
    std::vector<std::vector<int64_t>> ids(network_->tables().size());
    ids[0] = {id};
    std::vector<float> row(network_->tables()[0].dimension);
    PullRequest pull;
    pull.partitions = std::span(&partition, 1);
    pull.batch = step;
    pull.purpose = purpose;
    int64_t read = 0;
    PullTarget target;
    target.versions = std::span(&read, 1);
    for (const std::vector<int64_t>& table : ids) {
      pull.tables.emplace_back(table);
      target.tables.push_back(row.data());
    }
    const Status status = shard.Pull(pull, target, 0.01);
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (version != nullptr) {
      *version = read;
    }
    return row;
  }
  std::string Bits(const ParameterShard& shard) const {
    return models::SaveWeights(shard.ExportAll(*network_).value());
  }
  static BatchIdentity Batch(int64_t shard, int64_t batch, uint32_t attempt = 1) {
    BatchIdentity identity;
    identity.shard = ShardId(shard);
    identity.batch = BatchIndex(batch);
    identity.attempt = Attempt(attempt);
    return identity;
  }
  static BatchIdentity Lane(uint32_t lane, uint32_t lanes, int64_t step, int64_t round = 0) {
    BatchIdentity identity;
    identity.batch = BatchIndex(step);
    identity.round = RoundIndex(round);
    identity.lane = lane;
    identity.lanes = lanes;
    identity.shard = ShardId(lane);
    return identity;
  }

  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

}  // namespace sluice::elastic
