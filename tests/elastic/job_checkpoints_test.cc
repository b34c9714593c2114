#include "elastic/job_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catalog/dataset.pb.h"
#include "elastic/job.h"
#include "tests/elastic/memory_journal.h"
#include "tests/elastic/small_job.h"
#include "tests/elastic/thread_fleet.h"

namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kRows = 6'000;
constexpr int64_t kRowsPerShard = 500;

// A job that is stopped after some checkpoints, and the same statement run again.
class ResumedJob : public ::testing::Test {
 protected:
  using Disturb = std::function<void(ThreadFleet&, const std::string& kind)>;

  ResumedJob()
      : path_(fs::temp_directory_path() / ("sluice-resumed-test-" + std::to_string(getpid()))) {
    fs::remove_all(path_);
  }
  ~ResumedJob() override { fs::remove_all(path_); }

  plan::TrainPlan Plan(plan::Strategy::Kind kind, uint32_t workers, uint32_t servers = 1) const {
    // Long enough for some checkpoints: steps are told ten times a second.
    plan::TrainPlan plan = SmallPlan(kind == plan::Strategy::PARAMETER_SERVER ? 16 : 300, 64);
    plan::Strategy* strategy = plan.mutable_strategy();
    strategy->set_kind(kind);
    strategy->set_workers(workers);
    strategy->set_max_workers(workers);
    strategy->set_parameter_servers(servers);
    plan::Checkpoints* checkpoints = plan.mutable_checkpoints();
    checkpoints->set_directory(path_.string());
    checkpoints->set_every_steps(10);
    checkpoints->set_keep(2);
    checkpoints->set_statement("train it");
    return plan;
  }
  plan::TrainPlan Synchronous(plan::Strategy::Kind kind, uint32_t workers,
                              uint32_t servers = 1) const {
    plan::TrainPlan plan = Plan(kind, workers, servers);
    plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
    plan.mutable_strategy()->set_micro_batches(4);
    return plan;
  }
  static catalog::DatasetSpec Counted(catalog::DatasetSpec spec) {
    spec.set_counted_rows(kRows);
    return spec;
  }

  // As the executor runs it. Stops at the so-many-th checkpoint; 0: runs to the end.
  Result<TrainOutcome> Run(const plan::TrainPlan& wanted, int stop_at = 0,
                           const Disturb& disturb = {}) {
    ASSIGN_OR_RETURN(std::optional<JobCheckpoints> checkpoints, JobCheckpoints::Open(wanted));
    const plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
    catalog::DatasetSpec data = Counted(source_->Spec(kRowsPerShard));
    if (checkpoints.has_value()) {
      ASSIGN_OR_RETURN(data, checkpoints->DataToRun(data, nullptr));
    }
    ThreadFleet fleet(*source_);
    std::stop_source stop;
    events_.clear();
    int written = 0;
    EventCallback events;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      if (kind == "checkpoint_written" && ++written == stop_at) {
        stop.request_stop();
      }
      if (disturb) {
        disturb(fleet, kind);
      }
    };
    JobCheckpoints* saved = checkpoints.has_value() ? &*checkpoints : nullptr;
    if (plan.strategy().kind() == plan::Strategy::LOCAL) {
      return TrainInProcess(plan, *source_, data, nullptr, nullptr, {}, events, stop.get_token(),
                            saved);
    }
    Succession succession;
    succession.journal = &journal_;
    MasterSeat seat("job1");
    seat.term = term_;
    return TrainOnFleet(plan, *source_, fleet, seat, data, nullptr, nullptr, {}, events,
                        stop.get_token(), nullptr, term_ > 0 ? succession : Succession{}, saved);
  }
  Result<TrainOutcome> Undisturbed(plan::TrainPlan plan) {
    plan.clear_checkpoints();
    return Run(plan);
  }
  void Stopped(const plan::TrainPlan& plan, int at) {
    const Result<TrainOutcome> stopped = Run(plan, at);
    ASSERT_EQ(stopped.status().code(), Code::kCancelled) << stopped.status().ToString();
  }
  static std::string Bits(const Result<TrainOutcome>& outcome) {
    return models::SaveWeights(outcome.value().weights);
  }
  void ExpectSame(const Result<TrainOutcome>& resumed, const Result<TrainOutcome>& undisturbed) {
    ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
    ASSERT_TRUE(resumed.ok()) << resumed.status().ToString();
    EXPECT_EQ(Bits(resumed), Bits(undisturbed));
    EXPECT_EQ(resumed->metrics, undisturbed->metrics);
    ExpectEveryRow(resumed);
  }
  static void ExpectEveryRow(const Result<TrainOutcome>& resumed) {
    ASSERT_TRUE(resumed.ok()) << resumed.status().ToString();
    EXPECT_EQ(resumed->rows_per_epoch + resumed->validation_rows, kRows);
    EXPECT_EQ(resumed->rows_trained, resumed->epochs * resumed->rows_per_epoch);
  }
  int Count(const std::string& kind) const {
    int count = 0;
    for (const std::string& event : events_) {
      count += event.starts_with(kind + " ") ? 1 : 0;
    }
    return count;
  }
  std::vector<fs::path> Checkpoints() const {
    std::vector<fs::path> paths;
    for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with("checkpoint-")) {
        paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
      return std::stoi(a.filename().string().substr(11)) <
             std::stoi(b.filename().string().substr(11));
    });
    return paths;
  }

  fs::path path_;
  uint64_t term_ = 0;  // of the master; 0: it has no journal
  MemoryJournal journal_;
  std::unique_ptr<testing::MemorySource> source_ = SmallSource(kRows);
  std::vector<std::string> events_;
};

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

// With one worker and one server also the asynchronous mode has one course. (Of two servers one may
// have applied the batch that was under way at the cut: its gradient is then another one for the
// other. It counts once all the same.)
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

// The best weights, their metrics and the patience that is used up are in the cut, too.
TEST_F(ResumedJob, EarlyStoppingGoesOnWhereItWas) {
  plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 2, 2);
  plan.set_epochs(40);
  plan.mutable_early_stopping()->set_patience(3);
  plan.mutable_early_stopping()->set_metric("log_loss");
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  Stopped(plan, 6);
  const Result<TrainOutcome> resumed = Run(plan);
  ExpectSame(resumed, undisturbed);
  EXPECT_EQ(resumed->epochs, undisturbed->epochs);
}

// A server without a replica dies: all go back to the same cut, so that each row counts once.
TEST_F(ResumedJob, P16_ALostServerCostsAReplay) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 2, 2);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  int written = 0;
  const Result<TrainOutcome> disturbed = Run(plan, 0, [&](ThreadFleet& fleet, const auto& kind) {
    if (kind == "checkpoint_written" && ++written == 2) {
      (void)fleet.Stop("job1-ps-1", 0);
    }
  });
  EXPECT_THAT(events_, Contains(StartsWith("rolled_back to step ")));
  ExpectSame(disturbed, undisturbed);
}

// The parameters are lost, and with them the master that was about to go back: the journal of the
// next one says that the job has failed, and why.
TEST_F(ResumedJob, P16_AMasterThatDiesBeforeItGoesBackIsSucceededByOneThatDoes) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::PARAMETER_SERVER, 1, 2);
  const Result<TrainOutcome> undisturbed = Undisturbed(plan);
  term_ = 1;
  int written = 0;
  std::vector<std::string> left;
  const Result<TrainOutcome> first = Run(plan, 3, [&](ThreadFleet& fleet, const auto& kind) {
    if (kind == "checkpoint_written" && ++written == 2) {
      (void)fleet.Stop("job1-ps-1", 0);
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

// Statistics may have changed what the planner would choose now; the job goes on with what it had.
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
    EXPECT_FALSE(checkpoints.ending().has_value());
    ASSERT_TRUE(checkpoints.Ending(5).ok());
  }
  {
    JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
    EXPECT_EQ(checkpoints.ending(), 5);
    ASSERT_TRUE(checkpoints.Finish().ok());
  }
  EXPECT_TRUE(Checkpoints().empty());
  const JobCheckpoints checkpoints = JobCheckpoints::Open(plan).value().value();
  EXPECT_FALSE(checkpoints.restore().has_value());
  EXPECT_FALSE(checkpoints.ending().has_value());
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
  // Statistics may cut it in another way now; the ranges of the checkpoint stay.
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

// As many rows as before, and the same ones, but two of them have changed places: what the
// checkpoint knows of each shard tells, as soon as it is read in another epoch.
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
    } while (epoch() < 2);
    ASSERT_LT(epoch(), plan.epochs());
    std::vector<std::vector<double>> rows = SmallRows(kRows);
    std::swap(rows[3], rows[3 + kRowsPerShard]);
    source_ =
        std::make_unique<testing::MemorySource>(std::vector<std::string>{"a", "b", "c", "y"}, rows);
    const Status status = Run(plan).status();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_THAT(status.ToString(), HasSubstr("was read twice and was not the same"));
  }
}

// The disk is full for a while: the next checkpoint is asked for all the same.
TEST_F(ResumedJob, AFolderThatIsGoneForAWhileCostsCheckpointsOnly) {
  const plan::TrainPlan plan = Synchronous(plan::Strategy::ALL_REDUCE, 2);
  bool failed = false;
  const Result<TrainOutcome> outcome = Run(plan, 0, [&](ThreadFleet&, const auto& kind) {
    if (kind == "world_formed") {
      fs::remove_all(path_);
    } else if (kind == "checkpoint_failed" && !failed) {
      failed = true;
      fs::create_directories(path_);
    }
  });
  ExpectEveryRow(outcome);
  EXPECT_TRUE(failed);
  EXPECT_GE(Count("checkpoint_written"), 1);
}

}  // namespace
}  // namespace sluice::elastic
