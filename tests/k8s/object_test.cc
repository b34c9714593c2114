#include "k8s/object.h"

#include <gtest/gtest.h>

#include <string>

#include "k8s/api_request.h"

namespace sluice::k8s {
namespace {

TEST(Object, HasWhatEveryObjectHasAndKeepsTheRest) {
  const std::string json =
      R"({"metadata":{"name":"w","namespace":"n","uid":"u","resourceVersion":"7",
    "labels":{"a":"b","wrong":3},"deletionTimestamp":"2026-01-01T00:00:00Z"},"future":{"field":1}})";
  const Object object = ReadObject(json, "x").value();
  EXPECT_EQ(object.name, "w");
  EXPECT_EQ(object.namespace_name, "n");
  EXPECT_EQ(object.uid, "u");
  EXPECT_EQ(object.resource_version, "7");
  EXPECT_EQ(object.labels, (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_TRUE(object.leaving);
  EXPECT_EQ(object.json, json);
}

TEST(Object, WhatIsNoneIsRefused) {
  const auto problem = [](const std::string& json) {
    return ReadObject(json, "the answer").status().message();
  };
  EXPECT_EQ(problem(""), "the answer is not JSON: The document is empty. at byte 0");
  EXPECT_EQ(problem("<html>"), "the answer is not JSON: Invalid value. at byte 0");
  EXPECT_EQ(problem("[]"), "the answer is JSON, but not an object");
  EXPECT_EQ(problem("{}"), "the answer has no metadata.name");
  EXPECT_EQ(problem(R"({"metadata":"name"})"), "the answer has no metadata.name");
  EXPECT_EQ(problem(R"({"a":)" + std::string(100'000, '[')),
            "the answer is nested deeper than 200 levels");
  EXPECT_EQ(problem("{\"a\":\"\xff\"}"),
            "the answer is not JSON: Invalid encoding in string. at byte 6");
}

TEST(ObjectPage, IsReadWithItsVersionAndWhereItGoesOn) {
  const ObjectPage page =
      ReadObjectPage(R"({"metadata":{"resourceVersion":"9","continue":"more"},"items":[
        {"metadata":{"name":"w","uid":"u"}}]})",
                     "x")
          .value();
  ASSERT_EQ(page.objects.size(), 1U);
  EXPECT_EQ(page.objects[0].json, R"({"metadata":{"name":"w","uid":"u"}})");
  EXPECT_EQ(page.resource_version, "9");
  EXPECT_EQ(page.next, "more");
  EXPECT_TRUE(ReadObjectPage(R"({"metadata":{"resourceVersion":"9"},"items":null})", "x").ok());
  EXPECT_FALSE(ReadObjectPage(R"({"metadata":{"resourceVersion":"9"}})", "x").ok());
  EXPECT_FALSE(ReadObjectPage(R"({"metadata":{},"items":[]})", "x").ok());
  EXPECT_FALSE(ReadObjectPage(R"({"metadata":{"resourceVersion":"9"},"items":[{}]})", "x").ok());
}

TEST(Versions, AreComparedAsNumbers) {
  EXPECT_LT(CompareVersions("9", "10"), 0);
  EXPECT_GT(CompareVersions("18446744073709551616", "18446744073709551615"), 0);
  EXPECT_EQ(CompareVersions("10", "010"), 0);
  EXPECT_EQ(CompareVersions("a", "b"), 0);
  EXPECT_EQ(CompareVersions("", "1"), 0);
}

TEST(ApiRequest, NamesItsPlaceAndNoOther) {
  ApiRequest request;
  request.verb = Verb::kPatch;
  request.resource = kLeases;
  request.namespace_name = "team-a";
  request.name = "job-7";
  request.subresource = "status";
  request.query = {{"labelSelector", "a=b,c in (d)"}};
  EXPECT_EQ(UrlPath(request).value(),
            "/apis/coordination.k8s.io/v1/namespaces/team-a/leases/job-7/status"
            "?labelSelector=a%3Db%2Cc%20in%20%28d%29");
  EXPECT_EQ(Describe(request), "patch leases/status 'job-7' in namespace 'team-a'");
  for (const std::string name : {"..", "a/b", "a?b", "A", "%2e", "a b", "a\n"}) {
    request.name = name;
    EXPECT_FALSE(UrlPath(request).ok()) << name;
  }
}

struct Refusal {
  int http_code;
  std::string body;
  Fault fault;
};

TEST(ApiAnswer, SaysWhatCallersActOn) {
  ApiRequest request;
  request.verb = Verb::kCreate;
  request.resource = kPods;
  request.namespace_name = "team";
  const std::vector<Refusal> refusals = {
      {401, "", Fault::kUnauthorized},
      {403, R"({"reason":"Forbidden","message":"pods is forbidden: User x"})", Fault::kForbidden},
      {403, R"({"reason":"Forbidden","message":"pods w is forbidden: exceeded quota: q"})",
       Fault::kQuota},
      {403,
       R"({"message":"pods w is forbidden: exceeded quota: q, requested: limits.memory=4Gi,)"
       R"(pods=1, used: limits.memory=0,pods=3, limited: limits.memory=2Gi,pods=3"})",
       Fault::kForbidden},
      {404, "<html>", Fault::kNotFound},
      {409, R"({"reason":"AlreadyExists"})", Fault::kAlreadyExists},
      {409, R"({"reason":"Conflict"})", Fault::kConflict},
      {410, R"({"reason":"Expired"})", Fault::kGone},
      {422, R"({"reason":"Invalid"})", Fault::kInvalid},
      {429, "", Fault::kTooManyRequests},
      {500, "", Fault::kServer},
      {504, R"({"reason":"Timeout","message":"Too large resource version: 9, current: 8"})",
       Fault::kVersionTooLarge},
      {504, R"({"reason":"Timeout","message":"etcd"})", Fault::kServer},
      {302, "", Fault::kDamaged},
  };
  for (const Refusal& each : refusals) {
    const ApiAnswer answer = AnswerOf(request, each.http_code, each.body, std::nullopt);
    EXPECT_EQ(FaultName(answer.fault), FaultName(each.fault)) << each.body;
    EXPECT_EQ(answer.status.message().find("cannot create pods in namespace 'team': "), 0U);
  }
  EXPECT_EQ(AnswerOf(request, 403, refusals[1].body, std::nullopt).status.message(),
            "cannot create pods in namespace 'team': 403 Forbidden: pods is forbidden: User x");
}

TEST(Retries, WaitLongerEachTimeAndAsLongAsTheServerSays) {
  ApiAnswer answer;
  answer.fault = Fault::kUnreachable;
  EXPECT_DOUBLE_EQ(*SecondsUntilRetry(answer, 1, 1), 0.1);
  EXPECT_DOUBLE_EQ(*SecondsUntilRetry(answer, 3, 0), 0.2);
  EXPECT_DOUBLE_EQ(*SecondsUntilRetry(answer, 1000, 1), 5);
  answer.fault = Fault::kTooManyRequests;
  EXPECT_DOUBLE_EQ(*SecondsUntilRetry(answer, 1, 1), 1);
  answer.retry_after_seconds = 17;
  EXPECT_DOUBLE_EQ(*SecondsUntilRetry(answer, 1, 1), 17);
  answer.fault = Fault::kUnauthorized;
  EXPECT_TRUE(SecondsUntilRetry(answer, 1, 1));
  EXPECT_FALSE(SecondsUntilRetry(answer, 2, 1));
  for (const Fault fault : {Fault::kInvalid, Fault::kForbidden, Fault::kQuota, Fault::kConflict,
                            Fault::kGone, Fault::kUntrusted, Fault::kDamaged, Fault::kCancelled}) {
    answer.fault = fault;
    EXPECT_FALSE(SecondsUntilRetry(answer, 1, 1)) << FaultName(fault);
  }
}

}  // namespace
}  // namespace sluice::k8s
