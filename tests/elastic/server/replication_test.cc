#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/elastic/server/replication_steps.h"
#include "tests/support/eventually.h"

namespace sluice::elastic {
namespace {

TEST_F(ReplicationTest, BackupsHaveTheBitsOfTheirPrimaries) {
  Create(3);
  const auto one = Worker();
  const auto other = Worker();
  for (int64_t batch = 0; batch < 30; ++batch) {
    ASSERT_TRUE(PushBatch(*one, batch, 0).ok());
    ASSERT_TRUE(PushBatch(*other, batch, 1).ok());
  }
  ASSERT_TRUE(control_.Keep(map_, {1, {}}).ok());
  for (uint32_t p = 0; p < kPartitions; ++p) {
    ExpectSame(map_.primary[p], map_.backup[p], p);
    EXPECT_EQ(servers_[map_.primary[p]].shard->version(p), 60);
  }
}

// A push is acknowledged when losing one server cannot lose it: not before the backup has it, or
// the master has said that there is none.
TEST_F(ReplicationTest, APushIsAcknowledgedWhenTheBackupHasIt) {
  StartServer(ServerId(0));
  StartServer(ServerId(1));
  PartitionMap map = PlaceEvenly(Addresses(), kPartitions, true);
  map.primary.assign(kPartitions, ServerId(0));
  map.backup.assign(kPartitions, ServerId(1));
  Install(map, ParameterControl::Phase::kCreate);
  servers_[ServerId(1)].door.reset();
  std::atomic<bool> acknowledged = false;
  std::jthread pusher([&] {
    const auto worker = Worker();
    const Status status = PushBatch(*worker, 0);
    EXPECT_TRUE(status.ok()) << status.ToString();
    acknowledged = true;
  });
  EXPECT_TRUE(Eventually([&] { return servers_[ServerId(0)].shard->version(0) > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_FALSE(acknowledged);
  std::vector<uint32_t> orphans;
  Install(WithoutServers(map, {ServerId(1)}, &orphans), ParameterControl::Phase::kAdopt);
  pusher.join();
  EXPECT_TRUE(acknowledged);
  EXPECT_EQ(servers_[ServerId(0)].shard->version(0), 1);
}

// What the worker does meanwhile is done once, though the exchange is repeated with another server.
TEST_F(ReplicationTest, WorkBesideAnExchangeIsDoneOnce) {
  Create(2);
  const auto worker = Worker();
  ASSERT_TRUE(PushBatch(*worker, 0).ok());
  const PartitionMap old = map_;
  servers_[ServerId(0)].door.reset();
  when_asked_ = [&] {
    std::vector<uint32_t> orphans;
    Install(WithoutServers(old, {ServerId(0)}, &orphans), ParameterControl::Phase::kAdopt);
  };
  models::ParameterView view, next;
  for (models::ParameterView* each : {&view, &next}) {
    each->tables.resize(network_->tables().size());
  }
  models::Gradient gradient;
  for (const models::DenseTensor& tensor : network_->dense()) {
    gradient.dense.emplace_back(tensor.size(), 0.1F);
  }
  gradient.tables.resize(network_->tables().size());
  BatchIdentity identity;
  identity.batch = BatchIndex(1);
  const BatchPush push{identity, 1, &view, &gradient};
  BatchIdentity following;
  following.batch = BatchIndex(2);
  int meanwhile = 0;
  const Status status =
      worker->PushAndPull({&push, 1}, following, &next, [&meanwhile] { ++meanwhile; });
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(asked_, 1);
  EXPECT_EQ(meanwhile, 1);
  for (uint32_t p = 0; p < kPartitions; ++p) {
    EXPECT_EQ(servers_[ServerId(1)].shard->version(p), 2);
  }
}

// A server was given up while it slept: its followers refuse its updates, so that it cannot
// acknowledge; the worker finds the new owner, and the batch counts once.
TEST_F(ReplicationTest, AServerThatWasGivenUpAcknowledgesNothing) {
  StartServer(ServerId(0));
  StartServer(ServerId(1));
  PartitionMap old = PlaceEvenly(Addresses(), kPartitions, true);
  old.primary.assign(kPartitions, ServerId(0));
  old.backup.assign(kPartitions, ServerId(1));
  Install(old, ParameterControl::Phase::kCreate);
  const auto worker = Worker();
  ASSERT_TRUE(PushBatch(*worker, 0).ok());
  std::vector<uint32_t> orphans;
  const PartitionMap now = WithoutServers(old, {ServerId(0)}, &orphans);
  Install(now, ParameterControl::Phase::kAdopt);  // server 0 does not receive it
  Show(old);                                      // nor does the worker yet
  when_asked_ = [&] {
    EXPECT_EQ(servers_[ServerId(1)].shard->version(0), 1)
        << "taken from a server that was given up";
    Show(now);
  };
  ASSERT_TRUE(PushBatch(*worker, 1).ok());
  EXPECT_GE(asked_, 1);
  for (uint32_t p = 0; p < kPartitions; ++p) {
    EXPECT_EQ(servers_[ServerId(1)].shard->version(p), 2);
  }
}

// Without replicas no follower refuses its updates: the server itself must.
TEST_F(ReplicationTest, AServerThatSleptTooLongAcknowledgesNothing) {
  StartServer(ServerId(0));
  Install(PlaceEvenly(Addresses(), kPartitions, false), ParameterControl::Phase::kCreate);
  const auto worker = Worker();
  ASSERT_TRUE(PushBatch(*worker, 0).ok());
  ParameterServer& server = *servers_[ServerId(0)].door;
  const auto now = std::chrono::steady_clock::now();
  const auto silence = std::chrono::seconds(static_cast<int>(kServerSilenceSeconds));
  server.AnsweredByMaster(now - silence - std::chrono::seconds(1));
  when_asked_ = [&] {
    EXPECT_EQ(servers_[ServerId(0)].shard->version(0), 1)
        << "taken from a server that was given up";
    server.AnsweredByMaster(std::chrono::steady_clock::now());
  };
  ASSERT_TRUE(PushBatch(*worker, 1).ok());
  EXPECT_GE(asked_, 1);
  EXPECT_EQ(servers_[ServerId(0)].shard->version(0), 2);
  // It is suspended between receiving a push and acknowledging it.
  when_asked_ = [&] { server.AnsweredByMaster(std::chrono::steady_clock::now()); };
  asked_ = 0;
  ASSERT_TRUE(PushBatch(*worker, 2, 0, [&] { server.AnsweredByMaster(now - 2 * silence); }).ok());
  EXPECT_GE(asked_, 1);
  EXPECT_EQ(servers_[ServerId(0)].shard->version(0), 3) << "once";
}

TEST_F(ReplicationTest, AnOrderThatWaitsForADeadBackupEndsForANewerMap) {
  StartServer(ServerId(0));
  StartServer(ServerId(1));
  PartitionMap map = PlaceEvenly(Addresses(), kPartitions, true);
  map.primary.assign(kPartitions, ServerId(0));
  map.backup.assign(kPartitions, ServerId(1));
  Install(map, ParameterControl::Phase::kCreate);
  servers_[ServerId(1)].door.reset();
  const ParameterShard& shard = *servers_[ServerId(0)].shard;
  Status pushed, frozen;
  {
    const std::jthread push([&] { pushed = PushBatch(*Worker(), 0); });
    EXPECT_TRUE(Eventually([&] { return shard.version(0) > 0; }));
    PartitionMap again = map;  // for a checkpoint, before the loss is known
    ++again.version;
    const std::jthread freeze([&] {
      frozen = control_.Install(servers_[ServerId(0)].door->address(), again,
                                ParameterControl::Phase::kFreeze);
    });
    EXPECT_TRUE(
        Eventually([&] { return !shard.AppliedBatches(map.version, Epoch(1), ShardId(0)).ok(); }));
    std::vector<uint32_t> orphans;
    Install(WithoutServers(again, {ServerId(1)}, &orphans), ParameterControl::Phase::kAdopt);
  }
  EXPECT_EQ(frozen.code(), Code::kAborted) << frozen.ToString();
  EXPECT_TRUE(pushed.ok()) << pushed.ToString();
  EXPECT_EQ(shard.version(0), 1);
}

TEST_F(ReplicationTest, P7_ABatchThatReachedSomeServersIsCompletedOnce) {
  Create(3);
  const auto worker = Worker();
  ASSERT_TRUE(PushBatch(*worker, 0).ok());
  // Server 1 is lost; others get the batch, and the master is slow.
  when_asked_ = [&] {
    when_asked_ = [&] {
      std::vector<uint32_t> orphans;
      Install(WithoutServers(map_, {ServerId(1)}, &orphans), ParameterControl::Phase::kAdopt);
      EXPECT_TRUE(orphans.empty());
    };
  };
  ASSERT_TRUE(PushBatch(*worker, 1, 0, [&] { servers_[ServerId(1)].door.reset(); }).ok());
  EXPECT_EQ(map_.version, MapVersion(2));
  for (uint32_t p = 0; p < kPartitions; ++p) {
    EXPECT_NE(map_.primary[p], ServerId(1));
    EXPECT_EQ(servers_[map_.primary[p]].shard->version(p), 2);
  }
}

TEST_F(ReplicationTest, P20_AServerIsFilledWhileOthersPush) {
  Create(2);
  std::atomic<bool> done = false;
  std::atomic<int64_t> pushed = 0;
  std::jthread pusher([&] {
    const auto worker = Worker();
    for (int64_t batch = 0; !done; ++batch) {
      const Status status = PushBatch(*worker, batch);
      ASSERT_TRUE(status.ok()) << status.ToString();
      ++pushed;
    }
  });
  EXPECT_TRUE(Eventually([&] { return pushed >= 5; }));
  StartServer(ServerId(2));
  PartitionMap next = Rebalanced(map_, Addresses(), true);
  const std::vector<PartitionCopy> copies = CopiesFor(map_, next);
  EXPECT_FALSE(copies.empty());
  for (const PartitionCopy& copy : copies) {
    const Status status = control_.Fill(map_.servers.at(copy.from), copy.partition, copy.to,
                                        next.servers.at(copy.to));
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  const int64_t before = pushed;
  EXPECT_TRUE(Eventually([&] { return pushed >= before + 5; }));
  Install(next, ParameterControl::Phase::kAdopt);
  const int64_t then = pushed;
  EXPECT_TRUE(Eventually([&] { return pushed >= then + 5; }));
  done = true;
  pusher.join();
  for (uint32_t p = 0; p < kPartitions; ++p) {
    EXPECT_EQ(servers_[next.primary[p]].shard->version(p), pushed);
    ExpectSame(next.primary[p], next.backup[p], p);
  }
}

// The master that had a server filled dies before the map is in use; the next one returns to the
// old map, and has the server filled again.
TEST_F(ReplicationTest, P20_AServerThatWasFilledForAMapThatDidNotComeIsFilledAgain) {
  Create(2);
  const auto worker = Worker();
  int64_t batch = 0;
  const auto push = [&](int64_t batches) {
    for (const int64_t until = batch + batches; batch < until; ++batch) {
      ASSERT_TRUE(PushBatch(*worker, batch).ok());
    }
  };
  push(3);
  StartServer(ServerId(2));
  PartitionMap next = Rebalanced(map_, Addresses(), true);
  const std::vector<PartitionCopy> copies = CopiesFor(map_, next);
  ASSERT_GT(copies.size(), 1U);
  const auto fill = [&](const PartitionCopy& copy) {
    const Status status = control_.Fill(map_.servers.at(copy.from), copy.partition, copy.to,
                                        next.servers.at(copy.to));
    ASSERT_TRUE(status.ok()) << status.ToString();
  };
  std::for_each(copies.begin(), copies.end(), fill);
  PartitionMap again = map_;
  ++again.version;
  Install(again, ParameterControl::Phase::kAdopt);
  push(3);  // the new server is not told of these
  next.version = again.version.Next();
  for (const PartitionCopy& copy : copies) {
    fill(copy);
    push(1);
  }
  Install(next, ParameterControl::Phase::kAdopt);
  push(2);
  for (const auto& [id, server] : servers_) {
    EXPECT_TRUE(server.door->health().ok()) << server.door->health().ToString();
  }
  for (uint32_t p = 0; p < kPartitions; ++p) {
    EXPECT_EQ(servers_[next.primary[p]].shard->version(p), batch);
    ExpectSame(next.primary[p], next.backup[p], p);
  }
}

}  // namespace
}  // namespace sluice::elastic
