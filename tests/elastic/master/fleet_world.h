#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elastic/master/parameter_fleet.h"
#include "elastic/rpc/grpc_links.h"
#include "elastic/server/parameter_service.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {

inline constexpr uint32_t kFleetPartitions = 16;
inline constexpr char kFleetToken[] = "token";

// A port that accepts connections and never sends anything.
class SilentListener {
 public:
  SilentListener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in local{};
    local.sin_family = AF_INET;
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(local);
    auto* any = reinterpret_cast<sockaddr*>(&local);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 64), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    port_ = ntohs(local.sin_port);
  }
  ~SilentListener() { close(socket_); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const int socket_;
  int port_ = 0;
};

// A job's servers in this process, kept by a ParameterFleet.
class FleetWorld {
 public:
  FleetWorld(const plan::TrainPlan& plan, const models::Network& network, uint32_t servers,
             std::optional<CheckpointDirectory> checkpoints,
             std::optional<CheckpointDirectory::Found> restore = std::nullopt,
             double silence_seconds = 1000, double last_copy_silence_seconds = 1000)
      : plan_(plan), network_(network) {
    options_.servers = servers;
    options_.partitions = kFleetPartitions;
    options_.replicas = true;
    options_.key = kFleetToken;
    options_.silence_seconds = silence_seconds;
    options_.last_copy_silence_seconds = last_copy_silence_seconds;
    options_.checkpoints = std::move(checkpoints);
    options_.model = DescribeModel(plan.model(), network);
    options_.restore = std::move(restore);
    std::string folder = std::filesystem::temp_directory_path() / "sluice-servers-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    StartFleet();
    Await([this] {
      Beat();  // on a busy machine, filling them may take longer than they may be silent
      return fleet_->map().version > kNoMapVersion;
    });
  }
  ~FleetWorld() {
    fleet_->Stop();
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(failure_.ok() || failure_expected_) << failure_.ToString();
    doors_.clear();
    std::filesystem::remove_all(folder_);
  }

  void StartFleet() {
    ParameterFleet::Hooks hooks;
    hooks.start = [this](ServerId id) {
      {
        const std::lock_guard lock(mutex_);
        requested_.insert(id);
      }
      if (id == deaf_) {
        EXPECT_TRUE(fleet_->OnRegistered(id, silent_.address()));
      } else if (id != unplaced_) {
        Start(id);
      }
      return Status();
    };
    hooks.stop = [this](ServerId id) {
      Kill(id);
      const std::lock_guard lock(mutex_);
      stopped_.insert(id);
    };
    hooks.publish = [](const PartitionMap&) {};
    hooks.on_event = [this](const std::string& kind, const std::string& detail) {
      const std::lock_guard lock(mutex_);
      events_.push_back(kind);
      details_.push_back(detail);
    };
    hooks.fail = [this](const Status& cause) {
      const std::lock_guard lock(mutex_);
      failure_ = cause;
    };
    hooks.cut = [this](CheckpointManifest* manifest) {
      manifest->queue_state = std::to_string(pushed_.load());
      return Status();
    };
    hooks.remember = [this](const Placement& placement) {
      options_.placement = placement;
      return Status();
    };
    fleet_ = std::make_unique<ParameterFleet>(options_, std::move(hooks));
    fleet_->Start();
  }
  // The master has died; `halfway` does what it had begun.
  void TakeOver(const std::function<void()>& halfway) {
    fleet_.reset();
    halfway();
    ++options_.term;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, door] : doors_) {
        options_.running.push_back(id);
      }
    }
    StartFleet();
  }

  void Start(ServerId id) {
    ParameterShard::Options options;
    options.partitions = kFleetPartitions;
    options.empty = true;
    auto shard = ParameterShard::Make(plan_.model(), network_, options, nullptr).value();
    {
      const std::lock_guard lock(mutex_);
      shards_[id] = std::move(shard);
    }
    EXPECT_TRUE(fleet_->OnRegistered(id, Open(id)));
  }
  // Opens the gRPC endpoint of a server that has its parameters, at its own address.
  std::string Open(ServerId id) {
    const std::lock_guard lock(mutex_);
    const std::string address = Address(id);
    doors_[id] = ParameterServer::Start({address, kFleetToken, id, nullptr}, *shards_[id]).value();
    return address;
  }
  // Server `id` will accept connections and never answer; nor does it report to the fleet.
  void StartDeaf(ServerId id) { deaf_ = id; }
  // Server `id` will not find a place.
  void LeaveUnplaced(ServerId id) { unplaced_ = id; }
  bool Requested(ServerId id) const {
    const std::lock_guard lock(mutex_);
    return requested_.contains(id);
  }
  bool Stopped(ServerId id) const {
    const std::lock_guard lock(mutex_);
    return stopped_.contains(id);
  }
  // The report that servers send every second, from this one on.
  void Beat(ServerId first = ServerId(0)) {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, door] : doors_) {
      if (id >= first) {
        (void)fleet_->OnRegistered(id, Address(id));
      }
    }
  }
  // Why the job cannot continue, which is what the test expects.
  Status Failure() {
    const std::lock_guard lock(mutex_);
    failure_expected_ = true;
    return failure_;
  }
  void Kill(ServerId id) {
    const std::lock_guard lock(mutex_);
    doors_.erase(id);
  }
  void Await(const std::function<bool()>& what) const {
    for (int i = 0; i < 3'000 && !what(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(what());
  }
  bool Happened(const std::string& kind) const {
    const std::lock_guard lock(mutex_);
    return std::find(events_.begin(), events_.end(), kind) != events_.end();
  }
  std::unique_ptr<ParameterLink> Worker() const {
    return ConnectParameters(fleet_->map(),
                             [this](MapVersion) { return Result<PartitionMap>(fleet_->map()); },
                             kFleetToken, network_, false, {});
  }
  Status Push(ParameterLink& link, int64_t batch) {
    models::ParameterView view;
    view.tables.resize(network_.tables().size());
    view.tables[0].ids.resize(25);
    std::iota(view.tables[0].ids.begin(), view.tables[0].ids.end(), batch % 20);
    BatchIdentity identity;
    identity.batch = BatchIndex(batch);
    RETURN_IF_ERROR(link.Pull(identity, Purpose::kStep, &view));
    models::Gradient gradient;
    for (const models::DenseTensor& tensor : network_.dense()) {
      gradient.dense.emplace_back(tensor.size(), 0.01F);
    }
    for (const models::RowSet& rows : view.tables) {
      gradient.tables.emplace_back(rows.values.size(), 0.1F);
    }
    RETURN_IF_ERROR(link.Push(identity, 1, view, gradient));
    ++pushed_;
    return Status();
  }
  std::string Bits() { return models::SaveWeights(fleet_->Collect(network_, "").value()); }
  ParameterFleet& fleet() { return *fleet_; }
  // As ordered by the job's first master.
  static Status Order(const PartitionMap& map, ServerId server, ParameterControl::Phase phase) {
    return ParameterControl(kFleetToken, Term::First(), {})
        .Install(map.servers.at(server), map, phase);
  }

 private:
  std::string Address(ServerId id) const { return fmt::format("unix:{}/{}", folder_.string(), id); }

  ParameterFleet::Options options_;
  const plan::TrainPlan& plan_;
  const models::Network& network_;
  mutable std::mutex mutex_;
  std::vector<std::string> events_, details_;
  Status failure_;
  bool failure_expected_ = false;
  std::map<ServerId, std::unique_ptr<ParameterShard>> shards_;
  std::map<ServerId, std::unique_ptr<ParameterServer>> doors_;
  std::atomic<int64_t> pushed_ = 0;
  std::set<ServerId> requested_, stopped_;
  std::atomic<ServerId> deaf_ = kNoServer, unplaced_ = kNoServer;
  SilentListener silent_;
  std::filesystem::path folder_;
  std::unique_ptr<ParameterFleet> fleet_;
};

class ParameterFleetTest : public ::testing::Test {
 protected:
  ParameterFleetTest()
      : path_(std::filesystem::temp_directory_path() /
              ("sluice-fleet-test-" + std::to_string(getpid()))),
        plan_(SmallPlan(1, 64)) {
    std::filesystem::remove_all(path_);
    network_ = models::Network::Make(plan_.model()).value();
  }
  ~ParameterFleetTest() override { std::filesystem::remove_all(path_); }
  CheckpointDirectory Directory() const {
    return CheckpointDirectory::Open(path_.string(), 2).value();
  }

  std::filesystem::path path_;
  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

}  // namespace sluice::elastic
