#include "elastic/job/local_job.h"

#include <gtest/gtest.h>

#include "base/profile.h"
#include "catalog/dataset.pb.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

Result<TrainOutcome> Train(const plan::TrainPlan& plan, testing::MemorySource& source,
                           int64_t rows_per_shard, const ProgressCallback& progress = {},
                           std::stop_token stop = {}) {
  return TrainInProcess({.plan = plan,
                         .source = source,
                         .dataset = source.Spec(rows_per_shard),
                         .progress = progress,
                         .stop = stop});
}

TEST(TrainInProcess, LearnsAndAccountsForEveryRow) {
  const auto source = SmallSource(10'000);
  const Result<TrainOutcome> outcome = Train(SmallPlan(3, 64), *source, 1'000);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, 10'000);
  EXPECT_NEAR(static_cast<double>(outcome->validation_rows), 1'000, 150);
  EXPECT_EQ(outcome->rows_trained, 3 * outcome->rows_per_epoch);
  EXPECT_EQ(outcome->epochs, 3U);
  EXPECT_GT(MetricOf(*outcome, "auc"), 0.88);
  // Later epochs and the evaluations read from memory.
  EXPECT_EQ(source->rows_read(), 10'000);
}

TEST(TrainInProcess, TellsWhatItSpentItsTimeOn) {
  const auto source = SmallSource(5'000);
  const plan::TrainPlan plan = SmallPlan(2, 64);
  ProfileSum profile;
  const SteadyClock clock;
  const TimePoint begun = clock.Now();
  const Result<TrainOutcome> outcome = TrainInProcess({.plan = plan,
                                                       .source = *source,
                                                       .dataset = source->Spec(700),
                                                       .processors = 1,
                                                       .profile = &profile});
  const double seconds = SecondsBetween(begun, clock.Now());
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  for (const Phase phase :
       {Phase::kStart, Phase::kDatabase, Phase::kDecoding, Phase::kTransforming, Phase::kBatches,
        Phase::kLearning, Phase::kExchange, Phase::kOptimizer, Phase::kEvaluation}) {
    EXPECT_GT(profile.Get().Seconds(phase), 0) << PhaseName(phase);
  }
  EXPECT_LE(profile.Get().Total(), seconds);
}

// What memory has no room for is read from the database once, and then from the disk.
TEST(TrainInProcess, RowsOnTheDiskChangeNoBits) {
  const auto train = [](plan::TrainPlan::DiskCache cache, int64_t memory, unsigned processors,
                        int64_t rows_read, std::vector<std::string>* told) {
    plan::TrainPlan plan = SmallPlan(3, 64);
    plan.set_disk_cache(cache);
    plan.mutable_strategy()->set_memory_bytes(memory);
    const auto source = SmallSource(20'000);
    EventCallback events;
    events.on_event = [told](const std::string& kind, const std::string& detail) {
      if (kind == kRowsReadAgain) {
        told->push_back(detail);
      }
    };
    ProfileSum profile;
    const Result<TrainOutcome> outcome = TrainInProcess({.plan = plan,
                                                         .source = *source,
                                                         .dataset = source->Spec(6'000),
                                                         .events = events,
                                                         .processors = processors,
                                                         .profile = &profile});
    EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(source->rows_read(), rows_read);
    EXPECT_EQ(profile.Get().Seconds(Phase::kCache) > 0,
              memory == 1 && cache == plan::TrainPlan::CACHE);
    return models::SaveWeights(outcome->weights);
  };
  std::vector<std::string> told;
  const std::string bits = train(plan::TrainPlan::CACHE, 0, 1, 20'000, &told);
  for (const unsigned processors : {1U, 2U}) {
    EXPECT_EQ(train(plan::TrainPlan::CACHE, 1, processors, 20'000, &told), bits);
    // Each epoch, and the validation rows of each.
    EXPECT_EQ(train(plan::TrainPlan::NO_CACHE, 1, processors, 120'000, &told), bits);
  }
  EXPECT_TRUE(told.empty());
}

// Shards are trained in their order, whoever reads them.
TEST(TrainInProcess, AThreadThatReadsBesideChangesNoBits) {
  for (const uint32_t epochs : {1U, 3U}) {
    const auto source = SmallSource(5'000);
    const plan::TrainPlan plan = SmallPlan(epochs, 64);
    const auto train = [&](unsigned processors, ProfileSum* profile) {
      return TrainInProcess({.plan = plan,
                             .source = *source,
                             .dataset = source->Spec(300),
                             .processors = processors,
                             .profile = profile});
    };
    ProfileSum alone, beside;
    const Result<TrainOutcome> one = train(1, &alone);
    const Result<TrainOutcome> two = train(2, &beside);
    ASSERT_TRUE(one.ok() && two.ok()) << two.status().ToString();
    EXPECT_EQ(models::SaveWeights(one->weights), models::SaveWeights(two->weights));
    EXPECT_EQ(one->rows_trained, two->rows_trained);
    EXPECT_EQ(one->rows_read, two->rows_read);
    EXPECT_EQ(one->metrics, two->metrics);
    EXPECT_EQ(alone.Get().Seconds(Phase::kRows), 0);
    EXPECT_GT(beside.Get().Seconds(Phase::kRows), 0);
  }
}

TEST(TrainInProcess, TheProfileChangesNoBits) {
  const auto source = SmallSource(5'000);
  const plan::TrainPlan plan = SmallPlan(2, 64);
  ProfileSum profile;
  const Result<TrainOutcome> with = TrainInProcess(
      {.plan = plan, .source = *source, .dataset = source->Spec(700), .profile = &profile});
  const Result<TrainOutcome> without = Train(plan, *source, 700);
  ASSERT_TRUE(with.ok() && without.ok());
  EXPECT_EQ(models::SaveWeights(with->weights), models::SaveWeights(without->weights));
}

TEST(TrainInProcess, SameStatementSameBits) {
  const auto source = SmallSource(5'000);
  const Result<TrainOutcome> first = Train(SmallPlan(2, 64), *source, 700);
  const Result<TrainOutcome> second = Train(SmallPlan(2, 64), *source, 700);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(models::SaveWeights(first->weights), models::SaveWeights(second->weights));
  plan::TrainPlan other = SmallPlan(2, 64);
  other.set_seed(12);
  const Result<TrainOutcome> third = Train(other, *source, 700);
  ASSERT_TRUE(third.ok());
  EXPECT_NE(models::SaveWeights(first->weights), models::SaveWeights(third->weights));
}

TEST(TrainInProcess, SynchronousLanesLearnToo) {
  const auto source = SmallSource(10'000);
  plan::TrainPlan plan = SmallPlan(3, 64);
  plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
  plan.mutable_strategy()->set_micro_batches(4);
  const Result<TrainOutcome> outcome = Train(plan, *source, 700);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->rows_trained, 3 * outcome->rows_per_epoch);
  EXPECT_GT(MetricOf(*outcome, "auc"), 0.88);
}

TEST(TrainInProcess, StepLimitIsExact) {
  const auto source = SmallSource(5'000);
  plan::TrainPlan plan = SmallPlan(0, 50);
  plan.mutable_split()->set_kind(plan::Split::NONE);
  for (const int64_t steps : {1, 7, 133, 250}) {
    plan.set_max_steps(steps);
    const Result<TrainOutcome> outcome = Train(plan, *source, 1'000);
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(outcome->rows_trained, steps * 50);
  }
}

TEST(TrainInProcess, StopsEarlyAndGoesBackToTheBestEpoch) {
  const auto source = SmallSource(4'000);
  plan::TrainPlan plan = SmallPlan(60, 32);
  plan.mutable_model()->mutable_deep_optimizer()->mutable_arguments(0)->set_number(0.3);
  plan.mutable_early_stopping()->set_patience(2);
  plan.mutable_early_stopping()->set_metric("log_loss");
  std::vector<Progress> ends;
  const Result<TrainOutcome> outcome =
      Train(plan, *source, 1'000, [&](const Progress& progress) { ends.push_back(progress); });
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  ASSERT_LT(outcome->epochs, 60U);
  double best = 1e9;
  for (const Progress& progress : ends) {
    for (const auto& [name, value] : progress.metrics) {
      best = name == "log_loss" ? std::min(best, value) : best;
    }
  }
  EXPECT_EQ(MetricOf(*outcome, "log_loss"), best);
  // The weights are those of that epoch: the same job that ends there has the same weights.
  plan::TrainPlan until_best = plan;
  until_best.clear_early_stopping();
  until_best.set_epochs(outcome->epochs - 2);
  const Result<TrainOutcome> shorter = Train(until_best, *source, 1'000);
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(models::SaveWeights(shorter->weights), models::SaveWeights(outcome->weights));
}

TEST(TrainInProcess, NoRowsIsAnError) {
  const auto source = SmallSource(0);
  const Result<TrainOutcome> outcome = Train(SmallPlan(1, 64), *source, 1'000);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().code(), Code::kInvalidArgument);
}

TEST(TrainInProcess, CancelEndsIt) {
  const auto source = SmallSource(5'000);
  std::stop_source stop;
  const Result<TrainOutcome> outcome = Train(
      SmallPlan(1'000'000, 64), *source, 1'000, [&](const Progress&) { stop.request_stop(); },
      stop.get_token());
  EXPECT_EQ(outcome.status().code(), Code::kCancelled);
}

TEST(TrainInProcess, BadDataEndsTheJobWithItsText) {
  std::vector<std::vector<double>> rows = SmallRows(3'000);
  rows[1'500][3] = 17;  // not a class
  testing::MemorySource source({"a", "b", "c", "y"}, rows);
  const Result<TrainOutcome> outcome = Train(SmallPlan(1, 64), source, 1'000);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().message().find("y"), std::string::npos) << outcome.status().ToString();
}

TEST(TrainInProcess, UnreachableDatabaseIsAskedAgain) {
  const auto source = SmallSource(3'000);
  source->FailReads(1'000, 2, Unavailable("the server closed the connection"));
  const Result<TrainOutcome> outcome = Train(SmallPlan(1, 64), *source, 1'000);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, 3'000);
}

TEST(TrainInProcess, UnknownMetricIsNamed) {
  const auto source = SmallSource(1'000);
  plan::TrainPlan plan = SmallPlan(1, 64);
  plan.mutable_early_stopping()->set_patience(1);
  plan.mutable_early_stopping()->set_metric("acuracy");
  const Result<TrainOutcome> outcome = Train(plan, *source, 1'000);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().ToString().find("accuracy"), std::string::npos);
}

TEST(TrainInProcess, DivergenceIsATypedError) {
  const auto source = SmallSource(2'000);
  plan::TrainPlan plan = SmallPlan(50, 32);
  plan.mutable_model()->set_type("DNNRegressor");
  plan.mutable_model()->set_loss("squared");
  models::LabelPlan& label = *plan.mutable_model()->mutable_features()->mutable_label();
  label.set_kind(models::LabelPlan::NUMBER);
  label.clear_classes();
  label.set_scale(1);
  plan.mutable_model()->mutable_deep_optimizer()->set_name("SGD");
  plan.mutable_model()->mutable_deep_optimizer()->mutable_arguments(0)->set_number(1000);
  const Result<TrainOutcome> outcome = Train(plan, *source, 1'000);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().sqlstate(), "22003") << outcome.status().ToString();
}

}  // namespace
}  // namespace sluice::elastic
