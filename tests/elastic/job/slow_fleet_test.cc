#include <gtest/gtest.h>

#include "tests/elastic/job/fleet_run.h"

// A slow call of the fleet holds up only what waits for it.
namespace sluice::elastic {
namespace {

TEST(SlowFleet, OneWorkerTrainsWhileTheOtherIsBeingStarted) {
  constexpr int kEpochs = 4;
  const auto source = SmallSource(4'000);
  plan::TrainPlan plan = FleetPlan(2, 2, kEpochs);
  plan.mutable_early_stopping()->set_patience(kEpochs);  // keeps the best weights
  plan.mutable_early_stopping()->set_metric("log_loss");
  ThreadFleet fleet(*source);
  fleet.Hold("job1-worker-2");
  int evaluated = 0;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string&) {
    if (kind == "evaluation_done" && ++evaluated == kEpochs) {
      fleet.LetGo();
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet(
      {.plan = plan, .source = *source, .dataset = source->Spec(500), .events = events}, fleet,
      "job1");
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(evaluated, kEpochs);
  EXPECT_FALSE(fleet.held_too_long()) << "the job waited for the fleet";
}

}  // namespace
}  // namespace sluice::elastic
