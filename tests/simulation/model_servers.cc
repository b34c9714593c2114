#include "tests/simulation/model_servers.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace sluice::elastic::simulation {
namespace {

constexpr uint32_t kPartition[] = {0};
constexpr int64_t kNeverStale[] = {int64_t{1} << 60};  // every gradient counts in full
constexpr uint64_t kMap = 0;                           // the one that workers go by
constexpr uint64_t kNoMap = 1;

}  // namespace

ModelServers::ModelServers(size_t count, size_t batches, bool synchronous)
    : model_(LinearModelOf(batches)), synchronous_(synchronous), servers_(count) {
  Restart({});
}

void ModelServers::Restart(const std::vector<std::string>& saved) {
  ParameterShard::Options options;
  options.synchronous = synchronous_;
  for (size_t s = 0; s < servers_.size(); ++s) {
    Result<std::unique_ptr<ParameterShard>> shard =
        ParameterShard::Make(model_.spec, *model_.network, options, nullptr);
    SLUICE_CHECK(shard.ok(), "the simulated servers can be made");
    servers_[s] = {std::move(*shard), {}};
    if (!saved.empty()) {
      const Status loaded = servers_[s].shard->Load(kPartition[0], saved.at(s));
      SLUICE_CHECK(loaded.ok(), "what a simulated server has saved can be loaded");
    }
  }
}

Status ModelServers::Push(size_t server, const BatchIdentity& batch, std::optional<size_t> place) {
  Server& at = servers_[server];
  std::vector<std::vector<float>> dense;
  for (const models::DenseTensor& tensor : model_.network->dense()) {
    dense.emplace_back(tensor.size(), 0.0F);
  }
  PushRequest request;
  request.map_version = kMap;
  request.partitions = kPartition;
  request.versions = kNeverStale;
  request.batch = batch;
  request.weight = 1;
  request.end = !place.has_value();
  request.tables.resize(model_.network->tables().size());
  if (place.has_value()) {
    dense[model_.tensor][*place] = 1;
  }
  for (const std::vector<float>& tensor : dense) {
    request.dense.emplace_back(tensor);
  }
  const int64_t before = at.shard->version();
  Status status = at.shard->Push(request);
  if (batch.lanes == 0 && status.code() != Code::kNotFound) {
    uint32_t& newest = at.attempts[{batch.epoch, batch.shard, batch.range}];
    if (at.shard->version() > before && batch.attempt < newest && broken_.empty()) {
      broken_ = fmt::format("I3: server {} applied batch {} of shard {} from attempt {} after {}",
                            server, batch.batch, batch.shard, batch.attempt, newest);
    }
    newest = std::max(newest, batch.attempt);
  }
  return status;
}

Status ModelServers::Ready(size_t server, const BatchIdentity& batch) {
  PullRequest request;
  request.map_version = kMap;
  request.partitions = kPartition;
  request.batch = batch;
  request.tables.resize(model_.network->tables().size());
  int64_t version = 0;
  PullTarget target;
  target.versions = std::span(&version, 1);
  return servers_[server].shard->Pull(request, target, 0);
}

Result<int64_t> ModelServers::AppliedBatches(size_t server, uint32_t epoch, int64_t shard) const {
  return servers_[server].shard->AppliedBatches(kMap, epoch, shard);
}

Status ModelServers::KeepBest(size_t server) {
  return servers_[server].shard->KeepBest(kMap);
}

std::vector<float> ModelServers::Weights(size_t server) const {
  return servers_[server].shard->ExportAll(*model_.network).value().dense[model_.tensor];
}

void ModelServers::StandStill(size_t server) {
  servers_[server].shard->Serve(kNoMap, {});
}

void ModelServers::GoOn(size_t server) {
  servers_[server].shard->Serve(kMap, {kPartition[0]});
}

std::string ModelServers::Save(size_t server) const {
  return servers_[server].shard->Save(kPartition[0]).value();
}

}  // namespace sluice::elastic::simulation
