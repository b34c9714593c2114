#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "catalog/dataset.pb.h"
#include "elastic/job/job_options_internal.h"
#include "elastic/master/journal.pb.h"
#include "elastic/worker/feature_reader.h"
#include "models/trees/gradient_boosting.h"
#include "tests/elastic/job/fleet_run.h"
#include "tests/elastic/job/trees_plan.h"
#include "tests/elastic/master/memory_journal.h"

namespace sluice::elastic {
namespace {

// What a group remembers of the search for trees.
int RoundsIn(const std::vector<std::string>& entries) {
  int rounds = 0;
  for (const std::string& bytes : entries) {
    JournalEntry entry;
    EXPECT_TRUE(entry.ParseFromString(bytes));
    rounds += entry.remembered_size();
  }
  return rounds;
}

// In this thread.
std::string Here(const plan::TrainPlan& plan, testing::MemorySource& source,
                 int64_t rows_per_shard) {
  const auto trees = models::GradientBoosting::Make(plan.model()).value();
  const catalog::DatasetSpec spec = source.Spec(rows_per_shard);
  const SplitRule split = SplitRule::Make(plan.split()).value();
  const auto reader =
      FeatureReader::Make(source, spec, trees->transform(), {.split = split}).value();
  models::FeatureBatch all, held_out, end;
  for (int shard = 0; shard < spec.shards_size(); ++shard) {
    EXPECT_TRUE(reader->Open(ShardId(shard)).ok());
    while (reader->Next(1024).value()) {
      reader->AppendTraining(&all);
      reader->AppendValidation(&held_out);
    }
  }
  const auto source_of = [&end](const models::FeatureBatch& rows) {
    return models::GradientBoosting::BatchSource{
        .next = [&rows, &end, read = false]() mutable -> Result<const models::FeatureBatch*> {
          return std::exchange(read, true) ? &end : &rows;
        },
        .rewind = [] { return OkStatus(); }};
  };
  const Status status = trees->Train(
      source_of(all),
      held_out.rows > 0 ? source_of(held_out) : models::GradientBoosting::BatchSource{}, {}, {});
  EXPECT_TRUE(status.ok()) << status.ToString();
  return trees->Save().value();
}

TEST(FleetTrees, AreThoseOfOneProcessOnAnyNumberOfWorkers) {
  const auto source = SmallSource(6'000);
  const std::string here = Here(TreesPlan(8, 1), *source, 500);
  for (const uint32_t workers : {1U, 2U, 4U}) {
    SCOPED_TRACE(workers);
    const FleetRun run = TrainWith(TreesPlan(8, workers), *source, 500);
    ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
    EXPECT_EQ(run.outcome->trees, here);
    EXPECT_EQ(run.outcome->epochs, 8);
    EXPECT_EQ(run.outcome->rows_per_epoch + run.outcome->validation_rows, 6'000);
    EXPECT_FALSE(run.outcome->metrics.empty());
    EXPECT_EQ(run.launched.size(), workers);  // and no server
  }
}

TEST(FleetTrees, OutliveTheirWorkersBitByBit) {
  const auto source = SmallSource(20'000);
  const std::string here = Here(TreesPlan(30, 1), *source, 2'000);
  std::atomic<int> lost = 0;
  const FleetRun run =
      TrainWith(TreesPlan(30, 3), *source, 2'000, nullptr,
                [&lost](ThreadFleet& fleet, const std::string& kind, const std::string& detail) {
                  if (kind == "worker_started" && lost++ < 4) {
                    (void)fleet.Stop(detail, 0);
                  }
                });
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_GE(run.Count("worker_lost"), 1);
  EXPECT_EQ(run.outcome->trees, here);
}

TEST(FleetTrees, StopWithTheRoundThatRowsHeldOutChoose) {
  const auto source = SmallSource(2'000);
  plan::TrainPlan plan = TreesPlan(200, 2);
  plan.mutable_early_stopping()->set_patience(3);
  Set(plan.mutable_model(), "train.early_stopping_rounds", 3);
  const FleetRun run = TrainWith(plan, *source, 200);
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(run.outcome->trees, Here(plan, *source, 200));
  EXPECT_LT(run.outcome->epochs, 200);
  EXPECT_EQ(run.outcome->best_epoch + 3, run.outcome->epochs);
}

TEST(FleetTrees, GoOnAfterTheRoundsOfALostMaster) {
  const auto source = SmallSource(6'000);
  plan::TrainPlan plan = TreesPlan(60, 2);
  plan.mutable_early_stopping()->set_patience(30);
  Set(plan.mutable_model(), "train.early_stopping_rounds", 30);
  const std::string here = Here(plan, *source, 500);
  int gone_on = 0;
  for (const int rounds : {0, 1, 12}) {
    SCOPED_TRACE(rounds);
    MemoryJournal journal;
    const auto train = [&](JournalStore& store, uint32_t term) {
      ThreadFleet fleet(*source);
      Succession succession;
      succession.journal = &store;
      JobEndpoint endpoint = "job1";
      endpoint.term = Term(term);
      EventCallback events;
      events.on_event = [&](const std::string& kind, const std::string&) {
        gone_on += kind == "training_goes_on" ? 1 : 0;
      };
      return TrainOnFleet(
          {.plan = plan, .source = *source, .dataset = source->Spec(500), .events = events}, fleet,
          endpoint, succession);
    };
    BreakingJournal before_rounds(journal, 1);
    BreakingJournal after_rounds(journal, rounds, RoundsIn);
    EXPECT_EQ(train(rounds == 0 ? before_rounds : after_rounds, 1).status().code(), Code::kAborted);
    const Result<TrainOutcome> second = train(journal, 2);
    ASSERT_TRUE(second.ok()) << second.status().ToString();
    EXPECT_EQ(second->trees, here);
  }
  EXPECT_GE(gone_on, 2);
}

TEST(FleetTrees, LeaveNoShardOut) {
  const auto source = SmallSource(100);
  plan::TrainPlan plan = TreesPlan(2, 2);
  plan.mutable_strategy()->set_skip_poison(true);
  EXPECT_FALSE(MasterOptionsOf(plan, 1, source->Spec(50), nullptr)->skip_poison);
}

TEST(FleetTrees, NoRowsAndBadDataAreToldAsInProcess) {
  const auto none = SmallSource(0);
  EXPECT_EQ(TrainWith(TreesPlan(2, 2), *none, 500).outcome.status().code(), Code::kInvalidArgument);
  testing::MemorySource bad({"a", "b", "c", "y"}, {{1, 2, 3, 1}, {1, 2, 3, 7}});
  const FleetRun run = TrainWith(TreesPlan(2, 2), bad, 500);
  EXPECT_EQ(run.outcome.status().code(), Code::kInvalidArgument);
  EXPECT_NE(run.outcome.status().message().find("7"), std::string::npos)
      << run.outcome.status().ToString();
}

}  // namespace
}  // namespace sluice::elastic
