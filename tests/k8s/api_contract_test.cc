// The behaviour of an API server, as far as we rely on it, tested on the fake and on a real one
// alike, so that the fake stays realistic.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/json_internal.h"
#include "k8s/lease.h"
#include "k8s/watch.h"
#include "tests/k8s/change_log.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ApiContract : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !TestedApiServer::HasReal()) {
      GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
    }
    server_ = std::make_unique<TestedApiServer>(GetParam());
  }

  ApiClient& client() { return server_->client(); }
  const std::string& ns() { return server_->namespace_name(); }
  ObjectAnswer Create(const std::string& json, const Resource& resource = kPods) {
    return CreateAll(client(), {{resource, ns(), json}}, {}).front();
  }
  ObjectAnswer Get(const std::string& name, const Resource& resource = kPods) {
    return GetObject(client(), resource, ns(), name, {});
  }
  std::string TextOf(const Object& object, std::initializer_list<std::string_view> path) {
    return std::string(TextIn(ParseJsonObject(object.json, "x").value(), path));
  }

  std::unique_ptr<TestedApiServer> server_;
};

TEST_P(ApiContract, WhatIsCreatedHasAnIdentityAndAVersion) {
  const ObjectAnswer made = Create(PodJson("w", R"({"job":"7"})"));
  ASSERT_TRUE(made.ok()) << made.status.ToString();
  EXPECT_EQ(made.object.name, "w");
  EXPECT_EQ(made.object.namespace_name, ns());
  EXPECT_FALSE(made.object.uid.empty());
  EXPECT_GT(CompareVersions(made.object.resource_version, "0"), 0);
  EXPECT_EQ(made.object.labels, (std::map<std::string, std::string>{{"job", "7"}}));
  EXPECT_EQ(TextOf(made.object, {"status", "phase"}), "Pending");
  EXPECT_EQ(Get("w").object.uid, made.object.uid);
  EXPECT_EQ(Get("x").fault, Fault::kNotFound);
  EXPECT_THAT(Get("x").status.message(),
              HasSubstr("cannot get pods 'x' in namespace '" + ns() + "': 404 NotFound: "));
}

TEST_P(ApiContract, WhatIsThereAlreadyIsAdoptedWhereItIsOurs) {
  const ObjectAnswer made = Create(PodJson("w", R"({"job":"7","worker":"3"})"));
  const ObjectAnswer again = Create(PodJson("w", R"({"job":"7"})"));
  EXPECT_TRUE(again.ok()) << again.status.ToString();
  EXPECT_EQ(again.object.uid, made.object.uid);
  EXPECT_EQ(Create(PodJson("w", R"({"job":"8"})")).fault, Fault::kAlreadyExists);
}

TEST_P(ApiContract, WhatIsRefusedIsNamed) {
  const ObjectAnswer refused = Create(R"({"metadata":{"name":"w"},"spec":{"containers":[]}})");
  EXPECT_EQ(refused.fault, Fault::kInvalid);
  EXPECT_THAT(refused.status.message(), HasSubstr("spec.containers: Required value"));
}

TEST_P(ApiContract, ListsComeInPagesAndByLabels) {
  std::vector<Creation> creations;
  for (int i = 0; i < 5; ++i) {
    creations.push_back({kPods, ns(),
                         PodJson("w-" + std::to_string(i),
                                 i < 4 ? R"({"job":"7","kind":"worker"})" : R"({"job":"8"})")});
  }
  for (const ObjectAnswer& made : CreateAll(client(), creations, {})) {
    ASSERT_TRUE(made.ok()) << made.status.ToString();
  }
  const Listing listing = ListObjects(client(), {kPods, ns(), "job=7,kind=worker"}, {}, 3);
  ASSERT_TRUE(listing.ok()) << listing.status.ToString();
  std::vector<std::string> names;
  for (const Object& object : listing.objects) {
    names.push_back(object.name);
  }
  EXPECT_THAT(names, ElementsAre("w-0", "w-1", "w-2", "w-3"));
  EXPECT_GE(CompareVersions(listing.resource_version, listing.objects.back().resource_version), 0);
}

TEST_P(ApiContract, AVersionThatNobodyHasSeenIsTooLarge) {
  ApiRequest request;
  request.verb = Verb::kList;
  request.resource = kPods;
  request.namespace_name = ns();
  request.query = {{"resourceVersion", "999999999"}, {"resourceVersionMatch", "NotOlderThan"}};
  EXPECT_EQ(client().Call(request, {}).fault, Fault::kVersionTooLarge);
}

TEST_P(ApiContract, WhatIsForgottenIsGoneForListsAndWatches) {
  const auto config_map = [](const std::string& name) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":")" + name + R"("}})";
  };
  for (const std::string name : {"a", "b", "c"}) {
    ASSERT_TRUE(Create(config_map(name), kConfigMaps).ok());
  }
  ApiRequest list{Verb::kList, kConfigMaps, ns(), "", "", {{"limit", "1"}}, ""};
  const ApiAnswer first = client().Call(list, {});
  ASSERT_TRUE(first.ok()) << first.status.ToString();
  const ObjectPage page = ReadObjectPage(first.body, "the page").value();
  for (const std::string name : {"d", "e"}) {
    ASSERT_TRUE(Create(config_map(name), kConfigMaps).ok());
  }
  server_->Compact();
  list.query.emplace_back("continue", page.next);
  EXPECT_EQ(client().Call(list, {}).fault, Fault::kGone);

  const ApiRequest watch{
      Verb::kWatch,
      kConfigMaps,
      ns(),
      "",
      "",
      {{"watch", "1"}, {"resourceVersion", page.resource_version}, {"timeoutSeconds", "5"}},
      ""};
  const ApiAnswer answer = client().Call(watch, {});
  ASSERT_TRUE(answer.ok()) << answer.status.ToString();
  std::vector<std::string> frames;
  ASSERT_TRUE(FrameDecoder().Feed(answer.body, frames).ok());
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(ReadWatchFrame(frames[0])->kind, WatchFrame::Kind::kError);
  EXPECT_EQ(ReadWatchFrame(frames[0])->code, 410);
}

TEST_P(ApiContract, AChangeKeepsWhatItDoesNotKnowAndWinsAgainstAnother) {
  Create(PodJson("w", "{}", R"(,"tolerations":[{"key":"spot","operator":"Exists"}])"));
  int calls = 0;
  const auto edit = [&](const Object& object) -> Result<std::string> {
    if (calls++ == 0) {  // another client is faster
      server_->Do(Verb::kPatch, kPods, "w", "", R"({"metadata":{"labels":{"other":"1"}}})");
    }
    ASSIGN_OR_RETURN(rapidjson::Document document, ParseJsonObject(object.json, "x"));
    auto& memory = document.GetAllocator();
    SetMember(Within(document, {"metadata", "annotations"}, memory), "mine", JsonText("2", memory),
              memory);
    return ToJson(document);
  };
  const ObjectAnswer changed = ChangeObject(client(), kPods, ns(), "w", edit, {});
  ASSERT_TRUE(changed.ok()) << changed.status.ToString();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(changed.object.labels.at("other"), "1");
  EXPECT_EQ(TextOf(changed.object, {"metadata", "annotations", "mine"}), "2");
  EXPECT_THAT(changed.object.json, HasSubstr(R"("key":"spot")"));
}

TEST_P(ApiContract, TheStatusIsChangedThroughItsSubresourceOnly) {
  Create(PodJson("w"));
  const ObjectAnswer by_status =
      PatchObject(client(), kPods, ns(), "w", "status",
                  R"({"spec":{"schedulerName":"other"},"status":{"reason":"NodeLost"}})", {});
  ASSERT_TRUE(by_status.ok()) << by_status.status.ToString();
  EXPECT_EQ(TextOf(by_status.object, {"status", "reason"}), "NodeLost");
  EXPECT_NE(TextOf(by_status.object, {"spec", "schedulerName"}), "other");
  const ObjectAnswer by_object =
      PatchObject(client(), kPods, ns(), "w", "", R"({"status":{"reason":"Evicted"}})", {});
  ASSERT_TRUE(by_object.ok()) << by_object.status.ToString();
  EXPECT_EQ(TextOf(by_object.object, {"status", "reason"}), "NodeLost");
  EXPECT_EQ(PatchObject(client(), kPods, ns(), "x", "status", "{}", {}).fault, Fault::kNotFound);
}

TEST_P(ApiContract, ADeletionHitsNobodyElse) {
  const std::string uid = Create(PodJson("w")).object.uid;
  const auto remove = [&](const std::string& name, const std::string& of) {
    return DeleteAll(client(), {{kPods, ns(), name, of, 1}}, {}).front();
  };
  EXPECT_TRUE(remove("w", "another-uid").ok());
  EXPECT_TRUE(Get("w").ok());
  EXPECT_TRUE(remove("w", uid).ok());
  EXPECT_EQ(Get("w").fault, Fault::kNotFound) << "it was on no node";
  EXPECT_TRUE(remove("w", uid).ok()) << "what is gone is deleted";
}

TEST_P(ApiContract, APodOnANodeLeavesAndGoesWhenItsKubeletSaysSo) {
  const std::string uid = Create(PodJson("w")).object.uid;
  server_->Bind("w", "node-1");
  EXPECT_EQ(TextOf(Get("w").object, {"spec", "nodeName"}), "node-1");
  ASSERT_TRUE(DeleteAll(client(), {{kPods, ns(), "w", uid, 5}}, {}).front().ok());
  const ObjectAnswer leaving = Get("w");
  EXPECT_TRUE(leaving.object.leaving);
  EXPECT_EQ(Create(PodJson("w")).fault, Fault::kAlreadyExists) << "what leaves is not adopted";
  server_->Forget("w");
  EXPECT_EQ(Get("w").fault, Fault::kNotFound);
}

TEST_P(ApiContract, AQuotaIsToldFromAMissingRight) {
  constexpr Resource kQuotas{"", "v1", "resourcequotas"};
  ASSERT_TRUE(Create(R"({"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},)"
                     R"("spec":{"hard":{"pods":"1"}}})",
                     kQuotas)
                  .ok());
  server_->Do(Verb::kPatch, kQuotas, "q", "status",
              R"({"status":{"hard":{"pods":"1"},"used":{"pods":"0"}}})");
  // A real server learns of it from its own watch.
  for (int i = 0; i < 100 && Create(PodJson("w-" + std::to_string(i))).ok(); ++i) {
  }
  EXPECT_EQ(Create(PodJson("one-more")).fault, Fault::kQuota);

  const ApiAnswer forbidden =
      server_->As("powerless").Call({Verb::kList, kPods, ns(), "", "", {}, ""}, {});
  EXPECT_EQ(forbidden.fault, Fault::kForbidden);
  EXPECT_THAT(forbidden.status.message(),
              HasSubstr("cannot list pods in namespace '" + ns() + "': 403 Forbidden: "));
  EXPECT_THAT(forbidden.status.message(), HasSubstr("cannot list resource \"pods\""));
}

TEST_P(ApiContract, TokensAndCertificatesAreKnownStrangersAreNot) {
  const ApiRequest request{Verb::kList, kPods, ns(), "", "", {}, ""};
  EXPECT_TRUE(server_->As("token").Call(request, {}).ok());
  EXPECT_EQ(server_->As("stranger").Call(request, {}).fault, Fault::kUnauthorized);
}

TEST_P(ApiContract, AWatchTellsWhatHappensOnce) {
  Create(PodJson("before", R"({"job":"7"})"));
  ChangeLog log;
  auto watch = ObjectWatch::Start(client(), {kPods, ns(), "job=7"}, log.Listener(), {});
  ASSERT_TRUE(watch.ok()) << watch.status().ToString();
  EXPECT_EQ(log.Take(1), "+before ");
  Create(PodJson("w", R"({"job":"7"})"));
  Create(PodJson("other", R"({"job":"8"})"));
  EXPECT_EQ(log.Take(1), "+w ");
  server_->Bind("w", "node-1");
  server_->SetStatus("w", R"({"phase":"Running"})");
  EXPECT_EQ(log.Take(2), "~w ~w ");
  const std::string uid = Get("w").object.uid;
  ASSERT_TRUE(DeleteAll(client(), {{kPods, ns(), "w", uid, 3}}, {}).front().ok());
  EXPECT_EQ(log.Take(1), "~w(leaving) ");
  server_->Forget("w");
  // A real server may report the end of the grace period once more.
  std::string last = log.Take(1);
  last = last == "~w(leaving) " ? log.Take(1) : last;
  EXPECT_EQ(last, "-w ");
  // An object that loses the label leaves the selection.
  server_->Do(Verb::kPatch, kPods, "before", "", R"({"metadata":{"labels":{"job":"9"}}})");
  EXPECT_EQ(log.Take(1), "-before ");
}

TEST_P(ApiContract, ALeaseHasOneHolder) {
  LeaseClaim one(client(), {ns(), "keeper", "one", 8});
  LeaseClaim other(client(), {ns(), "keeper", "other", 8});
  EXPECT_TRUE(one.Round({})->ours);
  EXPECT_TRUE(one.Held());
  const auto lost = other.Round({});
  ASSERT_TRUE(lost.ok()) << lost.status().ToString();
  EXPECT_FALSE(lost->ours);
  EXPECT_EQ(lost->holder, "one");
  // While it is renewed no other client can take it, however long that is.
  for (int i = 0; i < 5; ++i) {
    server_->clock().Advance(std::chrono::seconds(5));
    EXPECT_TRUE(one.Round({})->ours);
    EXPECT_FALSE(other.Round({})->ours);
  }
  // Not renewed for its duration: a client that has watched it for that long takes it.
  server_->clock().Advance(std::chrono::seconds(7));
  EXPECT_TRUE(one.Held());
  EXPECT_FALSE(other.Look({})->expired);
  server_->clock().Advance(std::chrono::seconds(1));
  EXPECT_FALSE(one.Held());
  EXPECT_TRUE(other.Look({})->expired);
  EXPECT_TRUE(other.Round({})->ours);
  EXPECT_FALSE(one.Round({})->ours);
  // Released: taken over at once; deleted: free at once.
  ASSERT_TRUE(other.Release({}).ok());
  EXPECT_FALSE(other.Held());
  EXPECT_TRUE(one.Round({})->ours);
  server_->Do(Verb::kDelete, kLeases, "keeper", "", "");
  EXPECT_TRUE(other.Round({})->ours);
}

INSTANTIATE_TEST_SUITE_P(, ApiContract, testing::Bool(),
                         [](const auto& suite) { return suite.param ? "Real" : "Fake"; });

}  // namespace
}  // namespace sluice::k8s
