#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/profile.h"
#include "catalog/dataset.pb.h"
#include "catalog/model_record.h"
#include "elastic/job/local_job.h"
#include "models/kernels/kernels.h"
#include "tests/elastic/job/fleet_run.h"

namespace sluice::elastic {
namespace {

TEST(TrainOnFleet, TwoWorkersTwoServersTrainEveryRow) {
  const auto source = SmallSource(10'000);
  const FleetRun run = TrainWith(FleetPlan(2, 2, 2), *source, 700);
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.outcome->rows_per_epoch + run.outcome->validation_rows, 10'000);
  EXPECT_EQ(run.outcome->rows_trained, 2 * run.outcome->rows_per_epoch);
  EXPECT_GT(MetricOf(*run.outcome, "auc"), 0.87);
  EXPECT_EQ(run.launched.size(), 4U);
}

TEST(TrainOnFleet, TellsWhatItsWorkersSpentTheirTimeOn) {
  const auto source = SmallSource(10'000);
  const FleetRun run = TrainWith(FleetPlan(2, 2, 2), *source, 700);
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  for (const Phase phase : {Phase::kStart, Phase::kDatabase, Phase::kDecoding, Phase::kTransforming,
                            Phase::kBatches, Phase::kLearning, Phase::kExchange}) {
    EXPECT_GT(run.profile.Seconds(phase), 0) << PhaseName(phase);
  }
  EXPECT_EQ(run.profile.Seconds(Phase::kOptimizer), 0);  // the servers'
}

// Each worker keeps the shards that it has read.
TEST(TrainOnFleet, RowsOnTheDiskChangeNoBits) {
  for (const auto kind : {plan::Strategy::PARAMETER_SERVER, plan::Strategy::ALL_REDUCE}) {
    plan::TrainPlan plan = FleetPlan(2, kind == plan::Strategy::ALL_REDUCE ? 0 : 1, 4);
    plan.mutable_strategy()->set_kind(kind);
    plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
    plan.mutable_strategy()->set_micro_batches(4);
    const auto source = SmallSource(6'000);
    const FleetRun memory = TrainWith(plan, *source, 700);
    plan.mutable_strategy()->set_memory_bytes(1);
    plan.set_disk_cache(plan::TrainPlan::NO_CACHE);
    const int64_t before = source->rows_read();
    const FleetRun database = TrainWith(plan, *source, 700);
    const int64_t between = source->rows_read();
    plan.set_disk_cache(plan::TrainPlan::CACHE);
    const FleetRun disk = TrainWith(plan, *source, 700);
    for (const FleetRun* run : {&memory, &database, &disk}) {
      ASSERT_TRUE(run->outcome.ok()) << run->outcome.status().ToString();
      EXPECT_EQ(Bits(*run), Bits(memory));
      EXPECT_EQ(run->Count(kRowsReadAgain), 0);
    }
    EXPECT_GE(between - before, 4 * 6'000);
    EXPECT_LE(source->rows_read() - between, 2 * 6'000) << "each worker reads a shard once";
    EXPECT_GT(disk.profile.Seconds(Phase::kCache), 0);
    EXPECT_EQ(database.profile.Seconds(Phase::kCache), 0);
  }
}

// With one worker, each push precedes the next pull as in a single process, however many servers
// hold the parameters.
TEST(TrainOnFleet, E11_OneWorkerHasTheBitsOfARunInProcess) {
  const auto source = SmallSource(5'000);
  const plan::TrainPlan plan = FleetPlan(1, 1, 2);
  const Result<TrainOutcome> local =
      TrainInProcess({.plan = plan, .source = *source, .dataset = source->Spec(700)});
  ASSERT_TRUE(local.ok()) << local.status().ToString();
  const FleetRun one = TrainWith(plan, *source, 700);
  const FleetRun three = TrainWith(FleetPlan(1, 3, 2), *source, 700);
  ASSERT_TRUE(one.outcome.ok()) << one.outcome.status().ToString();
  ASSERT_TRUE(three.outcome.ok()) << three.outcome.status().ToString();
  EXPECT_EQ(Bits(one), models::SaveWeights(local->weights));
  EXPECT_EQ(Bits(three), models::SaveWeights(local->weights));
}

// G4: the model depends on data, statement and seed, not on which process computes: the digest is
// the same in every build type, under every sanitizer, and on every processor with fused
// multiply-add.
TEST(TrainOnFleet, G4_SynchronousModelDependsNeitherOnTheFleetNorOnTheBuild) {
  const auto source = SmallSource(6'000);
  const auto plan_for = [](uint32_t workers, uint32_t servers) {
    plan::TrainPlan plan = FleetPlan(workers, servers, 2);
    plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
    plan.mutable_strategy()->set_micro_batches(4);
    return plan;
  };
  const Result<TrainOutcome> local =
      TrainInProcess({.plan = plan_for(1, 1), .source = *source, .dataset = source->Spec(500)});
  ASSERT_TRUE(local.ok()) << local.status().ToString();
  EXPECT_EQ(local->rows_trained, 2 * local->rows_per_epoch);
  if (std::string_view(models::ActiveKernels().name) != "SSE2") {
    EXPECT_EQ(catalog::Sha256Hex(models::SaveWeights(local->weights)),
              "ff4642af764a18ad0789f7213528b2a0f035bd374258a2164f6e7b41d46b0176");
  }
  for (const auto& [workers, servers] : {std::pair{1U, 1U}, {2U, 1U}, {3U, 2U}, {8U, 2U}}) {
    const FleetRun run = TrainWith(plan_for(workers, servers), *source, 500);
    ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
    EXPECT_EQ(Bits(run), models::SaveWeights(local->weights))
        << workers << " workers, " << servers << " servers";
    EXPECT_EQ(run.outcome->rows_trained, local->rows_trained);
  }
}

TEST(TrainOnFleet, SynchronousModelSurvivesALostWorkerBitByBit) {
  const auto source = SmallSource(6'000);
  plan::TrainPlan plan = FleetPlan(2, 2, 3);
  plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
  plan.mutable_strategy()->set_micro_batches(4);
  const FleetRun undisturbed = TrainWith(plan, *source, 500);
  const FleetRun disturbed =
      TrainWith(plan, *source, 500, nullptr,
                [](ThreadFleet& fleet, const std::string& kind, const std::string&) {
                  for (const std::string& name : fleet.launched()) {
                    if (kind == "epoch_done" && name.starts_with("job1-worker-")) {
                      (void)fleet.Stop(name, 0);
                      break;
                    }
                  }
                });
  ASSERT_TRUE(undisturbed.outcome.ok()) << undisturbed.outcome.status().ToString();
  ASSERT_TRUE(disturbed.outcome.ok()) << disturbed.outcome.status().ToString();
  EXPECT_GE(disturbed.Count("worker_lost"), 1);
  EXPECT_EQ(Bits(disturbed), Bits(undisturbed));
}

// What the node says ends the job at once, and the user reads it.
TEST(TrainOnFleet, AProcessWhoseImageIsMissingFailsTheJob) {
  const auto source = SmallSource(2'000);
  const plan::TrainPlan plan = FleetPlan(1, 1, 1);
  for (const Role role : {Role::kParameterServer, Role::kWorker}) {
    ThreadFleet fleet(*source);
    fleet.RefuseImage(role);
    const Result<TrainOutcome> outcome = TrainOnFleet(
        {.plan = plan, .source = *source, .dataset = source->Spec(500)}, fleet, "job1");
    EXPECT_EQ(outcome.status().code(), Code::kFailedPrecondition);
    EXPECT_NE(outcome.status().ToString().find(
                  "cannot be started: exit code 126: ErrImageNeverPull: sluice is not present"),
              std::string::npos)
        << outcome.status().ToString();
    const auto launched = fleet.launched();
    EXPECT_EQ(std::count_if(launched.begin(), launched.end(),
                            [&](const std::string& name) {
                              return name.starts_with("job1-" + std::string(RoleName(role)));
                            }),
              1);
  }
}

TEST(TrainOnFleet, LostWorkersAreReplacedAndNothingIsLost) {
  const auto source = SmallSource(20'000);
  const FleetRun run =
      TrainWith(FleetPlan(2, 1, 4), *source, 1'000, nullptr,
                [](ThreadFleet& fleet, const std::string& kind, const std::string& who) {
                  if (kind == "worker_started" && fleet.launched().size() < 8) {
                    (void)fleet.Stop(who, 0);
                  }
                });
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_GE(run.Count("worker_lost"), 4);
  EXPECT_EQ(run.outcome->rows_trained, 4 * run.outcome->rows_per_epoch);
  EXPECT_EQ(run.outcome->rows_per_epoch + run.outcome->validation_rows, 20'000);
}

TEST(TrainOnFleet, ContinuesFromABase) {
  const auto source = SmallSource(4'000);
  const FleetRun first = TrainWith(FleetPlan(1, 2, 1), *source, 500);
  ASSERT_TRUE(first.outcome.ok());
  plan::TrainPlan still = FleetPlan(1, 2, 1);
  still.mutable_model()->mutable_deep_optimizer()->mutable_arguments(0)->set_number(1e-12);
  const FleetRun second = TrainWith(still, *source, 500, &first.outcome->weights);
  ASSERT_TRUE(second.outcome.ok()) << second.outcome.status().ToString();
  const std::vector<float>& before = first.outcome->weights.dense[0];
  const std::vector<float>& after = second.outcome->weights.dense[0];
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(before[i], after[i], 1e-5F);
  }
}

TEST(TrainOnFleet, EarlyStoppingKeepsTheBestOnEveryServer) {
  const auto source = SmallSource(4'000);
  plan::TrainPlan plan = FleetPlan(1, 2, 60);
  plan.mutable_model()->mutable_deep_optimizer()->mutable_arguments(0)->set_number(0.3);
  plan.mutable_early_stopping()->set_patience(2);
  plan.mutable_early_stopping()->set_metric("log_loss");
  const Result<TrainOutcome> local =
      TrainInProcess({.plan = plan, .source = *source, .dataset = source->Spec(500)});
  const FleetRun run = TrainWith(plan, *source, 500);
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.outcome->epochs, local->epochs);
  EXPECT_EQ(Bits(run), models::SaveWeights(local->weights));
}

TEST(TrainOnFleet, BadDataEndsTheJobWithTheWorkersText) {
  std::vector<std::vector<double>> rows = SmallRows(3'000);
  rows[1'500][3] = 17;
  testing::MemorySource source({"a", "b", "c", "y"}, rows);
  const FleetRun run = TrainWith(FleetPlan(2, 1, 1), source, 500);
  ASSERT_FALSE(run.outcome.ok());
  EXPECT_NE(run.outcome.status().message().find("'y'"), std::string::npos)
      << run.outcome.status().ToString();
  EXPECT_LE(run.launched.size(), 3U) << "a mistake in the data is not tried again";
}

TEST(TrainOnFleet, CancelEndsEverything) {
  const auto source = SmallSource(20'000);
  ThreadFleet fleet(*source);
  std::stop_source stop;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string&) {
    if (kind == "epoch_done") {
      stop.request_stop();
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet({.plan = FleetPlan(2, 1, 1'000'000),
                                                     .source = *source,
                                                     .dataset = source->Spec(1'000),
                                                     .events = events,
                                                     .stop = stop.get_token()},
                                                    fleet, "job1");
  EXPECT_EQ(outcome.status().code(), Code::kCancelled);
}

// The bound in the master's last event, and the largest lead of any worker.
std::pair<int, int> Staleness(const FleetRun& run) {
  int ahead = -1, bound = -1;
  for (const auto& [kind, detail] : run.events) {
    if (kind == "staleness") {
      EXPECT_EQ(
          std::sscanf(detail.c_str(), "a worker was at most %d batches ahead; the bound is %d",
                      &ahead, &bound),
          2);
    }
  }
  return {bound, ahead};
}

TEST(TrainOnFleet, P8_BoundedStalenessKeepsWorkersTogether) {
  const auto source = SmallSource(20'000);
  for (const int bound : {0, 3}) {
    plan::TrainPlan plan = FleetPlan(3, 2, 2);
    plan.mutable_strategy()->set_mode(plan::Strategy::BOUNDED_STALENESS);
    plan.mutable_strategy()->set_staleness(static_cast<uint32_t>(bound));
    const FleetRun run = TrainWith(plan, *source, 1'000);
    ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
    EXPECT_EQ(run.outcome->rows_trained, 2 * run.outcome->rows_per_epoch);
    EXPECT_GT(MetricOf(*run.outcome, "auc"), 0.87);
    EXPECT_EQ(Staleness(run).first, bound);
    EXPECT_LE(Staleness(run).second, bound);
  }
}

TEST(TrainOnFleet, P19_Bfloat16MessagesTrainAsWell) {
  const auto source = SmallSource(10'000);
  plan::TrainPlan plan = FleetPlan(1, 2, 2);
  const FleetRun whole = TrainWith(plan, *source, 1'000);
  plan.mutable_strategy()->set_replicas(1);
  plan.mutable_strategy()->set_transport(plan::Strategy::BFLOAT16);
  const FleetRun half = TrainWith(plan, *source, 1'000);
  ASSERT_TRUE(whole.outcome.ok()) << whole.outcome.status().ToString();
  ASSERT_TRUE(half.outcome.ok()) << half.outcome.status().ToString();
  EXPECT_NE(Bits(half), Bits(whole));
  EXPECT_NEAR(MetricOf(*half.outcome, "auc"), MetricOf(*whole.outcome, "auc"), 0.005);
  EXPECT_NEAR(half.outcome->loss, whole.outcome->loss, 0.01);
}

TEST(TrainOnFleet, P8_TheDeadAreNotWaitedFor) {
  const auto source = SmallSource(20'000);
  plan::TrainPlan plan = FleetPlan(2, 1, 4);
  plan.mutable_strategy()->set_mode(plan::Strategy::BOUNDED_STALENESS);
  plan.mutable_strategy()->set_staleness(1);
  const FleetRun run =
      TrainWith(plan, *source, 1'000, nullptr,
                [](ThreadFleet& fleet, const std::string& kind, const std::string& who) {
                  if (kind == "worker_started" && fleet.launched().size() < 6) {
                    (void)fleet.Stop(who, 0);
                  }
                });
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_GE(run.Count("worker_lost"), 2);
  EXPECT_EQ(run.outcome->rows_trained, 4 * run.outcome->rows_per_epoch);
}

}  // namespace
}  // namespace sluice::elastic
