#include "tests/elastic/job/resumed_job.h"

#include <gmock/gmock.h>

// The results of jobs that were stopped, or went back, after some checkpoints.
namespace sluice::elastic {
namespace {

using ::testing::Contains;
using ::testing::StartsWith;

// G4, and P11 for a whole job: two servers at the cut, three and one afterwards.
TEST_F(ResumedJob, P11_P16_SynchronousHasTheBitsOfAnUndisturbedRun) {
  const auto kind = plan::Strategy::PARAMETER_SERVER;
  const Result<TrainOutcome> undisturbed = Undisturbed(Synchronous(kind, 1, 1));
  Stopped(Synchronous(kind, 2, 2), 2);
  Stopped(Synchronous(kind, 3, 3), 2);
  EXPECT_THAT(events_, Contains(StartsWith("resumed at step ")));
  ExpectSame(Run(Synchronous(kind, 1, 1)), undisturbed);
  EXPECT_THAT(events_, Contains(StartsWith("resumed at step ")));
}

TEST_F(ResumedJob, P16_AsynchronousTrainsEveryRowOnce) {
  const plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 3, 2);
  Stopped(plan, 1);
  Stopped(plan, 2);
  ExpectEveryRow(Run(plan));
  EXPECT_EQ(Count("resumed"), 1);
}

// With one worker and one server the asynchronous mode is deterministic, too. (With two servers,
// one may have applied the batch in progress at the cut, so that its gradient differs for the
// other. The batch still counts once.)
TEST_F(ResumedJob, P16_AsynchronousWithOneWorkerHasTheSameBits) {
  const auto kind = plan::Strategy::PARAMETER_SERVER;
  const Result<TrainOutcome> undisturbed = Undisturbed(Plan(kind, 1));
  Stopped(Plan(kind, 1, 1), 2);
  ExpectSame(Run(Plan(kind, 1, 3)), undisturbed);
}

TEST_F(ResumedJob, P16_BoundedStalenessTrainsEveryRowOnce) {
  plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 2, 2);
  plan.mutable_strategy()->set_mode(plan::Strategy::BOUNDED_STALENESS);
  plan.mutable_strategy()->set_staleness(3);
  Stopped(plan, 2);
  ExpectEveryRow(Run(plan));
  EXPECT_EQ(Count("resumed"), 1);
}

TEST_F(ResumedJob, AllReduceHasTheBitsOfAnUndisturbedRun) {
  const auto kind = plan::Strategy::ALL_REDUCE;
  const Result<TrainOutcome> undisturbed = Undisturbed(Synchronous(kind, 1));
  Stopped(Synchronous(kind, 3), 2);
  Stopped(Synchronous(kind, 1), 2);
  ExpectSame(Run(Synchronous(kind, 2)), undisturbed);
  EXPECT_EQ(Count("resumed"), 1);
}

TEST_F(ResumedJob, InOneProcessHasTheBitsOfAnUndisturbedRun) {
  const auto kind = plan::Strategy::LOCAL;
  const plan::TrainPlan plan = Plan(kind, 1);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  Stopped(plan, 2);
  ExpectSame(Run(plan), undisturbed);
  EXPECT_EQ(Count("resumed"), 1);
}

// When the statement is run again all labels differ. The checkpoint is from the only epoch, so the
// rows it has trained would never be read again.
TEST_F(ResumedJob, AllReduceAndOneProcessGoOnWithTheSameRowsOnly) {
  for (const auto kind : {plan::Strategy::LOCAL, plan::Strategy::ALL_REDUCE}) {
    std::filesystem::remove_all(path_);
    source_ = SmallSource(kRows);
    plan::TrainPlan plan = kind == plan::Strategy::LOCAL ? Plan(kind, 1) : Synchronous(kind, 1);
    if (kind == plan::Strategy::LOCAL) {
      plan.set_epochs(1);
      ASSERT_TRUE(Run(plan).ok());
    } else {
      Stopped(plan, 1);
    }
    ASSERT_FALSE(Checkpoints().empty());
    const std::filesystem::path aside = path_.string() + "-aside";
    std::filesystem::remove_all(aside);
    std::filesystem::copy(path_, aside, std::filesystem::copy_options::recursive);
    std::vector<std::vector<double>> rows = SmallRows(kRows);
    for (std::vector<double>& row : rows) {
      row[3] = 1 - row[3];
    }
    source_ = std::make_unique<testing::MemorySource>(std::vector<std::string>{"a", "b", "c", "y"},
                                                      std::move(rows));
    const Result<TrainOutcome> other = Run(plan);
    ASSERT_FALSE(other.ok()) << plan::Strategy::Kind_Name(kind);
    EXPECT_EQ(other.status().diagnostics().front().sqlstate, "40001") << other.status().ToString();
    source_ = SmallSource(kRows);
    std::filesystem::remove_all(path_);
    std::filesystem::rename(aside, path_);
    const Result<TrainOutcome> same = Run(plan);
    ASSERT_TRUE(same.ok()) << same.status().ToString();
    EXPECT_EQ(Bits(same), Bits(Undisturbed(plan)));
  }
}

// The best weights, their metrics and the patience used so far are in the cut, too.
TEST_F(ResumedJob, EarlyStoppingGoesOnWhereItWas) {
  plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 2, 2);
  plan.set_epochs(40);
  plan.mutable_early_stopping()->set_patience(3);
  plan.mutable_early_stopping()->set_metric("log_loss");
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  Stopped(plan, 3);
  const Result<TrainOutcome> resumed = Run(plan);
  ExpectSame(resumed, undisturbed);
  EXPECT_EQ(resumed->epochs, undisturbed->epochs);
}

// A server without a replica dies: all processes go back to the same cut, so that each row counts
// once.
TEST_F(ResumedJob, P16_ALostServerCostsAReplay) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 2, 2);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  // On a busy machine the training may have ended before the event arrived.
  constexpr int kTries = 20;
  for (int tried = 0; tried < kTries && Count("rolled_back") == 0; ++tried) {
    std::filesystem::remove_all(path_);
    int written = 0;
    ExpectSame(Run(plan, 0,
                   [&](ThreadFleet& fleet, const auto& kind) {
                     if (kind == "checkpoint_written" && ++written == 2) {
                       fleet.Lose("job1-ps-1", Role::kParameterServer);
                     }
                   }),
               undisturbed);
  }
  EXPECT_THAT(events_, Contains(StartsWith("rolled_back to step ")));
}

// The parameters are lost, and so is the master that was about to go back: its successor's journal
// says that the job has failed, and why.
TEST_F(ResumedJob, P16_AMasterThatDiesBeforeItGoesBackIsSucceededByOneThatDoes) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 1, 2);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  term_ = Term::First();
  bool written = false;
  std::vector<std::string> left;
  const Result<TrainOutcome> first = Run(plan, 3, [&](ThreadFleet& fleet, const auto& kind) {
    if (kind == "checkpoint_written" && !std::exchange(written, true)) {
      fleet.Lose("job1-ps-1", Role::kParameterServer);
    } else if (kind == "rolled_back") {
      left = journal_.ReadAll().value();
    }
  });
  ASSERT_FALSE(left.empty()) << first.status().ToString();
  journal_.Set(left);
  ++term_;
  const Result<TrainOutcome> second = Run(plan);
  EXPECT_THAT(events_, Contains(StartsWith("rolled_back to step ")));
  ExpectSame(second, undisturbed);
}

TEST_F(ResumedJob, AllWorkersOfAnAllReduceLostCostAReplay) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::ALL_REDUCE, 2);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  int written = 0;
  const Result<TrainOutcome> disturbed = Run(plan, 0, [&](ThreadFleet& fleet, const auto& kind) {
    if (kind == "checkpoint_written" && ++written == 2) {
      for (const std::string& name : fleet.launched()) {
        (void)fleet.Stop(name, 0);
      }
    }
  });
  EXPECT_THAT(events_, Contains(StartsWith("rolled_back to step ")));
  ExpectSame(disturbed, undisturbed);
}

// The disk is full for a while: the next checkpoint is still requested.
TEST_F(ResumedJob, AFolderThatIsGoneForAWhileCostsCheckpointsOnly) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::ALL_REDUCE, 2);
  bool failed = false;
  const Result<TrainOutcome> outcome = Run(plan, 0, [&](ThreadFleet&, const auto& kind) {
    if (kind == "world_formed") {
      std::filesystem::remove_all(path_);
    } else if (kind == "checkpoint_failed" && !failed) {
      failed = true;
      std::filesystem::create_directories(path_);
    }
  });
  ExpectEveryRow(outcome);
  EXPECT_TRUE(failed);
  EXPECT_GE(Count("checkpoint_written"), 1);
}

}  // namespace
}  // namespace sluice::elastic
