#include "elastic/rpc/job_endpoint.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>

#include "base/mutex.h"
#include "elastic/master/master_service.h"
#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/grpc_links.h"
#include "elastic/rpc/parameter_control.h"
#include "elastic/rpc/wire_internal.h"
#include "elastic/server/parameter_service.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

class JobEndpointTest : public ::testing::Test {
 protected:
  JobEndpointTest() {
    endpoint_.key = MakeJobToken().value();
    endpoint_.address = "unix-abstract:sluice-test-" + MakeJobToken().value();
  }
  static Master::Options Options() {
    Master::Options options;
    options.queue.shards = 1;
    options.queue.epochs = 1;
    return options;
  }
  // A master of the endpoint's current term.
  struct RunningMaster {
    explicit RunningMaster(const JobEndpoint& endpoint)
        : host(
              Master(Options(), TimePoint{}), nullptr, kNoJournalTerm,
              [](const Master::Action&) { return Status(); }, progress, events),
          server(
              MasterServer::Start(endpoint, host, [this](const MasterServer::ReadyServer& ready) {
                const MutexLock lock(mutex);
                registered = fmt::format("{} {}", ready.server, ready.address);
                return true;
              }).value()) {}
    std::string Registered() {
      const MutexLock lock(mutex);
      return registered;
    }

    ProgressCallback progress;
    EventCallback events;
    MasterHost host;
    Mutex mutex;  // gRPC's own locks order the writes, too, but ThreadSanitizer does not see them
    std::string registered GUARDED_BY(mutex);
    std::unique_ptr<MasterServer> server;
  };

  JobEndpoint endpoint_{"job1"};
};

TEST_F(JobEndpointTest, TheNextMasterIsReachedWhereTheLastOneWas) {
  auto first = std::make_unique<RunningMaster>(endpoint_);
  const auto link = RemoteMaster::Connect(endpoint_.address, endpoint_.key, Incarnation(1), {});
  ASSERT_TRUE(link->Register("ps", ServerId(0), "there:1").ok());
  EXPECT_EQ(first->Registered(), "0 there:1");
  first.reset();
  endpoint_.term = Term(2);
  RunningMaster second(endpoint_);
  ASSERT_TRUE(link->Register("ps", ServerId(0), "there:1").ok());  // the same link, on its own
  EXPECT_EQ(second.Registered(), "0 there:1");
}

// Pods use TLS: without the job's certificate no process gets as far as a call.
TEST_F(JobEndpointTest, AnEncryptedMasterHearsTheJobOnly) {
  const std::string token = endpoint_.key.token;
  endpoint_.key = MakeJobKey(token).value();
  endpoint_.address = "127.0.0.1";
  RunningMaster master(endpoint_);
  const auto call = [&](const JobKey& key) {
    grpc::ClientContext context;
    Prepare(&context, token);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(3));
    MapReply reply;
    return MasterService::NewStub(OpenChannel(master.server->address(), key))
        ->Map(&context, MapRequest(), &reply)
        .error_code();
  };
  EXPECT_EQ(call(endpoint_.key), grpc::StatusCode::OK);
  EXPECT_EQ(call(token), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(call(MakeJobKey(token).value()), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(JobEndpointTest, AnotherBuildIsRefusedAndSaysSo) {
  endpoint_.key = MakeJobKey(endpoint_.key.token).value();
  RunningMaster master(endpoint_);
  grpc::ClientContext context;
  context.AddMetadata(kTokenKey, endpoint_.key.token);
  context.AddMetadata(kBuildKey, "another");
  MapReply reply;
  const grpc::Status answer = MasterService::NewStub(OpenChannel(endpoint_.address, endpoint_.key))
                                  ->Map(&context, MapRequest(), &reply);
  EXPECT_EQ(answer.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_NE(answer.error_message().find("the one that calls is another"), std::string::npos)
      << answer.error_message();
}

TEST_F(JobEndpointTest, AMasterThatWasSucceededEndsAndIsNotListenedTo) {
  endpoint_.term = Term(2);
  auto later = std::make_unique<RunningMaster>(endpoint_);
  std::stop_source stop;
  const auto link =
      RemoteMaster::Connect(endpoint_.address, endpoint_.key, Incarnation(1), stop.get_token());
  ASSERT_TRUE(link->Register("ps", ServerId(0), "there:1").ok());
  later.reset();
  endpoint_.term = Term(1);
  RunningMaster earlier(endpoint_);
  std::jthread ends([&](const std::stop_token& done) {
    while (!earlier.host.finished() && !done.stop_requested()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    stop.request_stop();
  });
  EXPECT_FALSE(link->Register("ps", ServerId(0), "there:1").ok())
      << "it is unavailable, or stopped by us";
  EXPECT_TRUE(earlier.Registered().empty());
  EXPECT_NE(earlier.host.result().message().find("succeeded by term 2"), std::string::npos)
      << earlier.host.result().ToString();
}

TEST_F(JobEndpointTest, ServersRefuseTheCallsOfAnEarlierMaster) {
  const plan::TrainPlan plan = SmallPlan(1, 64);
  const auto network = models::Network::Make(plan.model()).value();
  ParameterShard::Options options;
  options.partitions = 2;
  options.empty = true;
  const auto shard = ParameterShard::Make(plan.model(), *network, options, nullptr).value();
  const auto server =
      ParameterServer::Start({"127.0.0.1", endpoint_.key, ServerId(0), nullptr}, *shard).value();
  PartitionMap map;
  map.primary = {ServerId(0), ServerId(0)};
  map.backup = {kNoServer, kNoServer};
  map.servers = {{ServerId(0), server->address()}};
  const auto release = [&](int64_t term) {
    return ParameterControl(endpoint_.key, Term(term), {})
        .Install(server->address(), map, ParameterControl::Phase::kRelease);
  };
  EXPECT_TRUE(release(2).ok());
  EXPECT_EQ(release(1).code(), Code::kAborted);
  EXPECT_TRUE(release(3).ok());
}

}  // namespace
}  // namespace sluice::elastic
