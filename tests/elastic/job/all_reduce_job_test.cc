#include <gtest/gtest.h>

#include "base/profile.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/local_job.h"
#include "tests/elastic/job/small_job.h"
#include "tests/elastic/job/thread_fleet.h"

namespace sluice::elastic {
namespace {

// Jobs whose workers are threads connected by sockets and gRPC.
class AllReduceJob : public ::testing::Test {
 protected:
  using Disturb =
      std::function<void(ThreadFleet&, const std::string& kind, const std::string& detail)>;

  static plan::TrainPlan Plan(uint32_t workers, uint32_t epochs, uint32_t lanes = 4) {
    plan::TrainPlan plan = SmallPlan(epochs, 64);
    plan::Strategy& strategy = *plan.mutable_strategy();
    strategy.set_kind(plan::Strategy::ALL_REDUCE);
    strategy.set_mode(plan::Strategy::SYNCHRONOUS);
    strategy.set_micro_batches(lanes);
    strategy.set_workers(workers);
    strategy.set_max_workers(workers);
    return plan;
  }
  Result<TrainOutcome> Train(const plan::TrainPlan& plan, const Disturb& disturb = {},
                             const models::NetworkWeights* base = nullptr) {
    ThreadFleet fleet(*source_);
    EventCallback events;
    events_.clear();
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      if (disturb) {
        disturb(fleet, kind, detail);
      }
    };
    return TrainOnFleet({.plan = plan,
                         .source = *source_,
                         .dataset = source_->Spec(500),
                         .base = base,
                         .events = events,
                         .profile = &profile_},
                        fleet, "job1");
  }
  Result<TrainOutcome> InProcess(plan::TrainPlan plan,
                                 const models::NetworkWeights* base = nullptr) {
    plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
    return TrainInProcess(
        {.plan = plan, .source = *source_, .dataset = source_->Spec(500), .base = base});
  }
  int Count(const std::string& kind) const {
    int count = 0;
    for (const std::string& event : events_) {
      count += event.starts_with(kind + " ") ? 1 : 0;
    }
    return count;
  }
  std::string Events() const {
    std::string text;
    for (const std::string& event : events_) {
      text += event + "\n";
    }
    return text;
  }
  static std::string Bits(const Result<TrainOutcome>& outcome) {
    return models::SaveWeights(outcome.value().weights);
  }

  std::unique_ptr<testing::MemorySource> source_ = SmallSource(6'000);
  std::vector<std::string> events_;
  ProfileSum profile_;
};

TEST_F(AllReduceJob, TellsWhatItsWorkersSpentTheirTimeOn) {
  const Result<TrainOutcome> outcome = Train(Plan(2, 2));
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  for (const Phase phase :
       {Phase::kDatabase, Phase::kBatches, Phase::kLearning, Phase::kExchange, Phase::kOptimizer}) {
    EXPECT_GT(profile_.Get().Seconds(phase), 0) << PhaseName(phase);
  }
}

TEST_F(AllReduceJob, HasTheBitsOfAParameterServer) {
  const Result<TrainOutcome> local = InProcess(Plan(1, 2));
  ASSERT_TRUE(local.ok()) << local.status().ToString();
  for (uint32_t workers : {1U, 2U, 3U, 8U}) {
    const Result<TrainOutcome> outcome = Train(Plan(workers, 2));
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(Bits(outcome), Bits(local)) << workers << " workers";
    EXPECT_EQ(outcome->rows_trained, local->rows_trained);
    EXPECT_EQ(outcome->validation_rows, local->validation_rows);
    EXPECT_EQ(outcome->metrics, local->metrics);
    EXPECT_NEAR(outcome->loss, local->loss, 1e-9);
  }
}

TEST_F(AllReduceJob, R5_WorkersWithoutLanesHoldNobodyUp) {
  // Twelve shards in rounds of eight leave four lanes for five workers.
  const Result<TrainOutcome> local = InProcess(Plan(1, 2, 8));
  const Result<TrainOutcome> outcome = Train(Plan(5, 2, 8));
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(Bits(outcome), Bits(local));
}

TEST_F(AllReduceJob, StopsAfterSoManySteps) {
  plan::TrainPlan plan = Plan(3, 1);
  plan.set_epochs(0);
  plan.set_max_steps(30);
  const Result<TrainOutcome> local = InProcess(plan);
  ASSERT_TRUE(local.ok()) << local.status().ToString();
  const Result<TrainOutcome> outcome = Train(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(Bits(outcome), Bits(local));
  EXPECT_EQ(outcome->rows_trained, local->rows_trained);
}

TEST_F(AllReduceJob, EarlyStoppingGoesBackToTheBestWeights) {
  plan::TrainPlan plan = Plan(2, 40);
  plan.mutable_early_stopping()->set_patience(2);
  const Result<TrainOutcome> local = InProcess(plan);
  ASSERT_TRUE(local.ok()) << local.status().ToString();
  const Result<TrainOutcome> outcome =
      Train(plan, [](ThreadFleet& fleet, const std::string& kind, const std::string&) {
        if (kind == "epoch_done") {
          (void)fleet.Stop(fleet.launched().back(), 0);  // newcomers receive the best weights, too
        }
      });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->epochs, local->epochs);
  EXPECT_EQ(Bits(outcome), Bits(local));
}

TEST_F(AllReduceJob, ContinuesFromABase) {
  const Result<TrainOutcome> base = InProcess(Plan(1, 1));
  ASSERT_TRUE(base.ok());
  const Result<TrainOutcome> local = InProcess(Plan(1, 1), &base->weights);
  const Result<TrainOutcome> outcome = Train(Plan(2, 1), {}, &base->weights);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(Bits(outcome), Bits(local));
}

TEST_F(AllReduceJob, R2_R5_TheOldestLeavesAndNothingIsLost) {
  const Result<TrainOutcome> local = InProcess(Plan(1, 3));
  int stopped = 0;
  const Result<TrainOutcome> outcome =
      Train(Plan(3, 3), [&](ThreadFleet& fleet, const std::string& kind, const std::string&) {
        if (kind == "epoch_done" && stopped < 2) {
          (void)fleet.Stop(fleet.launched()[static_cast<size_t>(stopped++)], 0);
        }
      });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(Bits(outcome), Bits(local)) << Events();
  EXPECT_EQ(outcome->rows_trained, local->rows_trained);
  EXPECT_GE(Count("worker_lost"), 2);
  EXPECT_EQ(Count("training_begins_again"), 0) << Events();
}

TEST_F(AllReduceJob, R3_WhenAllVanishTheTrainingBeginsAgain) {
  const Result<TrainOutcome> local = InProcess(Plan(1, 2));
  bool stopped = false;
  const Result<TrainOutcome> outcome =
      Train(Plan(2, 2), [&](ThreadFleet& fleet, const std::string& kind, const std::string&) {
        if (kind == "epoch_done" && !std::exchange(stopped, true)) {
          for (const std::string& name : fleet.launched()) {
            (void)fleet.Stop(name, 0);
          }
        }
      });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString() << "\n" << Events();
  EXPECT_EQ(Bits(outcome), Bits(local)) << Events();
  EXPECT_EQ(Count("training_begins_again"), 1) << Events();
  EXPECT_EQ(outcome->rows_trained, local->rows_trained);
}

TEST_F(AllReduceJob, ADivergingTrainingEndsWithItsReason) {
  plan::TrainPlan plan = Plan(2, 50);
  for (models::OptimizerSpec* optimizer : {plan.mutable_model()->mutable_deep_optimizer(),
                                           plan.mutable_model()->mutable_wide_optimizer()}) {
    optimizer->set_name("SGD");
    optimizer->mutable_arguments(0)->set_number(1000);
  }
  const Result<TrainOutcome> outcome = Train(plan);
  EXPECT_EQ(outcome.status().sqlstate(), "22003") << outcome.status().ToString();
}

TEST_F(AllReduceJob, CancelEndsIt) {
  ThreadFleet fleet(*source_);
  std::stop_source stop;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string&) {
    if (kind == "epoch_done") {
      stop.request_stop();
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet({.plan = Plan(2, 1'000'000),
                                                     .source = *source_,
                                                     .dataset = source_->Spec(500),
                                                     .events = events,
                                                     .stop = stop.get_token()},
                                                    fleet, "job1");
  EXPECT_EQ(outcome.status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace sluice::elastic
