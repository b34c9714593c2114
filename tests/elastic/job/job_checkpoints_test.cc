#include "elastic/job/job_checkpoints.h"

#include <gmock/gmock.h>

#include "catalog/dataset.pb.h"
#include "tests/elastic/job/resumed_job.h"

// What a job finds in its folder, and what it refuses to continue from.
namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(ResumedJob, P12_ADamagedNewestIsPassedOver) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 1, 2);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  Stopped(plan, 3);
  const std::vector<fs::path> before = Checkpoints();
  ASSERT_EQ(before.size(), 2U) << "keep";
  fs::resize_file(before.back() / "partition-0", 10);
  EXPECT_THAT(JobCheckpoints::Open(plan).value()->damaged(),
              Contains(HasSubstr("partition-0' is damaged")));
  ExpectSame(Run(plan), undisturbed);
}

TEST_F(ResumedJob, WhatDoesNotFitIsToldBeforeAnythingStarts) {
  const plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 1, 1);
  Stopped(plan, 1);
  const auto refusal = [this](const plan::TrainPlan& other) {
    const Status status = Run(other, 0).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status.ToString();
    EXPECT_TRUE(events_.empty());
    events_.clear();
    return status.ToString() + (status.ok() ? "" : status.diagnostics().front().detail);
  };
  events_.clear();
  plan::TrainPlan other = plan;
  other.mutable_checkpoints()->set_statement("train another");
  EXPECT_THAT(refusal(other), HasSubstr("checkpoints of another statement"));
  other = plan;
  other.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
  EXPECT_THAT(refusal(other), HasSubstr("it was ASYNCHRONOUS PARAMETER_SERVER then"));
  other = plan;
  other.mutable_strategy()->set_parameter_servers(100);
  EXPECT_THAT(refusal(other), HasSubstr("engine.num_ps is 100, and the checkpoint has 64"));
  source_ = SmallSource(kRows);
  {
    JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
    catalog::DatasetSpec data = Counted(source_->Spec(kRowsPerShard));
    data.set_counted_rows(kRows + 1);
    const Status status = checkpoints.DataToRun(data, nullptr).status();
    EXPECT_THAT(status.ToString(), HasSubstr("the data has changed since the checkpoint"));
    EXPECT_THAT(refusal(plan), HasSubstr("another job is writing checkpoints into"));
  }
  ExpectEveryRow(Run(plan));
}

// The planner might choose differently with today's statistics; the job keeps its plan.
TEST_F(ResumedJob, GoesOnWithThePlanOfTheCheckpoint) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 2, 1);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  Stopped(plan, 1);
  plan::TrainPlan again = plan;
  again.mutable_model()->mutable_features()->mutable_features(0)->set_scale(3);
  again.set_epochs(17);
  again.mutable_strategy()->set_micro_batches(8);
  ExpectSame(Run(again), undisturbed);
}

TEST_F(ResumedJob, AFinishedJobLeavesNoCheckpoints) {
  const plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 1);
  Stopped(plan, 1);
  EXPECT_FALSE(Checkpoints().empty());
  {
    const JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
    EXPECT_FALSE(checkpoints.committing_job().has_value());
    ASSERT_TRUE(checkpoints.SetCommittingJob(5).ok());
  }
  {
    JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
    EXPECT_EQ(checkpoints.committing_job(), 5);
    ASSERT_TRUE(checkpoints.Finish().ok());
  }
  EXPECT_TRUE(Checkpoints().empty());
  const JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
  EXPECT_FALSE(checkpoints.restore().has_value());
  EXPECT_FALSE(checkpoints.committing_job().has_value());
}

TEST_F(ResumedJob, OtherDataIsNotGoneOnWith) {
  const plan::TrainPlan plan = Plan(plan::Strategy::LOCAL, 1);
  const catalog::DatasetSpec then = Counted(source_->Spec(kRowsPerShard));
  catalog::DatasetSpec validation = Counted(source_->Spec(kRowsPerShard));
  const auto continued = [&](const catalog::DatasetSpec& now, const catalog::DatasetSpec& other) {
    JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
    return checkpoints.DataToRun(now, &other);
  };
  {
    JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
    ASSERT_TRUE(checkpoints.DataToRun(then, &validation).ok());
    CheckpointDirectory directory = checkpoints.directory();
    ASSERT_TRUE(directory.Commit(directory.Begin().value(), checkpoints.Manifest()).ok());
  }
  // With today's statistics the cut might differ; the checkpoint's ranges stay.
  const Result<catalog::DatasetSpec> same = continued(source_->Spec(kRowsPerShard / 2), validation);
  EXPECT_FALSE(same.ok()) << "not counted";
  const auto cut_again = continued(Counted(source_->Spec(kRowsPerShard / 2)), validation);
  ASSERT_TRUE(cut_again.ok()) << cut_again.status().ToString();
  EXPECT_EQ(cut_again->shards_size(), then.shards_size());
  const auto refusal = [&](const catalog::DatasetSpec& now, const catalog::DatasetSpec& other) {
    const Status status = continued(now, other).status();
    EXPECT_EQ(status.code(), Code::kFailedPrecondition);
    return status.ok() ? "" : status.diagnostics().front().detail;
  };
  catalog::DatasetSpec now = then;
  now.set_counted_rows(kRows - 1);
  EXPECT_THAT(refusal(now, validation), HasSubstr("had 6000 rows then and has 5999"));
  EXPECT_THAT(refusal(then, now), HasSubstr("had 6000 rows then and has 5999"));
  now = then;
  now.mutable_columns()->RemoveLast();
  EXPECT_THAT(refusal(now, validation), HasSubstr("had 4 columns then and has 3"));
  now = then;
  now.mutable_columns(1)->set_name("z");
  EXPECT_THAT(refusal(now, validation), HasSubstr("column 'z' was 'b' then"));
  now = then;
  now.mutable_columns(1)->set_type(static_cast<int>(DataType::kInt64));
  EXPECT_THAT(refusal(now, validation), HasSubstr("or of another type"));
  now = then;
  now.set_cut(catalog::DatasetSpec::ROWID);
  EXPECT_THAT(refusal(now, validation), HasSubstr("the rows were cut by"));
}

// The same rows as before, but two of them have changed places: the checkpoint's checksum of each
// shard reveals it as soon as the shard is read in another epoch.
TEST_F(ResumedJob, S16_RowsThatHaveMovedEndTheJob) {
  for (const auto kind : {plan::Strategy::PARAMETER_SERVER, plan::Strategy::LOCAL}) {
    fs::remove_all(path_);
    source_ = SmallSource(kRows);
    const plan::TrainPlan plan = Plan(kind, 1);
    const auto epoch = [&] {
      return JobCheckpoints::Open(plan).value()->restore()->manifest.epoch;
    };
    do {
      Stopped(plan, 1);
    } while (epoch() < Epoch(2));
    ASSERT_LT(epoch(), Epoch(plan.epochs()));
    std::vector<std::vector<double>> rows = SmallRows(kRows);
    std::swap(rows[3], rows[3 + kRowsPerShard]);
    source_ =
        std::make_unique<testing::MemorySource>(std::vector<std::string>{"a", "b", "c", "y"}, rows);
    const Status status = Run(plan).status();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.ToString(), HasSubstr("was read twice and was not the same"));
  }
}

}  // namespace
}  // namespace sluice::elastic
