#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <mutex>
#include <thread>

#include "elastic/job/fleet_job.h"
#include "executor/local/job_cluster_link.h"
#include "executor/local/job_cluster_server.h"
#include "executor/local/job_work_queue.h"

// The messages between a gateway and the master of one of its jobs, over a real socket.
namespace sluice::executor {
namespace {

using elastic::FleetEvent;
using elastic::ProcessSpec;
using ::testing::ElementsAre;

FleetEvent Started(const std::string& name) {
  FleetEvent event;
  event.name = name;
  return event;
}
FleetEvent Exited(const std::string& name) {
  FleetEvent event = Started(name);
  event.kind = FleetEvent::Kind::kExited;
  return event;
}
ProcessSpec Worker(const std::string& name) {
  ProcessSpec spec;
  spec.name = name;
  return spec;
}

// Does what the test sets.
class FakeCluster final : public JobCluster {
 public:
  Status Launch(elastic::Term, const ProcessSpec& spec) override { return on_launch(spec); }
  Status Stop(elastic::Term, const std::string& name, double grace_seconds) override {
    return on_stop(name, grace_seconds);
  }
  Status Finish(elastic::Term term, const Result<std::string>& answer) override {
    return on_finish(term, answer);
  }
  void Report(elastic::Term, const elastic::Progress& progress) override { on_progress(progress); }
  void Notice(elastic::Term, const std::string& text) override { on_notice(text); }

  std::function<Status(const ProcessSpec&)> on_launch = [](const ProcessSpec&) { return Status(); };
  std::function<Status(const std::string&, double)> on_stop = [](const std::string&, double) {
    return Status();
  };
  std::function<Status(elastic::Term, const Result<std::string>&)> on_finish =
      [](elastic::Term, const Result<std::string>&) { return Status(); };
  std::function<void(const elastic::Progress&)> on_progress = [](const elastic::Progress&) {};
  std::function<void(const std::string&)> on_notice = [](const std::string&) {};
};

class JobClusterTest : public ::testing::Test {
 protected:
  JobClusterTest() : endpoint_("job1") {
    endpoint_.key = elastic::MakeJobToken().value();
    address_ = "unix-abstract:sluice-test-" + elastic::MakeJobToken().value();
    server_ = JobClusterServer::Start(address_, endpoint_.key.token, cluster_).value();
    server_->BeginTerm(elastic::Term(1));
  }

  std::unique_ptr<JobClusterLink> Connect() {
    auto link = JobClusterLink::Connect(address_, endpoint_);
    return link;
  }
  void Watch(JobClusterLink& link) {
    link.Watch([this](const FleetEvent& event) {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
      changed_.notify_all();
    });
  }
  std::vector<std::string> WaitForEvents(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return events_.size() >= count; });
    std::vector<std::string> names;
    for (const FleetEvent& event : events_) {
      names.push_back((event.kind == FleetEvent::Kind::kExited ? "-" : "+") + event.name);
    }
    return names;
  }

  elastic::JobEndpoint endpoint_;
  std::string address_;
  FakeCluster cluster_;
  std::unique_ptr<JobClusterServer> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FleetEvent> events_;
};

TEST_F(JobClusterTest, ALaunchIsAnsweredWithWhatCameOfIt) {
  ProcessSpec seen;
  cluster_.on_launch = [&](const ProcessSpec& spec) {
    seen = spec;
    return spec.name == "good" ? Status() : ResourceExhausted("no memory").Hint("use less of it");
  };
  const auto link = Connect();
  ProcessSpec spec = Worker("good");
  spec.role = elastic::Role::kParameterServer;
  spec.config = std::string("\0\xff config", 9);
  spec.secret = "s3cr3t";
  spec.resources = {2.5, 7};
  spec.priority = -3;
  spec.incarnation = elastic::Incarnation(1ULL << 40);
  spec.server_index = elastic::ServerId(9);
  EXPECT_TRUE(link->Launch(spec).ok());
  EXPECT_EQ(seen.role, spec.role);
  EXPECT_EQ(seen.config, spec.config);
  EXPECT_EQ(seen.secret, spec.secret);
  EXPECT_EQ(seen.resources.cpu, 2.5);
  EXPECT_EQ(seen.resources.memory_bytes, 7);
  EXPECT_EQ(seen.priority, -3);
  EXPECT_EQ(seen.incarnation, spec.incarnation);
  EXPECT_EQ(seen.server_index, elastic::ServerId(9));
  const Status refused = link->Launch(Worker("bad"));
  EXPECT_EQ(refused.ToString(), ResourceExhausted("no memory").Hint("use less of it").ToString());
  EXPECT_EQ(refused.diagnostics()[0].hint, "use less of it");
}

// The job continues: its master repeats the request.
TEST_F(JobClusterTest, AGatewayThatDoesNotAnswerIsUnavailableAndStopsWhatItStartsTooLate) {
  std::promise<void> go, stopped;
  cluster_.on_launch = [&](const ProcessSpec&) {
    go.get_future().wait();
    return Status();
  };
  cluster_.on_stop = [&](const std::string& name, double) {
    EXPECT_EQ(name, "late");
    stopped.set_value();
    return Status();
  };
  const auto link = JobClusterLink::Connect(address_, endpoint_, std::chrono::milliseconds(500));
  EXPECT_EQ(link->Launch(Worker("late")).code(), Code::kUnavailable);
  stopped.get_future().wait();
  go.set_value();
}

TEST_F(JobClusterTest, OnlyItsOwnProcessesAreStopped) {
  std::string stopped;
  double grace = 0;
  cluster_.on_stop = [&](const std::string& name, double seconds) {
    stopped = name;
    grace = seconds;
    return Status();
  };
  const auto link = Connect();
  EXPECT_EQ(link->Stop("w", 1).code(), Code::kNotFound);
  ASSERT_TRUE(link->Launch(Worker("w")).ok());
  EXPECT_TRUE(link->Stop("w", 1.5).ok());
  EXPECT_EQ(stopped, "w");
  EXPECT_EQ(grace, 1.5);
}

TEST_F(JobClusterTest, EventsFromBeforeTheWatchAreNotLost) {
  server_->Report(Started("a"));  // before there is a master
  const auto link = Connect();
  server_->Report(Exited("a"));
  Watch(*link);
  server_->Report(Started("b"));
  EXPECT_THAT(WaitForEvents(3), ElementsAre("+a", "-a", "+b"));
}

TEST_F(JobClusterTest, EventsArriveAsTheyAre) {
  const auto link = Connect();
  Watch(*link);
  FleetEvent event = Exited("w");
  event.role = elastic::Role::kParameterServer;
  event.exit_code = 137;
  event.exit_class = elastic::ExitClass::kPreempted;
  event.message = "last words\xff";
  server_->Report(event);
  FleetEvent grant;
  grant.kind = FleetEvent::Kind::kGranted;
  grant.workers = 5;
  server_->Report(grant);
  WaitForEvents(2);
  EXPECT_EQ(events_[0].role, event.role);
  EXPECT_EQ(events_[0].exit_code, 137);
  EXPECT_EQ(events_[0].exit_class, event.exit_class);
  EXPECT_EQ(events_[0].message, event.message);
  EXPECT_EQ(events_[1].kind, FleetEvent::Kind::kGranted);
  EXPECT_EQ(events_[1].workers, 5U);
}

// A process's whole life may be reported before the answer to its launch.
TEST_F(JobClusterTest, AProcessMayEndBeforeItsLaunchIsAnswered) {
  cluster_.on_launch = [&](const ProcessSpec& spec) {
    server_->Report(Started(spec.name));
    server_->Report(Exited(spec.name));
    EXPECT_THAT(WaitForEvents(2), ElementsAre("+w", "-w"));
    return Status();
  };
  const auto link = Connect();
  Watch(*link);
  EXPECT_TRUE(link->Launch(Worker("w")).ok());
  EXPECT_EQ(link->Stop("w", 1).code(), Code::kNotFound) << "it has ended";
}

TEST_F(JobClusterTest, AnEarlierMasterIsRefused) {
  bool asked = false;
  cluster_.on_launch = [&](const ProcessSpec&) {
    asked = true;
    return Status();
  };
  cluster_.on_finish = [&](elastic::Term, const Result<std::string>&) {
    asked = true;
    return Status();
  };
  const auto first = Connect();
  server_->BeginTerm(elastic::Term(2));
  EXPECT_EQ(first->Launch(Worker("w")).code(), Code::kAborted);
  EXPECT_EQ(first->Finish({Cancelled("stopped")}).code(), Code::kAborted);
  EXPECT_FALSE(asked);
}

TEST_F(JobClusterTest, TheNextMasterHearsWhatHappensFromItsBeginningOn) {
  const auto first = Connect();
  Watch(*first);
  server_->Report(Started("a"));
  WaitForEvents(1);
  server_->BeginTerm(elastic::Term(2));
  server_->Report(Exited("a"));
  endpoint_.term = elastic::Term(2);
  endpoint_.running.push_back({elastic::Role::kWorker, "a", elastic::Incarnation(1), {}});
  const auto second = Connect();
  Watch(*second);
  EXPECT_THAT(WaitForEvents(2), ElementsAre("+a", "-a"));
}

TEST_F(JobClusterTest, AStrangerIsRefused) {
  endpoint_.key = "guessed";
  const auto link = Connect();
  EXPECT_EQ(link->Launch(Worker("w")).code(), Code::kPermissionDenied);
  EXPECT_EQ(link->Finish({Cancelled("stopped")}).code(), Code::kPermissionDenied);
}

TEST_F(JobClusterTest, WithTheGatewayItsProcessesAreGone) {
  endpoint_.running.push_back(
      {elastic::Role::kParameterServer, "server", elastic::kNoIncarnation, {}});
  const auto link = Connect();
  Watch(*link);
  ASSERT_TRUE(link->Launch(Worker("worker")).ok());
  server_.reset();
  EXPECT_THAT(WaitForEvents(2), ::testing::UnorderedElementsAre("-server", "-worker"));
  EXPECT_EQ(events_[0].exit_class, elastic::ExitClass::kPreempted);
  EXPECT_EQ(link->Launch(Worker("next")).code(), Code::kUnavailable);
  EXPECT_EQ(link->Finish({Cancelled("stopped")}).code(), Code::kUnavailable);
}

TEST_F(JobClusterTest, AReportWaitsForNobody) {
  std::promise<void> go_on;
  std::shared_future<void> may_go_on = go_on.get_future().share();
  std::atomic<double> last_loss = 0;
  std::atomic<int> reports = 0, notices = 0;
  cluster_.on_progress = [&](const elastic::Progress& progress) {
    may_go_on.wait();
    last_loss = progress.loss;
    ++reports;
  };
  cluster_.on_notice = [&](const std::string&) { ++notices; };
  constexpr int kReports = 1'000;
  {
    const auto link = Connect();
    for (int i = 1; i <= kReports; ++i) {
      elastic::Progress progress;
      progress.loss = i;
      link->Report(progress);
      link->Notice("line");
    }
    go_on.set_value();
  }
  EXPECT_EQ(last_loss, kReports) << "the newest is never dropped";
  EXPECT_LT(reports, kReports);
  EXPECT_LE(notices, kReports);
  EXPECT_GT(notices, 0);
}

TEST_F(JobClusterTest, TheEndComesAfterEveryReport) {
  std::vector<std::string> heard;
  cluster_.on_notice = [&](const std::string& text) { heard.push_back(text); };
  cluster_.on_finish = [&](elastic::Term, const Result<std::string>& end) {
    heard.push_back(end.status().message());
    return Status();
  };
  const auto link = Connect();
  link->Notice("one \xff");
  link->Notice("two");
  EXPECT_TRUE(link->Finish(Cancelled("over")).ok());
  EXPECT_THAT(heard, ElementsAre("one \xff", "two", "over"));
}

TEST_F(JobClusterTest, TheEndArrivesAsItIs) {
  Result<std::string> heard = std::string();
  cluster_.on_finish = [&](elastic::Term, const Result<std::string>& end) {
    heard = end;
    return Status();
  };
  const Status failed = InvalidArgument("no column 'clss\xff'").At({7, 11}).Hint("class?");
  ASSERT_TRUE(Connect()->Finish(failed).ok());
  ASSERT_FALSE(heard.ok());
  EXPECT_EQ(heard.status().message(), failed.message());
  EXPECT_EQ(heard.status().diagnostics()[0].span, (Span{7, 11}));
  EXPECT_EQ(heard.status().diagnostics()[0].hint, "class?");

  const std::string answer("rows\0\xff", 6);
  ASSERT_TRUE(Connect()->Finish(answer).ok());
  ASSERT_TRUE(heard.ok());
  EXPECT_EQ(*heard, answer);
}

TEST_F(JobClusterTest, OnlyTheNewestMasterOfAGatewayThatLivesIsWanted) {
  const auto first = Connect();
  EXPECT_TRUE(first->IsWanted());
  server_->BeginTerm(elastic::Term(2));
  EXPECT_FALSE(first->IsWanted());
  endpoint_.term = elastic::Term(2);
  const auto second = Connect();
  EXPECT_TRUE(second->IsWanted());
  server_.reset();
  EXPECT_FALSE(second->IsWanted());
}

TEST(JobWorkQueue, WhoAsksIsAnsweredEvenWhenTheJobIsOver) {
  JobWorkQueue inbox;
  std::promise<Status> answer;
  std::thread asks(
      [&] { answer.set_value(inbox.Ask([] { return Cancelled("what came of it"); })); });
  while (!inbox.DoNext({}, std::chrono::steady_clock::now() + std::chrono::hours(1))) {
  }
  EXPECT_EQ(answer.get_future().get().code(), Code::kCancelled);
  asks.join();
  Status left;
  std::thread asks_late([&] { left = inbox.Ask([] { return Status(); }); });
  inbox.Close();
  asks_late.join();
  EXPECT_EQ(left.code(), Code::kUnavailable);
}

TEST(JobWorkQueue, WhatOnlyPeopleWaitForIsDroppedBeforeAnythingElse) {
  JobWorkQueue inbox;
  int offered = 0, put = 0;
  constexpr int kMany = 10'000;
  for (int i = 0; i < kMany; ++i) {
    inbox.Offer([&] {
      ++offered;
      return Status();
    });
    inbox.Put([&] {
      ++put;
      return Status();
    });
  }
  while (inbox.DoNext({}, std::chrono::steady_clock::now())) {
  }
  EXPECT_EQ(put, kMany);
  EXPECT_GT(offered, 0);
  EXPECT_LT(offered, kMany);
}

}  // namespace
}  // namespace sluice::executor
