// A misbehaving server.
#include "k8s/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/lease.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using Trouble = FakeApiServer::Trouble;

class ApiClientTest : public testing::Test {
 protected:
  ApiClient& client() { return server_.client(); }
  FakeApiServer& fake() { return server_.fake(); }
  std::vector<ObjectAnswer> Create(const std::vector<std::string>& names) {
    std::vector<Creation> creations;
    for (const std::string& name : names) {
      creations.push_back({kPods, server_.namespace_name(), PodJson(name, R"({"job":"7"})")});
    }
    return CreateAll(client(), creations, {});
  }
  ApiAnswer ListPods(const std::stop_token& stop = {}) {
    return client().Call({Verb::kList, kPods, server_.namespace_name(), "", "", {}, ""}, stop);
  }
  // Runs the call on a thread of its own and advances the clock until it returns.
  template <typename Call>
  auto WhileTimePasses(Call call, milliseconds step = milliseconds(10)) {
    auto answer = std::async(std::launch::async, call);
    while (answer.wait_for(milliseconds(1)) != std::future_status::ready) {
      server_.clock().Advance(step);
    }
    return answer.get();
  }
  std::string Place() const { return "in namespace '" + server_.namespace_name() + "'"; }

  TestedApiServer server_{false};
};

TEST_F(ApiClientTest, TriesAgainWhatTheServerCouldNotDo) {
  fake().Make(Trouble::kServerError, "list", "pods", 2);
  fake().Make(Trouble::kCloseBefore, "list", "pods", 2);
  EXPECT_TRUE(WhileTimePasses([&] { return ListPods(); }).ok());
  EXPECT_GE(fake().Asked("list", "pods"), 5);
}

TEST_F(ApiClientTest, WhoseObjectItIsMayNotBeAsked) {
  ASSERT_TRUE(Create({"a"}).at(0).ok());
  fake().Make(Trouble::kForbidden, "get", "pods");
  const ObjectAnswer again = Create({"a"}).at(0);
  EXPECT_EQ(again.fault, Fault::kForbidden) << again.status.ToString();
  EXPECT_THAT(again.status.message(), HasSubstr("cannot get pods 'a' " + Place() + ": 403 Forbid"));
}

TEST_F(ApiClientTest, ObeysRetryAfter) {
  fake().Make(Trouble::kTooManyRequests, "list", "pods");
  const TimePoint begin = server_.clock().Now();
  EXPECT_TRUE(WhileTimePasses([&] { return ListPods(); }).ok());
  EXPECT_GE(server_.clock().Now() - begin, seconds(7));
  EXPECT_EQ(fake().Asked("list", "pods"), 2);
}

TEST_F(ApiClientTest, AWaitPastTheDeadlineIsNotBegun) {
  fake().Make(Trouble::kTooManyRequests, "list", "pods");
  ApiClient hasty(client().credentials(), {.deadline_seconds = 5}, server_.clock());
  const ApiAnswer answer =
      hasty.Call({Verb::kList, kPods, server_.namespace_name(), "", "", {}, ""}, {});
  EXPECT_EQ(answer.fault, Fault::kTooManyRequests);
  EXPECT_THAT(answer.status.message(), HasSubstr("cannot list pods " + Place() + ": 429"));
  EXPECT_EQ(fake().Asked("list", "pods"), 1);
}

TEST_F(ApiClientTest, AnAnswerThatNeverComesHasADeadline) {
  fake().Make(Trouble::kSayNothing, "list", "pods");
  const ApiAnswer answer = WhileTimePasses([&] { return ListPods(); }, seconds(1));
  EXPECT_EQ(answer.fault, Fault::kDeadline);
  EXPECT_EQ(answer.status.code(), Code::kDeadlineExceeded);
  EXPECT_EQ(answer.status.message(),
            "cannot list pods " + Place() + ": no answer within 30 seconds");
}

// As behind a proxy that has lost its far end: a master's Lease lapses after eight seconds.
TEST_F(ApiClientTest, ConnectionsThatFallSilentAreGivenUpTogether) {
  ASSERT_TRUE(WhileTimePasses([&] { return Create({"a", "b", "c", "d"}); }).back().ok());
  fake().FallSilent();
  const TimePoint begin = server_.clock().Now();
  const auto made = WhileTimePasses([&] { return Create({"e"}); });
  ASSERT_TRUE(made[0].ok()) << made[0].status.ToString();
  EXPECT_TRUE(WhileTimePasses([&] { return ListPods(); }).ok());
  EXPECT_TRUE(WhileTimePasses([&] { return Create({"f", "g", "h"}); }).back().ok());
  EXPECT_LT(server_.clock().Now() - begin, seconds(8));
}

// The request is sent again after four seconds, as if the far end had not received it.
TEST_F(ApiClientTest, WhatWasDoneBeforeItsAnswerWasOverdueIsDoneOnce) {
  ASSERT_TRUE(WhileTimePasses([&] { return Create({"a"}); })[0].ok());
  fake().Make(Trouble::kKeepAnswer, "create", "pods");
  const auto made = WhileTimePasses([&] { return Create({"b"}); });
  ASSERT_TRUE(made[0].ok()) << made[0].status.ToString();
  EXPECT_EQ(fake().Asked("create", "pods"), 3);
  EXPECT_TRUE(ListPods().ok());
  fake().Make(Trouble::kKeepAnswer, "delete", "pods");
  const std::string uid = made[0].object.uid;
  const auto gone = WhileTimePasses([&] {
    return DeleteAll(client(), {{kPods, server_.namespace_name(), "b", uid}}, {});
  });
  EXPECT_TRUE(gone[0].ok()) << gone[0].status.ToString();
  EXPECT_EQ(fake().Asked("delete", "pods"), 2);
}

// It is renewed, but the answer is overdue, and the second request conflicts with the first.
TEST_F(ApiClientTest, ALeaseIsNotLostToItsOwnHolder) {
  LeaseClaim claim(client(), {server_.namespace_name(), "keeper", "one", 60});
  ASSERT_TRUE(claim.Round({})->ours);
  fake().Make(Trouble::kKeepAnswer, "update", "leases");
  EXPECT_TRUE(WhileTimePasses([&] { return claim.Round({}); })->ours);
  EXPECT_EQ(fake().Asked("update", "leases"), 2);
  EXPECT_TRUE(claim.Held());
}

TEST_F(ApiClientTest, AnAnswerWithoutAnEndIsBrokenOff) {
  fake().Make(Trouble::kEndlessAnswer, "list", "pods");
  const ApiAnswer answer = ListPods();
  EXPECT_EQ(answer.fault, Fault::kDamaged);
  EXPECT_EQ(answer.status.message(),
            "cannot list pods " + Place() + ": the answer is too large, or none");
}

TEST_F(ApiClientTest, ADamagedAnswerIsAnError) {
  fake().Make(Trouble::kDamagedAnswer, "get", "pods");
  const ObjectAnswer damaged = GetObject(client(), kPods, server_.namespace_name(), "w", {});
  EXPECT_EQ(damaged.fault, Fault::kDamaged);
  EXPECT_THAT(damaged.status.message(),
              HasSubstr("cannot get pods 'w' " + Place() + ": the answer is not JSON: "));
  fake().Make(Trouble::kDamagedAnswer, "list", "pods");
  EXPECT_EQ(ListObjects(client(), {kPods, server_.namespace_name(), ""}, {}).fault,
            Fault::kDamaged);
  fake().Make(Trouble::kNoHttp, "list", "pods", 100);
  EXPECT_FALSE(WhileTimePasses([&] { return ListPods(); }, seconds(1)).ok());
}

TEST_F(ApiClientTest, ACreationWhoseAnswerWasLostIsAdopted) {
  fake().Make(Trouble::kLoseAnswer, "create", "pods");
  const auto made = WhileTimePasses([&] { return Create({"w"}); });
  ASSERT_TRUE(made[0].ok()) << made[0].status.ToString();
  EXPECT_EQ(made[0].object.name, "w");
  EXPECT_EQ(ListObjects(client(), {kPods, server_.namespace_name(), ""}, {}).objects.size(), 1U);
}

TEST_F(ApiClientTest, ThirtyCreationsGoOutTogetherAndEachHasItsAnswer) {
  std::vector<std::string> names;
  for (int i = 0; i < 30; ++i) {
    names.push_back("w-" + std::to_string(i));
  }
  fake().Make(Trouble::kServerError, "create", "pods", 3);
  fake().Make(Trouble::kForbidden, "create", "pods");
  const auto made = WhileTimePasses([&] { return Create(names); });
  int failed = 0;
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_TRUE(made[i].ok() ? made[i].object.name == names[i] : ++failed == 1)
        << made[i].status.ToString();
  }
  EXPECT_EQ(failed, 1);
}

TEST_F(ApiClientTest, AListWhosePagesWereForgottenBeginsAnew) {
  Create({"a", "b", "c"});
  fake().Make(Trouble::kGone, "list", "pods", 2);
  EXPECT_EQ(ListObjects(client(), {kPods, server_.namespace_name(), ""}, {}, 2).objects.size(), 3U);
  fake().Make(Trouble::kGone, "list", "pods", 100);
  EXPECT_EQ(ListObjects(client(), {kPods, server_.namespace_name(), ""}, {}, 2).fault,
            Fault::kGone);
}

TEST_F(ApiClientTest, ARefusedTokenIsReadAgainOnce) {
  const std::string file = testing::TempDir() + "k8s_token" + std::to_string(getpid());
  std::ofstream(file) << "old";
  const std::string config = file + "_config";
  std::ofstream(config) << "current-context: x\n"
                           "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                           "clusters: [{name: c, cluster: {server: '"
                        << fake().url() << "'}}]\nusers: [{name: u, user: {tokenFile: " << file
                        << "}}]\n";
  const auto credentials = CredentialsFromKubeconfig({config}, "", server_.clock()).value();
  ApiClient own(*credentials, {}, server_.clock());
  const ApiRequest request{Verb::kList, kPods, "n", "", "", {}, ""};
  EXPECT_EQ(own.Call(request, {}).fault, Fault::kUnauthorized);
  EXPECT_EQ(fake().Asked("list", "pods"), 2);
  std::ofstream(file) << "admin";  // the kubelet has rewritten it; less than a minute has passed
  const ApiAnswer answer = own.Call(request, {});
  EXPECT_TRUE(answer.ok()) << answer.status.ToString();
  EXPECT_THAT(own.Call({Verb::kList, kPods, "n/../m", "", "", {}, ""}, {}).status.message(),
              HasSubstr("the namespace is not valid in Kubernetes"));
}

TEST_F(ApiClientTest, ACallIsCancelledWhileItWaits) {
  fake().Make(Trouble::kSayNothing, "list", "pods");
  std::stop_source stop;
  auto answer = std::async(std::launch::async, [&] { return ListPods(stop.get_token()); });
  fake().WaitUntilAsked("list", "pods", 1);
  stop.request_stop();
  EXPECT_EQ(answer.get().fault, Fault::kCancelled);
}

TEST_F(ApiClientTest, NobodyThereIsSaidWithinTheDeadline) {
  std::string config = testing::TempDir() + "k8s_nobody" + std::to_string(getpid());
  std::ofstream(config) << "current-context: x\n"
                           "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                           "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
                           "users: [{name: u, user: {token: t}}]\n";
  const auto credentials = CredentialsFromKubeconfig({config}, "", server_.clock()).value();
  ApiClient nobody(*credentials, {}, server_.clock());
  const ApiAnswer answer = WhileTimePasses(
      [&] {
        return nobody.Call({Verb::kList, kPods, "n", "", "", {}, ""}, {});
      },
      seconds(1));
  EXPECT_THAT(answer.status.message(),
              HasSubstr("cannot list pods in namespace 'n': Couldn't connect to server"));
}

// This needs a server with TLS.
TEST(ApiClientOverTls, TheCertificateHasToBeTheServers) {
  if (!TestedApiServer::HasReal()) {
    GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
  }
  TestedApiServer server(true);
  for (const std::string context : {"wrong-ca", "wrong-name"}) {
    const ApiAnswer answer =
        server.As(context).Call({Verb::kList, kPods, "default", "", "", {}, ""}, {});
    EXPECT_EQ(answer.fault, Fault::kUntrusted) << context;
    EXPECT_THAT(answer.status.message(), HasSubstr("SSL peer certificate"));
  }
  const ApiAnswer named =
      server.As("other-name").Call({Verb::kList, kPods, "default", "", "", {}, ""}, {});
  EXPECT_TRUE(named.ok()) << named.status.ToString();
}

}  // namespace
}  // namespace sluice::k8s
