// A fleet's parameter servers: lost, replaced, and as many as the workers need.
#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <thread>

#include "elastic/job/fleet_job.h"
#include "elastic/rpc/grpc_links.h"
#include "tests/elastic/job/fleet_run.h"

namespace sluice::elastic {
namespace {

// Kills a server at the end of an epoch, `most` of them in all, but only when the previous one's
// parameters have second copies again: otherwise it might hold the only ones.
class ServerKiller {
 public:
  explicit ServerKiller(int most) : most_(most) {}

  void operator()(ThreadFleet& fleet, const std::string& kind, const std::string&) {
    whole_ += kind == "partitions_moved" ? 1 : 0;
    if (kind == "epoch_done" && killed_ < most_ && whole_ == killed_) {
      (void)fleet.Stop("job1-ps-" + std::to_string(killed_++), 0);
    }
  }

 private:
  const int most_;
  int killed_ = 0;
  int whole_ = 0;
};

// G3: a lost server's backup continues with its copy, and another one is filled in its place.
TEST(TrainOnFleet, P15_LostParameterServersAreReplacedBitByBit) {
  const auto source = SmallSource(3'000);
  plan::TrainPlan plan = FleetPlan(2, 2, 6);
  plan.mutable_strategy()->set_replicas(1);
  plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
  plan.mutable_strategy()->set_micro_batches(4);
  const FleetRun undisturbed = TrainWith(plan, *source, 500);
  const FleetRun disturbed = TrainWith(plan, *source, 500, nullptr, ServerKiller(4));
  ASSERT_TRUE(undisturbed.outcome.ok()) << undisturbed.outcome.status().ToString();
  ASSERT_TRUE(disturbed.outcome.ok()) << disturbed.outcome.status().ToString();
  EXPECT_GE(disturbed.Count("server_lost"), 1);
  EXPECT_EQ(Bits(disturbed), Bits(undisturbed));
}

// Tiny batches: most of the workers' time is the exchange.
TEST(TrainOnFleet, ServersFollowTheWorkersWhereTheExchangeTakesMostOfTheTime) {
  const auto source = SmallSource(3'000);
  plan::TrainPlan plan = FleetPlan(2, 1, 1'000'000);
  plan.mutable_strategy()->set_max_parameter_servers(2);
  plan.mutable_strategy()->set_replicas(1);
  std::stop_source finish;
  int moved = 0, reports = 0;
  std::string scaled;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    scaled += kind == "servers_scaled" ? detail : "";
    moved += kind == "partitions_moved" ? 1 : 0;
    if (moved > 0) {
      finish.request_stop();
    }
  };
  const auto progress = [&](const Progress&) {
    if (++reports > 100'000) {
      finish.request_stop();
    }
  };
  ThreadFleet fleet(*source);
  const Result<TrainOutcome> outcome = TrainOnFleet({.plan = plan,
                                                     .source = *source,
                                                     .dataset = source->Spec(500),
                                                     .progress = progress,
                                                     .events = events,
                                                     .finish = finish.get_token()},
                                                    fleet, "job1");
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(scaled.substr(0, 34), "2 instead of 1: the exchange takes") << scaled;
  EXPECT_GE(moved, 1);
}

TEST(TrainOnFleet, AsynchronousTrainingOutlivesItsServers) {
  const auto source = SmallSource(20'000);
  plan::TrainPlan plan = FleetPlan(2, 3, 4);
  plan.mutable_strategy()->set_replicas(1);
  const FleetRun run = TrainWith(plan, *source, 500, nullptr, ServerKiller(3));
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_GE(run.Count("server_lost"), 1);
  EXPECT_EQ(run.outcome->rows_trained, 4 * run.outcome->rows_per_epoch);
  EXPECT_EQ(run.outcome->rows_per_epoch + run.outcome->validation_rows, 20'000);
  EXPECT_GT(MetricOf(*run.outcome, "auc"), 0.87);
}

// After a job was resumed, a server of its earlier run may still live, where its end cannot be
// seen.
TEST(TrainOnFleet, AServerOfAnEarlierRunIsSentAway) {
  const auto source = SmallSource(3'000);
  ThreadFleet fleet(*source);
  fleet.Hold("job1-ps-0");
  JobEndpoint endpoint("job1");
  endpoint.address = "unix-abstract:sluice-test-" + MakeJobToken().value();
  endpoint.key.token = MakeJobToken().value();
  Result<bool> wanted = Unavailable("not asked");
  std::stop_source stop_job;
  const std::jthread earlier([&](const std::stop_token& stop) {
    const auto master = RemoteMaster::Connect(endpoint.address, endpoint.key, kNoIncarnation, stop);
    while (!wanted.ok() && !stop.stop_requested()) {
      wanted = master->Register("job0-ps-0", ServerId(0), "127.0.0.1:1", "");
    }
    if (wanted.ok() && *wanted) {
      stop_job.request_stop();  // no worker would ever reach it
    }
    fleet.LetGo();
  });
  const plan::TrainPlan plan = FleetPlan(1, 1, 1);
  const Result<TrainOutcome> outcome = TrainOnFleet(
      {.plan = plan, .source = *source, .dataset = source->Spec(500), .stop = stop_job.get_token()},
      fleet, endpoint);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  EXPECT_FALSE(*wanted);
}

TEST(TrainOnFleet, AServerWithoutReplicasThatIsToldToEndGivesWhatItHasToTheOther) {
  const auto source = SmallSource(20'000);
  const FleetRun run =
      TrainWith(FleetPlan(2, 2, 8), *source, 500, nullptr,
                [](ThreadFleet& fleet, const std::string& kind, const std::string&) {
                  if (kind == "epoch_done") {
                    (void)fleet.Stop("job1-ps-1", 0);
                  }
                });
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.Count("server_leaves"), 1);
  EXPECT_EQ(run.Count("server_lost"), 0);
  EXPECT_EQ(run.outcome->rows_trained, 8 * run.outcome->rows_per_epoch);
}

}  // namespace
}  // namespace sluice::elastic
