#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elastic/rpc/grpc_links.h"
#include "elastic/rpc/parameter_control.h"
#include "elastic/server/parameter_service.h"
#include "models/model.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {

inline constexpr uint32_t kPartitions = 8;
inline constexpr char kToken[] = "token";

// Parameter servers with real gRPC endpoints; the test plays their master and their worker.
class ReplicationTest : public ::testing::Test {
 protected:
  ReplicationTest() : plan_(SmallPlan(1, 64)), control_(kToken, Term::First(), {}) {
    network_ = models::Network::Make(plan_.model()).value();
  }
  struct Server {
    std::unique_ptr<ParameterShard> shard;
    std::unique_ptr<ParameterServer> door;
  };
  void StartServer(ServerId id) {
    Server& server = servers_[id];
    ParameterShard::Options options;
    options.partitions = kPartitions;
    options.empty = true;
    server.shard = ParameterShard::Make(plan_.model(), *network_, options, nullptr).value();
    server.door = ParameterServer::Start({"127.0.0.1", kToken, id, nullptr}, *server.shard).value();
  }
  std::map<ServerId, std::string> Addresses() const {
    std::map<ServerId, std::string> addresses;
    for (const auto& [id, server] : servers_) {
      addresses.emplace(id, server.door->address());
    }
    return addresses;
  }
  // The map as installed by the master, except at `deaf`.
  void Install(const PartitionMap& map, ParameterControl::Phase phase, ServerId deaf = kNoServer) {
    for (const auto& one : {ParameterControl::Phase::kFreeze, phase}) {
      for (const auto& [id, address] : map.servers) {
        if (id != deaf) {
          const Status status = control_.Install(address, map, one);
          ASSERT_TRUE(status.ok()) << status.ToString();
        }
      }
    }
    Show(map);
  }
  // Publishes the map to workers.
  void Show(const PartitionMap& map) {
    const std::lock_guard lock(mutex_);
    map_ = map;
  }
  void Create(uint32_t count) {
    for (ServerId id; id < ServerId(count); ++id) {
      StartServer(id);
    }
    Install(PlaceEvenly(Addresses(), kPartitions, true), ParameterControl::Phase::kCreate);
  }
  std::unique_ptr<ParameterLink> Worker() {
    PartitionMap shown;
    {
      const std::lock_guard lock(mutex_);
      shown = map_;
    }
    return ConnectParameters(
        shown,
        [this](MapVersion) -> Result<PartitionMap> {
          ++asked_;
          if (when_asked_) {
            std::exchange(when_asked_, nullptr)();
          }
          const std::lock_guard lock(mutex_);
          return map_;
        },
        kToken, *network_, false, stop_.get_token());
  }
  Status PushBatch(ParameterLink& link, int64_t batch, int64_t shard = 0,
                   const std::function<void()>& before_push = {}) {
    models::ParameterView view;
    view.tables.resize(network_->tables().size());
    view.tables[0].ids.resize(20);
    std::iota(view.tables[0].ids.begin(), view.tables[0].ids.end(), batch % 7);
    BatchIdentity identity;
    identity.shard = ShardId(shard);
    identity.batch = BatchIndex(batch);
    RETURN_IF_ERROR(link.Pull(identity, Purpose::kStep, &view));
    models::Gradient gradient;
    for (const models::DenseTensor& tensor : network_->dense()) {
      gradient.dense.emplace_back(tensor.size(), 0.1F / static_cast<float>(batch + 1));
    }
    for (size_t t = 0; t < view.tables.size(); ++t) {
      gradient.tables.emplace_back(view.tables[t].values.size(), 0.2F);
    }
    if (before_push) {
      before_push();
    }
    return link.Push(identity, 1, view, gradient);
  }
  // A follower applies what it has received a little later.
  void ExpectSame(ServerId one, ServerId other, uint32_t partition) {
    const std::string bytes = servers_[one].shard->Save(partition).value();
    for (int i = 0; i < 500; ++i) {
      const Result<std::string> copy = servers_[other].shard->Save(partition);
      if (copy.ok() && *copy == bytes) {
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "partition " << partition << " on " << one << " and " << other;
  }

  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
  ParameterControl control_;
  std::map<ServerId, Server> servers_;
  std::mutex mutex_;
  PartitionMap map_;
  std::stop_source stop_;
  int asked_ = 0;
  std::function<void()> when_asked_;
};

}  // namespace sluice::elastic
