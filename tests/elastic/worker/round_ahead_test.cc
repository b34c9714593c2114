#include "elastic/worker/round_ahead.h"

#include <gtest/gtest.h>

#include "catalog/dataset.pb.h"
#include "elastic/job/direct_links.h"
#include "elastic/parameters/lane_tree.h"
#include "elastic/queue/task_queue.h"
#include "elastic/worker/worker_tasks_internal.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kRowsOfShard = 1000, kShardsOfEpoch = 10;
constexpr uint32_t kLanesOfRound = 4;  // the third round of an epoch has two
constexpr int64_t kRowsOfEpoch = kShardsOfEpoch * kRowsOfShard;

class UnusedMaster final : public MasterLink {
 public:
  Result<Answer> Take(bool) override { return Answer{Answer::Kind::kFinished, {}}; }
  Result<LeaseStatus> Report(const TaskReport&) override { return LeaseStatus{.mine = true}; }
  Result<bool> MayBegin(int64_t) override { return true; }
  Status Fail(const Task& task, const Status&) override {
    failed.push_back(task.id);
    return Status();
  }
  void Abandon(TaskId) override {}
  void Leave() override {}

  std::vector<TaskId> failed;
};

class RoundAheadTest : public ::testing::Test {
 protected:
  RoundAheadTest() {
    plan_.mutable_split()->set_kind(plan::Split::NONE);
    plan_.set_seed(5);
    plan_.set_shuffle(true);
    plan_.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
    plan_.mutable_strategy()->set_micro_batches(kLanesOfRound);
    tasks_ = WorkerTasks::Make({plan_, *source_, spec_}, master_, &parameters_).value();
    ahead_.emplace(*tasks_);
    QueueOptions options;
    options.shards = kShardsOfEpoch;
    options.lanes = kLanesOfRound;
    options.epochs = 2;
    options.seed = plan_.seed();
    options.shuffle = plan_.shuffle();
    queue_.emplace(options);
  }

  // The open round's lanes are done; those of the next one.
  std::vector<Task> DealRound() {
    std::vector<Task> lanes;
    while (const std::optional<Task> task = queue_->Take(Incarnation(1), now_)) {
      lanes.push_back(*task);
    }
    for (const Task& task : lanes) {
      TaskReport report;
      report.task = task.id;
      report.done = report.end_of_shard = true;
      report.rows = report.rows_read = report.shard_rows = kRowsOfShard;
      report.batches = 1;
      report.next_batch = BatchIndex(1);
      EXPECT_TRUE(queue_->Report(Incarnation(1), report, now_).ok());
    }
    if (queue_->EpochDone() && !queue_->LastEpoch()) {
      queue_->StartNextEpoch();
    }
    return lanes;
  }
  // Those of one member, with their rows.
  std::vector<std::unique_ptr<Lease>> Hold(const std::vector<Task>& lanes, Rank rank,
                                           size_t members) {
    std::vector<std::unique_ptr<Lease>> held;
    const auto [begin, end] = LanesOf(static_cast<uint32_t>(lanes.size()), rank, members);
    for (uint32_t lane = begin; lane < end; ++lane) {
      std::unique_ptr<Lease> lease = ahead_->Take(lanes[lane]).value();
      found_ += lease != nullptr ? 1 : 0;
      if (lease == nullptr) {
        ahead_->Release();
        lease = tasks_->Start(lanes[lane]).value();
        while (!tasks_->Read(lease.get(), WorkerTasks::kLoadRows).value()) {
        }
      }
      EXPECT_EQ(lease->task.id, lanes[lane].id);
      EXPECT_EQ(lease->report.task, lanes[lane].id);
      EXPECT_EQ(lease->rows->train.rows, static_cast<size_t>(kRowsOfShard));
      EXPECT_EQ(lease->order.size(), static_cast<size_t>(kRowsOfShard));
      held.push_back(std::move(lease));
    }
    ahead_->Expect(held, rank, members);
    return held;
  }
  void ReadAll() {
    for (int i = 0; i < 2 * kShardsOfEpoch; ++i) {
      ahead_->Read(static_cast<size_t>(kRowsOfEpoch));
    }
  }

  plan::TrainPlan plan_ = SmallPlan(1, 400);
  std::unique_ptr<testing::MemorySource> source_ = SmallSource(kShardsOfEpoch * kRowsOfShard);
  const catalog::DatasetSpec spec_ = source_->Spec(kRowsOfShard);
  UnusedMaster master_;
  std::unique_ptr<models::Network> network_ = models::Network::Make(plan_.model()).value();
  std::unique_ptr<ParameterShard> shard_ =
      ParameterShard::Make(plan_.model(), *network_, {}, nullptr).value();
  DirectParameterLink parameters_{*shard_, *network_};
  std::unique_ptr<WorkerTasks> tasks_;
  std::optional<RoundAhead> ahead_;
  std::optional<TaskQueue> queue_;
  TimePoint now_{};
  int found_ = 0;  // lanes that had been read before they were dealt
};

TEST_F(RoundAheadTest, TheNextRoundIsThereWhenItIsDealt) {
  for (const Rank rank : {Rank(0), Rank(1)}) {
    found_ = 0;
    auto held = Hold(DealRound(), rank, 2);
    EXPECT_EQ(held.size(), 2U);
    EXPECT_EQ(found_, 0);
    ReadAll();
    held = Hold(DealRound(), rank, 2);
    EXPECT_EQ(found_, 2);
    ReadAll();
    held = Hold(DealRound(), rank, 2);  // the epoch's last shards
    EXPECT_EQ(held.size(), 1U);
    EXPECT_EQ(found_, 3);
    ReadAll();  // there is nothing left
  }
  EXPECT_EQ(source_->rows_read(), kRowsOfEpoch);
}

TEST_F(RoundAheadTest, AMemberThatLeavesCostsWhatWasReadForItsOldLanes) {
  auto held = Hold(DealRound(), Rank(1), 2);
  ReadAll();
  held = Hold(DealRound(), Rank(0), 1);  // all lanes are this worker's now: two of them are there
  EXPECT_EQ(held.size(), kLanesOfRound);
  EXPECT_EQ(found_, 2);
}

TEST_F(RoundAheadTest, ALaneThatIsReadInPartIsFinishedOrDropped) {
  auto held = Hold(DealRound(), Rank(0), 2);
  ahead_->Read(WorkerTasks::kLeastRows);
  held = Hold(DealRound(), Rank(0), 2);
  EXPECT_EQ(found_, 1);
  ahead_->Read(WorkerTasks::kLeastRows);
  ahead_->Release();
  found_ = 0;
  held = Hold(DealRound(), Rank(0), 2);
  EXPECT_EQ(found_, 0);
}

TEST_F(RoundAheadTest, ReadsAsMuchAsIsTrained) {
  const auto held = Hold(DealRound(), Rank(0), 2);
  const int64_t read_before = source_->rows_read();
  for (int i = 0; i < 3; ++i) {
    ahead_->Read(40);
  }
  EXPECT_EQ(source_->rows_read(), read_before);  // not worth a read
  for (int i = 0; i < 10; ++i) {
    ahead_->Read(40);
  }
  const int64_t read = source_->rows_read() - read_before;
  EXPECT_GE(read, static_cast<int64_t>(WorkerTasks::kLeastRows));
  EXPECT_LE(read, kRowsOfShard);
}

// The lanes that this worker holds are not charged for what it reads ahead.
TEST_F(RoundAheadTest, AnErrorIsToldWhenItsShardIsDealt) {
  auto held = Hold(DealRound(), Rank(0), 2);
  const std::vector<Task> next = tasks_->LanesAfter(held[0]->task, Rank(0), 2);
  const int64_t begin = spec_.shards(static_cast<int>(next[0].shard.value())).begin();
  source_->FailReads(begin, 1, InvalidArgument("damaged"));
  ReadAll();
  EXPECT_TRUE(master_.failed.empty());
  const std::vector<Task> lanes = DealRound();
  source_->FailReads(begin, 1, InvalidArgument("damaged"));
  EXPECT_EQ(ahead_->Take(lanes[0]).value(), nullptr);
  const auto lease = tasks_->Start(lanes[0]).value();
  EXPECT_EQ(tasks_->Read(lease.get(), WorkerTasks::kLoadRows).status().message(), "damaged");
  EXPECT_EQ(master_.failed, std::vector{lanes[0].id});
}

TEST_F(RoundAheadTest, AnErrorOfALaneThatIsReadInPartIsItsOwn) {
  auto held = Hold(DealRound(), Rank(0), 2);
  ahead_->Read(WorkerTasks::kLeastRows);
  const std::vector<Task> lanes = DealRound();
  std::stop_source stop;
  tasks_->HearStop(stop.get_token());
  stop.request_stop();
  EXPECT_EQ(ahead_->Take(lanes[0]).status().code(), Code::kCancelled);
  EXPECT_TRUE(master_.failed.empty());  // it goes back
}

TEST_F(RoundAheadTest, AWorkerThatIsStoppedReadsNothing) {
  const auto held = Hold(DealRound(), Rank(0), 2);
  const int64_t read_before = source_->rows_read();
  std::stop_source stop;
  tasks_->HearStop(stop.get_token());
  stop.request_stop();
  ReadAll();
  EXPECT_EQ(source_->rows_read(), read_before);
}

}  // namespace
}  // namespace sluice::elastic
