#include "elastic/seat.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "elastic/grpc_links.h"
#include "elastic/master_service.h"
#include "elastic/parameter_service.h"
#include "tests/elastic/small_job.h"

namespace sluice::elastic {
namespace {

class MasterSeats : public ::testing::Test {
 protected:
  MasterSeats() {
    seat_.token = MakeJobToken().value();
    seat_.address = "unix-abstract:sluice-test-" + MakeJobToken().value();
  }
  static Master::Options Options() {
    Master::Options options;
    options.queue.shards = 1;
    options.queue.epochs = 1;
    return options;
  }
  // A master of the seat's present term.
  struct Sitting {
    explicit Sitting(const MasterSeat& seat)
        : host(
              Options(), [](const Master::Action&) { return Status(); }, progress, events),
          server(MasterServer::Start(seat, 1, host).value()) {}
    ProgressCallback progress;
    EventCallback events;
    MasterHost host;
    std::unique_ptr<MasterServer> server;
  };

  MasterSeat seat_{"job1"};
};

TEST_F(MasterSeats, TheNextMasterIsReachedWhereTheLastOneWas) {
  auto first = std::make_unique<Sitting>(seat_);
  const auto link = RemoteMaster::Connect(seat_.address, seat_.token, 1, {});
  ASSERT_TRUE(link->Register("ps", 0, "there:1").ok());
  EXPECT_EQ(first->server->ParameterServers(), std::vector<std::string>{"there:1"});
  first.reset();
  seat_.term = 2;
  const Sitting second(seat_);
  ASSERT_TRUE(link->Register("ps", 0, "there:1").ok());  // the same link, by itself
  EXPECT_EQ(second.server->ParameterServers(), std::vector<std::string>{"there:1"});
}

TEST_F(MasterSeats, AMasterThatWasSucceededEndsAndIsNotListenedTo) {
  seat_.term = 2;
  auto later = std::make_unique<Sitting>(seat_);
  std::stop_source stop;
  const auto link = RemoteMaster::Connect(seat_.address, seat_.token, 1, stop.get_token());
  ASSERT_TRUE(link->Register("ps", 0, "there:1").ok());
  later.reset();
  seat_.term = 1;
  Sitting earlier(seat_);
  std::jthread ends([&](const std::stop_token& done) {
    while (!earlier.host.finished() && !done.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stop.request_stop();
  });
  EXPECT_EQ(link->Register("ps", 0, "there:1").code(), Code::kUnavailable);
  EXPECT_TRUE(earlier.server->ParameterServers().empty());
  EXPECT_NE(earlier.host.result().message().find("succeeded by term 2"), std::string::npos)
      << earlier.host.result().ToString();
}

TEST_F(MasterSeats, ServersRefuseTheCallsOfAnEarlierMaster) {
  const plan::TrainPlan plan = SmallPlan(1, 64);
  const auto network = models::Network::Make(plan.model()).value();
  ParameterShard::Options options;
  const auto shard = ParameterShard::Make(plan.model(), *network, options, nullptr).value();
  const auto server =
      ParameterServer::Start("127.0.0.1", seat_.token, *network, options.placement, *shard).value();
  seat_.term = 2;
  ASSERT_TRUE(KeepWeights({server->address()}, seat_).ok());
  seat_.term = 1;
  EXPECT_EQ(KeepWeights({server->address()}, seat_).code(), Code::kAborted);
  EXPECT_EQ(CollectWeights({server->address()}, seat_, *network).status().code(), Code::kAborted);
  seat_.term = 3;
  EXPECT_TRUE(CollectWeights({server->address()}, seat_, *network).ok());
}

}  // namespace
}  // namespace sluice::elastic
