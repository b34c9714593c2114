// The controller over the fake API server; the test plays scheduler and masters.
#include "k8s/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/cluster_objects.h"
#include "k8s/event_recorder.h"
#include "k8s/json_internal.h"
#include "tests/k8s/tested_api_server.h"
#include "tests/support/eventually.h"

namespace sluice::k8s {
namespace {

using Trouble = FakeApiServer::Trouble;

class ControllerTest : public testing::Test {
 protected:
  struct Running {
    Running(ApiClient& client, const std::string& namespace_name, const std::string& holder)
        : controller(client, {namespace_name, holder, {.hysteresis_seconds = 0}}),
          thread([this](const std::stop_token& stop) { status = controller.Run(stop); }) {}
    Controller controller;
    Status status;
    std::jthread thread;
  };
  std::unique_ptr<Running> Start(const std::string& holder) {
    return std::make_unique<Running>(server_.client(), ns(), holder);
  }
  const std::string& ns() { return server_.namespace_name(); }

  void Node(const std::string& name, int cpu) {
    Create(kNodes, "",
           fmt::format(R"({{"metadata": {{"name": "{}"}}, "status": {{"allocatable":
        {{"cpu": "{}", "memory": "8Gi", "pods": "110"}}}}}})",
                       name, cpu));
  }
  // No gateway has seen it.
  void NewJob(const std::string& name, int max) {
    Create(kTrainingJobs, ns(),
           fmt::format(
               R"({{"apiVersion": "training.sluice/v1alpha1", "kind": "TrainingJob",
             "metadata": {{"name": "{}"}}, "spec": {{"statement": "SELECT 1",
             "source": {{"secretName": "s"}}, "workers": {{"max": {}}}}}}})",
               name, max));
  }
  void Job(const std::string& name, int max) {
    NewJob(name, max);
    const ObjectAnswer begun = PatchObject(server_.client(), kTrainingJobs, ns(), name, "status",
                                           R"({"status": {"master": {"number": 1}}})", {});
    ASSERT_TRUE(begun.ok()) << begun.status.ToString();
  }
  void Create(const Resource& resource, const std::string& where, const std::string& json) {
    const auto made = CreateAll(server_.client(), {{resource, where, json}}, {});
    ASSERT_TRUE(made[0].ok()) << made[0].status.ToString();
  }
  std::optional<uint32_t> GrantOf(const std::string& name) {
    const std::optional<Grant> grant = StatusOf(name).grant;
    return grant ? std::optional(grant->workers) : std::nullopt;
  }
  TrainingJobStatus StatusOf(const std::string& name) {
    const ObjectAnswer answer = GetObject(server_.client(), kTrainingJobs, ns(), name, {});
    const Result<TrainingJobStatus> status =
        answer.ok() ? ParseTrainingJobStatus(answer.object.json) : TrainingJobStatus();
    return status.ok() ? *status : TrainingJobStatus();
  }
  // Their reasons.
  std::vector<std::string> EventsOf(const std::string& name) {
    std::vector<std::string> reasons;
    for (const Object& event : ListObjects(server_.client(), {kEvents, ns(), ""}, {}).objects) {
      const Result<rapidjson::Document> json = ParseJsonObject(event.json, "an Event");
      if (json.ok() && TextIn(*json, {"involvedObject", "name"}) == name) {
        reasons.emplace_back(TextIn(*json, {"reason"}));
      }
    }
    return reasons;
  }
  template <class Condition>
  void WaitUntil(const Condition& condition) {
    EXPECT_TRUE(Eventually([&] {
      server_.clock().Advance(std::chrono::milliseconds(100));
      return condition();
    }));
  }

  TestedApiServer server_{false};
};

TEST_F(ControllerTest, WritesWhatEachJobMayHave) {
  Node("n1", 4);
  Job("a", 8);
  Job("b", 1);
  const auto one = Start("one");
  WaitUntil([&] { return GrantOf("a") == 3 && GrantOf("b") == 1; });
  Node("n2", 4);
  WaitUntil([&] { return GrantOf("a") == 7; });
  EXPECT_TRUE(one->controller.figures().leads);
  EXPECT_EQ(one->controller.figures().nodes, 2U);
}

TEST_F(ControllerTest, OneOfSeveralActsAndAnotherFollows) {
  Node("n1", 4);
  Job("a", 8);
  auto one = Start("one");
  WaitUntil([&] { return GrantOf("a") == 4; });
  const auto other = Start("other");
  WaitUntil([&] { return server_.fake().Asked("get", "leases") > 3; });
  EXPECT_FALSE(other->controller.figures().leads);
  one.reset();
  Node("n2", 2);
  WaitUntil([&] { return GrantOf("a") == 6; });
  EXPECT_TRUE(other->controller.figures().leads);
}

TEST_F(ControllerTest, AGrantThatCouldNotBeWrittenIsDecidedAgain) {
  Node("n1", 4);
  Job("a", 8);
  server_.fake().Make(Trouble::kForbidden, "patch", "trainingjobs", 2);
  const auto one = Start("one");
  WaitUntil([&] { return GrantOf("a") == 4; });
  EXPECT_EQ(one->controller.figures().failed_grants, 2U);
}

TEST_F(ControllerTest, OneThatNoGatewayTakesIsToldThatItWaitsForOne) {
  Node("n1", 4);
  NewJob("a", 8);
  NewJob("b", 8);
  ASSERT_TRUE(PatchObject(server_.client(), kTrainingJobs, ns(), "b", "",
                          R"({"metadata": {"annotations": {"training.sluice/begun-by": "g"}}})", {})
                  .ok());
  const auto one = Start("one");
  WaitUntil([&] { return StatusOf("a").conditions.size() == 1; });
  const Condition told = StatusOf("a").conditions.at(0);
  EXPECT_EQ(told.type + " " + told.status + " " + told.reason, "Queued True NoGateway");
  EXPECT_THAT(told.message, testing::HasSubstr("in the namespace " + ns()));
  WaitUntil([&] { return EventsOf("a") == std::vector<std::string>{"NoGateway"}; });
  EXPECT_TRUE(StatusOf("b").conditions.empty());
  EXPECT_TRUE(EventsOf("b").empty());
  EXPECT_EQ(GrantOf("a"), std::nullopt);
}

TEST_F(ControllerTest, OneThatCouldNotBeToldIsToldLater) {
  NewJob("a", 8);
  server_.fake().Make(Trouble::kForbidden, "patch", "trainingjobs", 1);
  const auto one = Start("one");
  WaitUntil([&] { return Holds(StatusOf("a"), kConditionQueued); });
}

TEST_F(ControllerTest, WithoutRightsItEndsWithTheReason) {
  server_.fake().Make(Trouble::kForbidden, "list", "nodes", 1);
  const auto one = Start("one");
  one->thread.join();
  EXPECT_EQ(one->status.code(), Code::kPermissionDenied) << one->status.ToString();
}

TEST_F(ControllerTest, AWatchThatBreaksIsRepaired) {
  Node("n1", 4);
  Job("a", 8);
  const auto one = Start("one");
  WaitUntil([&] { return GrantOf("a") == 4; });
  server_.fake().Make(Trouble::kGone, "watch", "nodes", 1);
  server_.fake().EndStreams();
  Node("n2", 4);
  WaitUntil([&] { return GrantOf("a") == 8; });
}

}  // namespace
}  // namespace sluice::k8s
