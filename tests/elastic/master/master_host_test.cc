#include "elastic/master/master_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "tests/elastic/master/memory_journal.h"
#include "tests/elastic/queue/queue_steps.h"
#include "tests/support/eventually.h"

namespace sluice::elastic {
namespace {

class MasterHostTest : public ::testing::Test {
 protected:
  MasterHostTest() {
    options_.queue = QueueOf(3);
    options_.queue.journal = true;
    options_.workers = 1;
  }
  std::unique_ptr<MasterHost> Host(Master master, JournalTerm term) {
    return std::make_unique<MasterHost>(
        std::move(master), &journal_, term,
        [this](const Master::Action& action) {
          actions_.push_back(action);
          return Status();
        },
        progress_, events_);
  }
  static void Start(MasterHost& host) {
    host.With([](Master& master, TimePoint now) { master.Start(now); });
  }
  static void Report(MasterHost& host, Incarnation worker, const TaskReport& report) {
    const Result<LeaseStatus> lease = host.With(
        [&](Master& master, TimePoint now) { return master.Report(worker, report, now); });
    EXPECT_TRUE(lease.ok()) << lease.status().ToString();
  }
  Master::Options options_;
  MemoryJournal journal_;
  ProgressCallback progress_;
  EventCallback events_;
  std::vector<Master::Action> actions_;
};

TEST_F(MasterHostTest, ASecondOneGoesOnAndTheFirstStops) {
  const auto first = Host(Master(options_, kTimeZero), *journal_.BeginTerm());
  Start(*first);
  first->Pump();
  ASSERT_EQ(actions_.size(), 1U);
  const Incarnation worker = actions_[0].incarnation;
  const Task task = first->Take(worker, true, {}, 0)->task;
  Report(*first, worker, Done(task, 2, 20));
  ASSERT_TRUE(first->Save().ok());

  const JournalTerm term = *journal_.BeginTerm();
  Result<std::unique_ptr<Master>> taken =
      Master::TakeOver(options_, Term(2), *journal_.ReadAll(), {actions_[0].name}, kTimeZero);
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  const auto second = Host(std::move(**taken), term);
  ASSERT_TRUE(first->Take(worker, true, {}, 0).ok());
  EXPECT_FALSE(first->Save().ok());
  EXPECT_TRUE(first->finished()) << "its journal belongs to the second one";
  EXPECT_EQ(first->result().code(), Code::kAborted);
  for (int i = 0; i < 2; ++i) {
    const Task rest = second->Take(worker, true, {}, 0)->task;
    EXPECT_NE(rest.shard, task.shard) << "what is done stays done";
    Report(*second, worker, Done(rest, 2, 20));
  }
  second->Pump();
  EXPECT_TRUE(second->finished());
  EXPECT_TRUE(second->result().ok()) << second->result().ToString();
  EXPECT_EQ(second->With([](Master& master, TimePoint) { return master.Outcome().rows_trained; }),
            60);
  EXPECT_EQ(actions_.size(), 1U) << "the living worker is not replaced";
}

// Otherwise a successor would evaluate the last epoch with parameters that the next one has
// changed.
TEST_F(MasterHostTest, E6_AnEpochHasBegunInTheJournalBeforeAWorkerHearsOfIt) {
  options_.queue.epochs = 2;
  const auto host = Host(Master(options_, kTimeZero), *journal_.BeginTerm());
  Start(*host);
  host->Pump();
  const Incarnation worker = actions_.at(0).incarnation;
  Task task;
  while ((task = host->Take(worker, true, {}, 0)->task).epoch == Epoch(1)) {
    Report(*host, worker, Done(task, 2, 20));
  }
  ASSERT_EQ(task.epoch, Epoch(2));
  const Result<std::unique_ptr<Master>> successor =
      Master::TakeOver(options_, Term(2), *journal_.ReadAll(), {actions_[0].name}, kTimeZero);
  ASSERT_TRUE(successor.ok()) << successor.status().ToString();
  EXPECT_EQ((*successor)->queue().epoch(), Epoch(2));
}

TEST_F(MasterHostTest, NothingIsDoneThatIsNotInTheJournal) {
  const auto host = Host(Master(options_, kTimeZero), *journal_.BeginTerm());
  ASSERT_TRUE(journal_.BeginTerm().ok());
  Start(*host);
  host->Pump();
  EXPECT_TRUE(actions_.empty());
  EXPECT_TRUE(host->finished());
}

// A journal whose database does not answer until it is released.
class StalledJournal final : public JournalStore {
 public:
  Result<JournalTerm> BeginTerm() override { return JournalTerm::First(); }
  Status Append(JournalTerm, const std::vector<std::string>&, bool) override {
    appending.set_value();
    go.get_future().wait();
    return Status();
  }
  Result<std::vector<std::string>> ReadAll() override { return std::vector<std::string>(); }
  std::promise<void> appending, go;
};

TEST_F(MasterHostTest, AnActionWaitsUntilAnotherThreadHasWritten) {
  options_.journal_seconds = 0.05;
  StalledJournal journal;
  MasterHost host(
      Master(options_, kTimeZero), &journal, JournalTerm::First(),
      [this](const Master::Action& action) {
        actions_.push_back(action);
        return Status();
      },
      progress_, events_);
  Start(host);
  std::jthread writer([&host] { EXPECT_TRUE(host.Save().ok()); });
  journal.appending.get_future().wait();
  host.Pump();  // gives up waiting for the writer
  EXPECT_TRUE(actions_.empty());
  journal.go.set_value();
  writer.join();
  host.Pump();
  ASSERT_EQ(actions_.size(), 1U);
  EXPECT_EQ(actions_[0].kind, Master::Action::Kind::kStartWorker);
}

class StalledJournalTest : public MasterHostTest {
 protected:
  void Run(StalledJournal* journal) {
    host_ = std::make_unique<MasterHost>(
        Master(options_, kTimeZero), journal, JournalTerm::First(),
        [this](const Master::Action& action) {
          actions_.push_back(action);
          return Status();
        },
        progress_, events_);
    worker_ = Expect("w");
    task_ = host_->Take(worker_, true, {}, 0)->task;
    runs_ = std::jthread([this] { host_->Run({}); });
    journal->appending.get_future().wait();
  }
  Incarnation Expect(const std::string& name) {
    return host_->With([&](Master& master, TimePoint now) { return master.Expect(name, now); });
  }
  std::unique_ptr<MasterHost> host_;
  Incarnation worker_;
  Task task_;
  std::jthread runs_;
};

TEST_F(StalledJournalTest, WhoLivesIsJudgedWhileTheJournalIsNotWritten) {
  options_.silence_seconds = 0.2;
  std::atomic<bool> told = false;
  events_.on_event = [&told](const std::string& kind, const std::string&) {
    told = told || kind == "worker_lost";
  };
  StalledJournal journal;
  Run(&journal);
  // Another worker gets the task of the silent one.
  const Incarnation other = Expect("other");
  std::vector<TaskId> held;
  EXPECT_TRUE(Eventually([&] {
    const Result<MasterLink::Answer> answer = host_->Take(other, true, held, 0);
    if (!answer.ok() || answer->kind != MasterLink::Answer::Kind::kTask) {
      return false;
    }
    held.push_back(answer->task.id);
    return answer->task.shard == task_.shard;
  }));
  EXPECT_TRUE(Eventually([&] { return told.load(); }));
  EXPECT_TRUE(actions_.empty()) << "nothing is done that is not in the journal";
  EXPECT_FALSE(host_->finished());
  host_->With([](Master& master, TimePoint) { master.Abort(Cancelled("enough")); });
  journal.go.set_value();
  runs_.join();
}

TEST_F(StalledJournalTest, OneThatIsNeverWrittenEndsTheJobWithAClearError) {
  options_.journal_seconds = 0.2;
  StalledJournal journal;
  Run(&journal);
  EXPECT_TRUE(Eventually([&] { return host_->finished(); }));
  EXPECT_EQ(host_->result().code(), Code::kUnavailable);
  EXPECT_EQ(host_->Save().code(), Code::kUnavailable) << "nobody waits for it";
  journal.go.set_value();
  runs_.join();
  EXPECT_EQ(host_->result().code(), Code::kUnavailable);
  EXPECT_TRUE(actions_.empty());
}

}  // namespace
}  // namespace sluice::elastic
