// A watch survives every failure, and reports every event once.
#include "k8s/watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "tests/k8s/change_log.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Trouble = FakeApiServer::Trouble;

class WatchTest : public testing::Test {
 protected:
  FakeApiServer& fake() { return server_.fake(); }
  void Start() {
    auto watch = ObjectWatch::Start(server_.client(), {kPods, server_.namespace_name(), "job=7"},
                                    log_.Listener(), {});
    ASSERT_TRUE(watch.ok()) << watch.status().ToString();
    watch_ = *std::move(watch);
  }
  void Create(const std::string& name) {
    server_.Do(Verb::kCreate, kPods, "", "", PodJson(name, R"({"job":"7"})"));
  }
  void Forget(const std::string& name) { server_.Forget(name); }
  // Advances time until the watch has restarted for that reason that often.
  void WaitFor(const std::string& reason, uint64_t times = 1) {
    while (true) {
      const auto restarts = watch_->restarts();
      const auto found = restarts.find(reason);
      if (found != restarts.end() && found->second >= times) {
        return;
      }
      Pass();
    }
  }
  void WaitForLists(int times) {
    while (fake().Asked("list", "pods") < times) {
      Pass();
    }
  }
  void Pass() {
    server_.clock().Advance(milliseconds(50));
    std::this_thread::sleep_for(milliseconds(1));
  }
  // Another event arrives once, and nothing before it was repeated.
  void ExpectAlive(const std::string& name) {
    Create(name);
    while (log_.size() == 0) {
      Pass();
    }
    EXPECT_EQ(log_.Take(1), "+" + name + " ");
  }

  TestedApiServer server_{false};
  ChangeLog log_;
  std::unique_ptr<ObjectWatch> watch_;
};

TEST_F(WatchTest, EventsMayBeCutAnywhere) {
  fake().CutStreams(1);
  Start();
  Create("a");
  Create("b");
  EXPECT_EQ(log_.Take(2), "+a +b ");
}

TEST_F(WatchTest, AStreamThatBreaksGoesOnWhereItWas) {
  for (const Trouble trouble : {Trouble::kBrokenStream, Trouble::kEndedStream, Trouble::kErrorEvent,
                                Trouble::kServerError, Trouble::kTooManyRequests}) {
    fake().Make(trouble, "watch", "pods");
  }
  Start();
  ExpectAlive("a");
  EXPECT_EQ(fake().Asked("list", "pods"), 1) << "nothing was too old";
  const auto restarts = watch_->restarts();
  EXPECT_EQ(restarts.at("unreachable"), 1U);
  EXPECT_EQ(restarts.at("ended"), 1U);
  EXPECT_EQ(restarts.at("server"), 2U);
  EXPECT_EQ(restarts.at("too_many_requests"), 1U);
}

TEST_F(WatchTest, WhatHappenedWhileNobodyLookedIsToldInTheNextStream) {
  Start();
  Create("a");
  EXPECT_EQ(log_.Take(1), "+a ");
  fake().Make(Trouble::kServerError, "watch", "pods");
  fake().EndStreams();
  Create("b");
  Forget("a");
  WaitFor("server");
  while (log_.size() < 2) {
    Pass();
  }
  EXPECT_EQ(log_.Take(2), "+b -a ");
  EXPECT_EQ(fake().Asked("list", "pods"), 1);
}

TEST_F(WatchTest, AVersionThatIsTooOldLeadsToAListInEachOfItsForms) {
  // As an answer, as an event, and for real: forgotten history.
  fake().Make(Trouble::kGone, "watch", "pods");
  fake().Make(Trouble::kGoneEvent, "watch", "pods");
  Start();
  WaitFor("gone", 2);
  ExpectAlive("a");
  fake().Make(Trouble::kServerError, "watch", "pods");
  fake().EndStreams();
  WaitFor("server");
  Create("b");
  Forget("a");
  fake().Compact();
  while (log_.size() < 2) {
    Pass();
  }
  const std::string told = log_.Take(2);
  EXPECT_TRUE(told == "-a +b " || told == "+b -a ") << told;
  ExpectAlive("c");
}

TEST_F(WatchTest, AVersionThatIsTooLargeLeadsToAList) {
  fake().Make(Trouble::kVersionTooLarge, "watch", "pods");
  Start();
  WaitFor("version_too_large");
  ExpectAlive("a");
  EXPECT_GE(fake().Asked("list", "pods"), 2);
}

TEST_F(WatchTest, AListThatIsOlderThanWhatWasSeenIsNotBelieved) {
  Start();
  Create("a");
  EXPECT_EQ(log_.Take(1), "+a ");
  fake().Make(Trouble::kStaleList, "list", "pods", 3);
  fake().Make(Trouble::kGone, "watch", "pods");
  fake().EndStreams();
  WaitForLists(5);
  ExpectAlive("b");
}

TEST_F(WatchTest, NothingForNinetySecondsIsADeadStream) {
  fake().Make(Trouble::kSilentStream, "watch", "pods");
  Start();
  fake().WaitUntilAsked("watch", "pods", 1);
  Create("a");
  WaitFor("silent");
  while (log_.size() == 0) {
    Pass();
  }
  EXPECT_EQ(log_.Take(1), "+a ") << "by the list of each minute, and not once more";
  ExpectAlive("b");
}

TEST_F(WatchTest, EachMinuteAListTellsWhatTheStreamDidNot) {
  fake().Make(Trouble::kSilentStream, "watch", "pods");
  Start();
  fake().WaitUntilAsked("watch", "pods", 1);
  Create("a");
  while (log_.size() == 0) {
    Pass();
  }
  EXPECT_EQ(log_.Take(1), "+a ");
  EXPECT_EQ(watch_->restarts().count("silent"), 0U);
}

TEST_F(WatchTest, ADamagedEventLeadsToAList) {
  fake().Make(Trouble::kDamagedEvent, "watch", "pods");
  Start();
  WaitFor("damaged");
  ExpectAlive("a");
  EXPECT_GE(fake().Asked("list", "pods"), 2);
}

TEST_F(WatchTest, WhatIsToldTwiceIsPassedOnOnce) {
  Start();
  Create("a");
  Create("b");
  Forget("b");
  EXPECT_EQ(log_.Take(3), "+a +b -b ");
  fake().SendEverythingAgain();
  fake().SendBookmarks();
  Create("c");
  EXPECT_EQ(log_.Take(1), "+c ");
}

TEST_F(WatchTest, ABookmarkIsWhereItGoesOn) {
  Start();
  Create("seen");  // the stream is open
  EXPECT_EQ(log_.Take(1), "+seen ");
  // An object of another job: the stream does not report it.
  server_.Do(Verb::kCreate, kPods, "", "", PodJson("x", R"({"job":"8"})"));
  fake().SendBookmarks();
  fake().EndStreams();
  WaitFor("ended");
  while (fake().Asked("watch", "pods") < 2) {
    Pass();
  }
  // Neither the list's version nor that of the one event.
  EXPECT_EQ(fake().Last("watch", "pods", "resourceVersion"), std::to_string(fake().version()));
  ExpectAlive("a");
  EXPECT_EQ(fake().Asked("list", "pods"), 1);
}

TEST_F(WatchTest, ARightThatIsMissingIsTheFirstListsError) {
  fake().Make(Trouble::kForbidden, "list", "pods");
  const auto watch = ObjectWatch::Start(server_.client(), {kPods, server_.namespace_name(), ""},
                                        log_.Listener(), {});
  EXPECT_EQ(watch.status().code(), Code::kPermissionDenied);
}

TEST_F(WatchTest, EndsWhileItsStreamIsSilent) {
  fake().Make(Trouble::kSilentStream, "watch", "pods");
  Start();
  fake().WaitUntilAsked("watch", "pods", 1);
  watch_.reset();
}

}  // namespace
}  // namespace sluice::k8s
