#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "elastic/master/journal.pb.h"
#include "elastic/master/master.h"
#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

// A random history of a queue: workers take, report, die, fall silent, race and steal.
class RandomQueue {
 public:
  explicit RandomQueue(uint64_t seed) : random_(seed) {
    options_ = QueueOf(static_cast<int64_t>(1 + random_() % 8), 3);
    options_.shuffle = true;
    options_.seed = seed;
    options_.lanes = random_() % 4 == 0 ? 2 : 0;
    options_.max_batches = random_() % 4 == 0 ? static_cast<int64_t>(5 + random_() % 40) : 0;
    options_.batches_per_task = 3;
    options_.journal = true;
    queue_.emplace(options_);
  }
  void Step() {
    now_ += 0.4;
    const Incarnation worker(1 + random_() % 4);
    std::map<TaskId, std::pair<Task, BatchIndex>>& held = held_[worker];
    switch (random_() % 12) {
      case 0:
        queue_->ReleaseAll(worker);
        held.clear();
        return;
      case 1:
        now_ += 11;
        queue_->ExpireLeases(At(now_));
        return;
      case 2:
        queue_->ChargeFailure(
            worker,
            ShardId(static_cast<int64_t>(random_() % static_cast<uint64_t>(options_.shards))));
        return;
      case 3:
        if (options_.lanes == 0 && options_.max_batches == 0 && random_() % 8 == 0 &&
            !queue_->state().waiting().empty()) {
          queue_->Skip(queue_->state().ShardAt(queue_->state().waiting().begin()->position),
                       At(now_));
        }
        return;
      default:
        break;
    }
    if (queue_->EpochDone() && !queue_->LastEpoch() && !queue_->BudgetSpent()) {
      queue_->StartNextEpoch();
    }
    if (held.empty() || random_() % 4 == 0) {
      std::optional<Task> task = queue_->Take(worker, At(now_));
      if (!task.has_value()) {
        task = queue_->Steal(worker, At(now_));
      }
      if (task.has_value()) {
        held[task->id] = {*task, task->first_batch};
      }
      return;
    }
    auto& [task, next] = held.begin()->second;
    constexpr int64_t kBatches = 12;
    next = std::min(
        {next + 1 + static_cast<int64_t>(random_() % 4), EndOf(kBatches), task.last_batch});
    const Result<TaskQueue::Answer> answer =
        queue_->Report(worker, Trained(task, next.value(), kBatches), At(now_));
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    if (*answer == TaskQueue::Answer::kCut) {
      task.last_batch = queue_->LastBatch(task.id);
      next = task.last_batch;
    } else if (*answer == TaskQueue::Answer::kRejected ||
               next >= std::min(EndOf(kBatches), task.last_batch)) {
      held.erase(held.begin());
    }
  }
  TaskQueue& queue() { return *queue_; }
  const TaskQueue::Options& options() const { return options_; }

 private:
  std::mt19937_64 random_;
  TaskQueue::Options options_;
  std::optional<TaskQueue> queue_;
  std::map<Incarnation, std::map<TaskId, std::pair<Task, BatchIndex>>> held_;
  double now_ = 0;
};

TEST(Journal, ReplayingItIsTheStateAtEveryPoint) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomQueue live(seed);
    TaskQueue replayed(live.options());
    for (int step = 0; step < 150; ++step) {
      live.Step();
      for (const QueueRecord& record : live.queue().TakeJournal()) {
        ASSERT_TRUE(replayed.Replay(record, kTimeZero).ok()) << "seed " << seed << " step " << step;
      }
      const QueueSave saved = Save(replayed);
      ASSERT_EQ(saved.SerializeAsString(), Save(live.queue()).SerializeAsString())
          << "seed " << seed << " step " << step;
      if (step % 16 == 0) {
        Result<QueueState> state = QueueCodec::Read(live.options(), saved, kTimeZero);
        ASSERT_TRUE(state.ok());
        replayed = TaskQueue(*std::move(state));
        ASSERT_EQ(Save(replayed).SerializeAsString(), saved.SerializeAsString());
        ASSERT_EQ(replayed.ready(), live.queue().ready());
      }
    }
  }
}

TEST(Journal, OneOfAnotherJobOrDamagedIsRefused) {
  Master::Options options;
  options.queue = QueueOf(4);
  options.queue.journal = true;
  Master master(options, kTimeZero);
  master.Start(kTimeZero);
  const std::string entry = master.TakeJournal().value();
  EXPECT_TRUE(Master::TakeOver(options, Term(2), {entry}, {}, kTimeZero).ok());
  EXPECT_FALSE(Master::TakeOver(options, Term(2), {"no entry"}, {}, kTimeZero).ok());
  options.queue.shards = 5;
  EXPECT_FALSE(Master::TakeOver(options, Term(2), {entry}, {}, kTimeZero).ok());
}

// No sequence of transitions leads to these states: a queue restored from one would be
// inconsistent.
TEST(Journal, ASaveThatCannotBeIsRefused) {
  RandomQueue live(3);
  for (int step = 0; step < 40; ++step) {
    live.Step();
  }
  const QueueSave good = Save(live.queue());
  ASSERT_GT(good.ranges_size(), 0);
  const std::vector<std::function<void(QueueSave*)>> damages = {
      [](QueueSave* save) { save->set_epoch(0); },
      [](QueueSave* save) { save->set_epoch(4'000'000'000U); },
      [](QueueSave* save) { save->set_cursor(-1); },
      [](QueueSave* save) { save->set_cursor(save->cursor() + 1); },
      [](QueueSave* save) { save->set_done(save->done() + 1); },
      [](QueueSave* save) { save->set_next_task(0); },
      [](QueueSave* save) { save->set_term(int64_t{1} << 50); },
      [](QueueSave* save) { *save->add_ranges() = save->ranges(0); },
      [](QueueSave* save) { save->mutable_ranges(0)->set_position(-1); },
      [](QueueSave* save) { save->mutable_ranges(0)->set_next(-5); },
      [](QueueSave* save) { save->mutable_ranges(0)->set_rows(int64_t{1} << 60); },
      [](QueueSave* save) { save->add_given_up(save->shards()); },
      [](QueueSave* save) { save->add_failures()->set_shard(-1); },
      [](QueueSave* save) { save->add_open_shards()->set_position(save->shards()); },
      [](QueueSave* save) { save->mutable_ledger()->add_rows_per_epoch(1); },
      [](QueueSave* save) { save->mutable_ledger()->add_checksums(1); },
      [](QueueSave* save) { save->add_leases()->mutable_said()->set_task(-1); },
  };
  EXPECT_TRUE(QueueCodec::Read(live.options(), good, kTimeZero).ok());
  for (size_t i = 0; i < damages.size(); ++i) {
    QueueSave bad = good;
    damages[i](&bad);
    EXPECT_FALSE(QueueCodec::Read(live.options(), bad, kTimeZero).ok()) << i;
  }
}

}  // namespace
}  // namespace sluice::elastic
