#include "elastic/master/parameter_fleet.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <thread>

#include "elastic/rpc/grpc_links.h"
#include "elastic/server/parameter_service.h"
#include "planner/plan.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kFleetPartitions = 16;
constexpr char kFleetToken[] = "token";

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
class World {
 public:
  World(const plan::TrainPlan& plan, const models::Network& network, uint32_t servers,
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
    std::string folder = fs::temp_directory_path() / "sluice-servers-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    StartFleet();
    Await([this] {
      Beat();  // on a busy machine, filling them may take longer than they may be silent
      return fleet_->map().version > kNoMapVersion;
    });
  }
  ~World() {
    fleet_->Stop();
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(failure_.ok() || failure_expected_) << failure_.ToString();
    doors_.clear();
    fs::remove_all(folder_);
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
  fs::path folder_;
  std::unique_ptr<ParameterFleet> fleet_;
};

class ParameterFleetTest : public ::testing::Test {
 protected:
  ParameterFleetTest()
      : path_(fs::temp_directory_path() / ("sluice-fleet-test-" + std::to_string(getpid()))),
        plan_(SmallPlan(1, 64)) {
    fs::remove_all(path_);
    network_ = models::Network::Make(plan_.model()).value();
  }
  ~ParameterFleetTest() override { fs::remove_all(path_); }
  CheckpointDirectory Directory() const {
    return CheckpointDirectory::Open(path_.string(), 2).value();
  }

  fs::path path_;
  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
};

// Checkpoints are written while a worker pushes; the last of them, restored on another number of
// servers, is a state that the undisturbed run went through, and continues to its end.
TEST_F(ParameterFleetTest, P11_P14_ACutThroughRunningTrainingIsConsistent) {
  constexpr int64_t kBatches = 150;
  const CheckpointDirectory directory = Directory();
  World world(plan_, *network_, 3, directory);
  const auto worker = world.Worker();
  for (int64_t batch = 0; batch < kBatches; ++batch) {
    if (batch == 20 || batch == 60) {
      world.fleet().RequestCheckpoint();
    }
    ASSERT_TRUE(world.Push(*worker, batch).ok());
  }
  world.Await([&] { return world.Happened("checkpoint_written"); });
  EXPECT_FALSE(world.Happened("checkpoint_failed"));
  const std::string bits = world.Bits();
  world.fleet().Stop();
  const auto found = directory.Newest(DescribeModel(plan_.model(), *network_)).value();
  ASSERT_TRUE(found.has_value());
  const int64_t committed = std::stoll(found->manifest.queue_state);

  World restored(plan_, *network_, 2, std::nullopt, *found);
  const auto again = restored.Worker();
  const int64_t applied = again->AppliedBatches(Epoch(1), ShardId(0))->value();
  EXPECT_GE(applied, committed) << "what the queue counts is in the parameters";
  EXPECT_LE(applied, committed + 1) << "one worker has one batch under way";
  for (int64_t batch = applied; batch < kBatches; ++batch) {
    ASSERT_TRUE(restored.Push(*again, batch).ok());
  }
  EXPECT_EQ(restored.Bits(), bits);
}

// A master died between the two rounds of installing a map, at its third attempt: one server is
// stopped, the other already uses the map. The successor installs the last map that all servers
// know again, under a version that no server has seen with another map.
TEST_F(ParameterFleetTest, K20_AMapThatAMasterLeftHalfwayIsInstalledAnew) {
  World world(plan_, *network_, 2, std::nullopt);
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  const PartitionMap known = world.fleet().map();
  PartitionMap halfway = known;
  halfway.version = halfway.version.Next().Next().Next();
  std::swap(halfway.primary, halfway.backup);
  world.TakeOver([&] {
    for (const ServerId server : {ServerId(0), ServerId(1)}) {
      ASSERT_TRUE(World::Order(halfway, server, ParameterControl::Phase::kFreeze).ok());
    }
    ASSERT_TRUE(World::Order(halfway, ServerId(1), ParameterControl::Phase::kAdopt).ok());
  });
  world.Await([&] { return world.fleet().map().version > known.version; });
  const PartitionMap now = world.fleet().map();
  ASSERT_GT(now.version, halfway.version) << "two maps of one version";
  EXPECT_EQ(now.primary, known.primary);
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

// A server that hangs while it is filled is given up after its silence, not after the deadlines of
// calls; pushes wait no longer than that; another takes its place. The evaluated weights are kept
// even if the master dies before it learns so, its successor repeats the order when training has
// continued, and a server is lost whose backup then has them; also by servers that came later.
TEST_F(ParameterFleetTest, E6_WhatWasJudgedIsKeptThroughLostMastersAndServers) {
  World world(plan_, *network_, 3, std::nullopt);
  auto worker = world.Worker();
  for (int64_t batch = 0; batch < 4; ++batch) {
    ASSERT_TRUE(world.Push(*worker, batch).ok());
  }
  const std::string judged = world.Bits();
  const KeepOrder order{1, std::vector<int64_t>(worker->Versions().size(), 4)};
  const Result<std::string> digest = world.fleet().Keep(order);
  ASSERT_TRUE(digest.ok()) << digest.status().ToString();
  for (int64_t batch = 4; batch < 8; ++batch) {
    ASSERT_TRUE(world.Push(*worker, batch).ok());
  }
  world.TakeOver([] {});
  EXPECT_EQ(*world.fleet().Keep(order), *digest);
  for (const ServerId lost : {ServerId(0), ServerId(1)}) {
    world.fleet().OnLost(lost, "killed");
    world.Kill(lost);
    world.Await([&] {
      const PartitionMap map = world.fleet().map();
      return !map.servers.contains(lost) && map.servers.size() == 3;
    });
    worker = world.Worker();
    ASSERT_TRUE(world.Push(*worker, 8 + lost.value()).ok());
    EXPECT_EQ(*world.fleet().Keep(order), *digest);
    const Result<models::NetworkWeights> kept = world.fleet().Collect(*network_, *digest);
    ASSERT_TRUE(kept.ok()) << kept.status().ToString();
    EXPECT_EQ(models::SaveWeights(*kept), judged);
  }
  // An order to keep weights that are gone is an error, and so are weights other than those kept.
  EXPECT_EQ(world.fleet().Keep({2, order.versions}).status().code(), Code::kFailedPrecondition);
  const Status other = world.fleet().Collect(*network_, "another digest").status();
  EXPECT_EQ(other.diagnostics().front().sqlstate, "XX001") << other.ToString();
}

TEST_F(ParameterFleetTest, AServerThatHangsWhileItIsFilledIsGivenUp) {
  World world(plan_, *network_, 2, std::nullopt, std::nullopt, 1);
  const std::jthread beats([&world](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      world.Beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.StartDeaf(ServerId(2));
  world.fleet().SetServers(3);
  int64_t batch = 1;
  std::chrono::duration<double> longest(0);
  world.Await([&] {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(world.Push(*worker, batch++).ok());
    longest =
        std::max<std::chrono::duration<double>>(longest, std::chrono::steady_clock::now() - begin);
    return world.fleet().map().servers.contains(ServerId(3));
  });
  EXPECT_LT(longest.count(), 10) << "a call's own patience is 15 seconds, the silence 1";
  EXPECT_FALSE(world.fleet().map().servers.contains(ServerId(2)));
  ASSERT_TRUE(world.Push(*worker, batch).ok());
}

TEST_F(ParameterFleetTest, TheLastCopyIsWaitedForWhileItIsSilent) {
  World world(plan_, *network_, 2, std::nullopt, std::nullopt, 2);
  world.Beat();
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.Await(
      [&] { return world.Happened("server_silent"); });  // both are, and neither is given up
  EXPECT_EQ(world.fleet().map().servers.size(), 2U);
  const std::jthread beats([&world](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      world.Beat(ServerId(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  // One is back: the other is not needed any more. The new one reports itself with the first.
  world.Await([&] { return !world.fleet().map().servers.contains(ServerId(0)); });
  world.Await([&] { return world.Stopped(ServerId(0)); });
  EXPECT_FALSE(world.Stopped(ServerId(1)));
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

TEST_F(ParameterFleetTest, TheLastCopyIsGivenUpInTheEnd) {
  World world(plan_, *network_, 1, std::nullopt, std::nullopt, 0.2, 0.8);
  world.Await([&] { return world.Failure().code() == Code::kUnavailable; });
  EXPECT_NE(world.Failure().ToString().find("only copy of 16 of 16"), std::string::npos)
      << world.Failure().ToString();
  EXPECT_TRUE(world.Happened("server_silent"));
  EXPECT_TRUE(world.fleet().lost_partitions());
}

TEST_F(ParameterFleetTest, AServerThatIsNotWantedAnyMoreDoesNotStart) {
  World world(plan_, *network_, 2, {});
  world.LeaveUnplaced(ServerId(2));
  world.fleet().SetServers(4);
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.Await([&] { return world.Requested(ServerId(3)); });
  world.fleet().SetServers(3);
  world.Await([&] { return world.Stopped(ServerId(2)); });
  world.Await([&] { return world.fleet().map().servers.contains(ServerId(3)); });
  world.fleet().SetServers(2);
  world.Await([&] { return world.Stopped(ServerId(3)); });
  EXPECT_EQ(world.fleet().map().servers.size(), 2U);
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

TEST_F(ParameterFleetTest, AServerWithoutRoomDoesNotHoldUpTheRepairOfTheOthers) {
  World world(plan_, *network_, 2, {});
  world.LeaveUnplaced(ServerId(2));
  world.fleet().SetServers(3);
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  world.fleet().OnLost(ServerId(1), "killed");
  world.Kill(ServerId(1));
  world.Await([&] {
    const PartitionMap map = world.fleet().map();
    return map.servers.size() == 2 && map.servers.contains(ServerId(3));
  });
  const PartitionMap map = world.fleet().map();
  EXPECT_EQ(std::count(map.backup.begin(), map.backup.end(), kNoServer), 0);
  ASSERT_TRUE(world.Push(*worker, 1).ok());
}

TEST_F(ParameterFleetTest, AServerThatDoesNotAnswerForAMomentIsAskedAgain) {
  World world(plan_, *network_, 1, {});
  const std::string bits = world.Bits();
  const MapVersion version = world.fleet().map().version;
  world.Kill(world.fleet().map().primary[0]);  // the fleet is not told
  std::jthread again([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    world.Open(world.fleet().map().primary[0]);
  });
  EXPECT_EQ(world.Bits(), bits);
  EXPECT_EQ(world.fleet().map().version, version);
}

TEST_F(ParameterFleetTest, ADiskThatTakesNothingDoesNotEndTheJob) {
  World world(plan_, *network_, 2, Directory());
  const auto worker = world.Worker();
  ASSERT_TRUE(world.Push(*worker, 0).ok());
  fs::remove_all(path_);
  world.fleet().RequestCheckpoint();
  world.Await([&] { return world.Happened("checkpoint_failed"); });
  ASSERT_TRUE(world.Push(*worker, 1).ok());
  fs::create_directories(path_);
  world.fleet().RequestCheckpoint();
  world.Await([&] { return world.Happened("checkpoint_written"); });
  ASSERT_TRUE(world.Push(*worker, 2).ok());
}

}  // namespace
}  // namespace sluice::elastic
