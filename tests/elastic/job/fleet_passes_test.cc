#include <gtest/gtest.h>

#include "catalog/dataset.pb.h"
#include "elastic/job/optimum_job.h"
#include "tests/elastic/job/fleet_run.h"
#include "tests/elastic/master/memory_journal.h"

namespace sluice::elastic {
namespace {

// A linear model of SmallSource's rows, to its optimum.
plan::TrainPlan OptimumPlan(bool classes, uint32_t workers) {
  plan::TrainPlan plan = SmallPlan(1, 64);
  models::ModelSpec& model = *plan.mutable_model();
  model.set_type(classes ? "LinearClassifier" : "LinearRegressor");
  model.set_loss(classes ? "logistic" : "squared");
  model.clear_attributes();
  model.mutable_features()->mutable_features(2)->set_representation(models::Feature::INDICATOR);
  if (!classes) {
    models::LabelPlan& label = *model.mutable_features()->mutable_label();
    label.clear_classes();
    label.set_kind(models::LabelPlan::NUMBER);
    label.set_scale(1);
  }
  plan.set_optimum(true);
  if (workers > 0) {
    plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
    plan.mutable_strategy()->set_workers(workers);
  }
  return plan;
}

TrainOutcome Here(bool classes, testing::MemorySource& source, int64_t rows_per_shard) {
  Result<TrainOutcome> outcome = TrainToOptimum(
      {.plan = OptimumPlan(classes, 0), .source = source, .dataset = source.Spec(rows_per_shard)});
  EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
  return std::move(outcome).value();
}

TEST(FleetPasses, HasTheBitsOfARunInProcessOnAnyNumberOfWorkers) {
  const auto source = SmallSource(6'000);
  for (const bool classes : {true, false}) {
    const TrainOutcome here = Here(classes, *source, 500);
    for (const uint32_t workers : {1U, 2U, 4U}) {
      SCOPED_TRACE(workers);
      const FleetRun run = TrainWith(OptimumPlan(classes, workers), *source, 500);
      ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
      EXPECT_EQ(Bits(run), models::SaveWeights(here.weights));
      EXPECT_EQ(run.outcome->loss, here.loss);
      EXPECT_EQ(run.outcome->epochs, here.epochs);
      EXPECT_EQ(run.outcome->rows_per_epoch, here.rows_per_epoch);
      EXPECT_EQ(run.outcome->rows_trained, here.rows_trained);
      EXPECT_EQ(run.outcome->validation_rows, here.validation_rows);
      EXPECT_EQ(run.outcome->metrics, here.metrics);
      EXPECT_EQ(run.launched.size(), workers);  // and no server
    }
  }
}

TEST(FleetPasses, OutlivesItsWorkersBitByBit) {
  const auto source = SmallSource(20'000);
  const TrainOutcome here = Here(true, *source, 500);
  size_t lost = 0;
  const FleetRun run =
      TrainWith(OptimumPlan(true, 2), *source, 500, nullptr,
                [&lost](ThreadFleet& fleet, const std::string& kind, const std::string& detail) {
                  if (kind == "worker_started" && lost < 3) {
                    ++lost;
                    (void)fleet.Stop(detail, 0);
                  }
                });
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.Count("worker_lost"), 3);
  EXPECT_EQ(Bits(run), models::SaveWeights(here.weights));
  EXPECT_EQ(run.outcome->rows_per_epoch, here.rows_per_epoch);
}

TEST(FleetPasses, AMasterThatTakesOverBeginsAgainToTheSameBits) {
  const auto source = SmallSource(6'000);
  const TrainOutcome here = Here(true, *source, 500);
  for (const int groups : {1, 2}) {
    SCOPED_TRACE(groups);
    MemoryJournal journal;
    const plan::TrainPlan plan = OptimumPlan(true, 2);
    const auto train = [&](JournalStore& store, uint32_t term) {
      ThreadFleet fleet(*source);
      Succession succession;
      succession.journal = &store;
      JobEndpoint endpoint = "job1";
      endpoint.term = Term(term);
      return TrainOnFleet({.plan = plan, .source = *source, .dataset = source->Spec(500)}, fleet,
                          endpoint, succession);
    };
    BreakingJournal broken(journal, groups);
    EXPECT_EQ(train(broken, 1).status().code(), Code::kAborted);
    const Result<TrainOutcome> second = train(journal, 2);
    ASSERT_TRUE(second.ok()) << second.status().ToString();
    EXPECT_EQ(models::SaveWeights(second->weights), models::SaveWeights(here.weights));
    EXPECT_EQ(second->metrics, here.metrics);
  }
}

TEST(FleetPasses, NoRowsAndBadDataAreToldAsInProcess) {
  const auto none = SmallSource(0);
  EXPECT_EQ(TrainWith(OptimumPlan(false, 2), *none, 500).outcome.status().code(),
            Code::kInvalidArgument);
  testing::MemorySource bad({"a", "b", "c", "y"}, {{1, 2, 3, 1}, {1, 2, 3, 7}});
  const FleetRun run = TrainWith(OptimumPlan(true, 2), bad, 500);
  EXPECT_EQ(run.outcome.status().code(), Code::kInvalidArgument);
  EXPECT_NE(run.outcome.status().message().find("7"), std::string::npos)
      << run.outcome.status().ToString();
}

}  // namespace
}  // namespace sluice::elastic
