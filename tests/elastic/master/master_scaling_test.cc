#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elastic/master/master.h"
#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class MasterScaling : public ::testing::Test {
 protected:
  MasterScaling() {
    Master::Options options;
    options.queue.shards = 8;
    options.queue.epochs = 1;
    options.queue.shuffle = false;
    options.job_name = "job7";
    options.workers = 3;
    master_ = std::make_unique<Master>(options, At(0));
    master_->Start(At(0));
    Collect();
  }
  void Collect() {
    started_.clear();
    drained_.clear();
    for (const Master::Action& action : master_->outbox().TakeActions()) {
      if (action.kind == Master::Action::Kind::kStartWorker) {
        started_.push_back(action.name);
        incarnations_[action.name] = action.incarnation;
      } else if (action.kind == Master::Action::Kind::kDrainWorker) {
        drained_.push_back(action.name);
      }
    }
    for (const Master::Event& event : master_->outbox().TakeEvents()) {
      ++events_[event.kind];
    }
  }
  Result<MasterLink::Answer> Take(const std::string& name, const std::vector<TaskId>& held = {}) {
    return master_->Take(incarnations_.at(name), true, held, At(1));
  }

  std::unique_ptr<Master> master_;
  std::map<std::string, Incarnation> incarnations_;
  std::vector<std::string> started_, drained_;
  std::map<std::string, int> events_;
};

TEST_F(MasterScaling, GrowsByTheDifference) {
  EXPECT_EQ(started_.size(), 3U);
  master_->Scale(5, At(1));
  Collect();
  EXPECT_THAT(started_, ElementsAre("job7-worker-4", "job7-worker-5"));
  master_->Scale(5, At(1));
  Collect();
  EXPECT_THAT(started_, IsEmpty());
}

TEST_F(MasterScaling, AGrantThatComesBeforeTheStartCounts) {
  Master::Options options;
  options.queue.shards = 8;
  options.queue.epochs = 1;
  options.workers = 3;
  Master master(options, At(0));
  master.Scale(2, At(0));
  EXPECT_THAT(master.outbox().TakeActions(), IsEmpty());
  master.Start(At(0));
  EXPECT_EQ(master.outbox().TakeActions().size(), 2U);
}

TEST_F(MasterScaling, K16_DrainedWorkersGetNoTasksAndAreNotReplaced) {
  const Task kept = Take("job7-worker-1")->task;
  const Task task = Take("job7-worker-2")->task;
  master_->Scale(1, At(2));
  Collect();
  // Workers that have not joined, then the youngest.
  EXPECT_THAT(drained_, ElementsAre("job7-worker-3", "job7-worker-2"));
  EXPECT_EQ(Take("job7-worker-2")->kind, MasterLink::Answer::Kind::kNothing);
  ASSERT_TRUE(master_->Leave(incarnations_.at("job7-worker-2"), At(2))
                  .ok());  // its task goes back to the front
  EXPECT_EQ(Take("job7-worker-1", {kept.id})->task.shard, task.shard);
  master_->OnExit("job7-worker-2", ExitClass::kPreempted, "", At(3));
  master_->OnExit("job7-worker-3", ExitClass::kPreempted, "", At(3));
  Collect();
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_EQ(events_["worker_left"], 2);
  EXPECT_EQ(events_["worker_lost"], 0);
  EXPECT_EQ(master_->workers(), 1U);
}

TEST_F(MasterScaling, WithNoWorkerTheJobWaitsAndGoesOn) {
  master_->Scale(0, At(1));
  Collect();
  for (const std::string& name : std::vector<std::string>(drained_)) {
    master_->OnExit(name, ExitClass::kPreempted, "", At(2));
  }
  EXPECT_EQ(master_->workers(), 0U);
  EXPECT_FALSE(master_->finished());
  master_->Scale(2, At(100));
  Collect();
  EXPECT_EQ(started_.size(), 2U);
}

TEST_F(MasterScaling, ALostWorkerIsReplacedWithinTheGrantOnly) {
  master_->Scale(2, At(1));
  Collect();
  ASSERT_THAT(drained_, ElementsAre("job7-worker-3"));
  // A worker that does not leave is killed: there are two again, not three.
  master_->OnExit("job7-worker-1", ExitClass::kPreempted, "", At(2));
  Collect();
  EXPECT_EQ(started_.size(), 1U);
  master_->OnExit("job7-worker-3", ExitClass::kPreempted, "", At(3));
  Collect();
  EXPECT_THAT(started_, IsEmpty());
}

// A worker that is killed while others wait for their restart does not add to them.
TEST_F(MasterScaling, ShrinkingTakesBackStartsThatWait) {
  for (int i = 1; i <= 12; ++i) {
    master_->OnExit("job7-worker-" + std::to_string(i), ExitClass::kPreempted, "", At(1));
    Collect();
  }
  master_->Scale(0, At(1));
  Collect();
  for (const std::string& name : std::vector<std::string>(drained_)) {
    master_->OnExit(name, ExitClass::kPreempted, "", At(1));
  }
  master_->Tick(At(60));
  Collect();
  EXPECT_THAT(started_, IsEmpty());
  EXPECT_EQ(master_->workers(), 0U);
}

}  // namespace
}  // namespace sluice::elastic
