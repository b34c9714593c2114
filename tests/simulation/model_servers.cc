#include "tests/simulation/model_servers.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace sluice::elastic::simulation {
namespace {

constexpr uint32_t kPartition[] = {0};
constexpr int64_t kNeverStale[] = {int64_t{1} << 60};  // every gradient counts in full
constexpr MapVersion kMap{0};                          // the version used by workers
constexpr MapVersion kNoMap{1};

}  // namespace

ModelServers::ModelServers(size_t count, size_t batches, bool synchronous, bool replicas)
    : model_(LinearModelOf(batches)),
      synchronous_(synchronous),
      replicas_(replicas),
      servers_(count) {
  Restart({});
}

std::unique_ptr<ParameterShard> ModelServers::MakeShard() const {
  ParameterShard::Options options;
  options.synchronous = synchronous_;
  Result<std::unique_ptr<ParameterShard>> shard =
      ParameterShard::Make(model_.spec, *model_.network, options, nullptr);
  SLUICE_CHECK(shard.ok(), "the simulated servers can be made");
  return std::move(*shard);
}

void ModelServers::Restart(const std::vector<std::string>& saved) {
  for (size_t s = 0; s < servers_.size(); ++s) {
    servers_[s] = Server();
    servers_[s].shard = MakeShard();
    if (!saved.empty()) {
      const Status loaded = servers_[s].shard->Load(kPartition[0], saved.at(s));
      SLUICE_CHECK(loaded.ok(), "what a simulated server has saved can be loaded");
    }
    if (replicas_) {
      Refill(s);
    }
  }
}

bool ModelServers::Ship(Server* at, const std::function<Status(ParameterShard*)>& apply) {
  if (at->backup == nullptr) {
    return true;
  }
  if (at->dies_unshipped) {
    at->shard = std::move(at->backup);
    at->dies_unshipped = false;
    Serve(*at);
    return false;
  }
  const Status applied = apply(at->backup.get());
  if (!applied.ok() && broken_.empty()) {
    broken_ = "a backup cannot follow: " + applied.ToString();
  }
  return true;
}

bool ModelServers::Lose(size_t server, bool unshipped) {
  Server& at = servers_[server];
  if (at.backup == nullptr || at.dies_unshipped) {
    return false;
  }
  if (unshipped) {
    at.dies_unshipped = true;
    return true;
  }
  at.shard = std::move(at.backup);
  at.away = true;
  Serve(at);
  return true;
}

void ModelServers::Return(size_t server) {
  servers_[server].away = false;
  Serve(servers_[server]);
}

void ModelServers::Refill(size_t server) {
  Server& at = servers_[server];
  if (at.backup == nullptr) {
    at.backup = MakeShard();
    const Status loaded = at.backup->Load(kPartition[0], Save(server));
    SLUICE_CHECK(loaded.ok(), "what a simulated server has can be copied");
  }
}

void ModelServers::Serve(const Server& server) const {
  const bool serves = !server.still && !server.away;
  server.shard->Serve(serves ? kMap : kNoMap,
                      serves ? std::vector<uint32_t>{kPartition[0]} : std::vector<uint32_t>());
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
  bool shipped = true;
  Status status = at.shard->Push(request);
  if (status.ok()) {
    shipped = Ship(&at, [&](ParameterShard* backup) { return backup->PushReplica(request, {}); });
  }
  if (!shipped) {
    return NotFound("it died");  // and what it had applied is unknown
  }
  if (batch.lanes == 0 && status.code() != Code::kNotFound) {
    Attempt& newest = at.attempts[{batch.epoch, batch.shard, batch.range}];
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

Result<BatchIndex> ModelServers::AppliedBatches(size_t server, Epoch epoch, ShardId shard) const {
  return servers_[server].shard->AppliedBatches(kMap, epoch, shard);
}

Result<int64_t> ModelServers::Version(size_t server) const {
  const Server& at = servers_[server];
  if (at.still || at.away) {
    return NotFound("it stands still");
  }
  return at.shard->version();
}

Result<std::string> ModelServers::KeepBest(size_t server, const KeepOrder& order) {
  Server& at = servers_[server];
  ASSIGN_OR_RETURN(const ParameterShard::Kept kept, at.shard->KeepBest(kMap, order));
  const bool shipped = Ship(&at, [&](ParameterShard* backup) {
    return backup->KeepBestReplica(kPartition, order.number);
  });
  if (!shipped) {
    return NotFound("it died");
  }
  return DigestOf(*kept.at(kPartition[0]));
}

models::NetworkWeights ModelServers::Export(size_t server) const {
  return servers_[server].shard->ExportAll(*model_.network).value();
}

std::vector<float> ModelServers::Weights(size_t server) const {
  return Export(server).dense[model_.tensor];
}

void ModelServers::StandStill(size_t server) {
  servers_[server].still = true;
  Serve(servers_[server]);
}

void ModelServers::Resume(size_t server) {
  servers_[server].still = false;
  Serve(servers_[server]);
}

std::string ModelServers::Save(size_t server) const {
  return servers_[server].shard->Save(kPartition[0]).value();
}

}  // namespace sluice::elastic::simulation
