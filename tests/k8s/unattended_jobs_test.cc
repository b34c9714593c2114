#include "k8s/unattended_jobs.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace sluice::k8s {
namespace {

constexpr TimePoint kBegin = std::chrono::seconds(1000);
constexpr TimePoint kLater = kBegin + std::chrono::seconds(10);
constexpr TimePoint kMuchLater = kBegin + std::chrono::hours(1);

class UnattendedJobsTest : public testing::Test {
 protected:
  void Hear(const std::string& status, const std::string& metadata = "",
            ObjectChange::Kind kind = ObjectChange::Kind::kAppeared, TimePoint now = kBegin) {
    const Result<Object> object = ReadObject(
        fmt::format(R"({{"metadata": {{"name": "a", "namespace": "ns", "uid": "a-uid"{}}},
                         "spec": {{"statement": "SELECT 1"}}, "status": {}}})",
                    metadata, status),
        "a TrainingJob");
    ASSERT_TRUE(object.ok()) << object.status().ToString();
    jobs_.OnTrainingJob({kind, *object}, now);
  }
  size_t Due(TimePoint now) { return jobs_.TakeDue(now, 10).size(); }

  UnattendedJobs jobs_;
};

TEST_F(UnattendedJobsTest, OneThatNobodyTakesIsDueOnceItHasWaited) {
  Hear("{}");
  Hear(R"({"grant": {"workers": 0}})", "", ObjectChange::Kind::kChanged,
       kBegin + std::chrono::seconds(5));
  EXPECT_EQ(Due(kLater - TimePoint(1)), 0U);
  const auto due = jobs_.TakeDue(kLater, 10);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].namespace_name + "/" + due[0].name + " " + due[0].uid, "ns/a a-uid");
  EXPECT_EQ(Due(kLater), 0U);
}

TEST_F(UnattendedJobsTest, ItComesAgainUntilItsStatusSaysSo) {
  Hear("{}");
  EXPECT_EQ(Due(kLater), 1U);
  EXPECT_EQ(Due(kLater + std::chrono::seconds(10)), 1U);
  Hear(R"({"conditions": [{"type": "Queued", "status": "True", "reason": "NoGateway"}]})", "",
       ObjectChange::Kind::kChanged);
  EXPECT_EQ(Due(kMuchLater), 0U);
}

TEST_F(UnattendedJobsTest, WhatAGatewayDoesEndsIt) {
  const std::pair<const char*, const char*> kAttended[] = {
      {"{}", R"(, "annotations": {"training.sluice/begun-by": "gateway-1"})"},
      {"{}", R"(, "labels": {"training.sluice/job": "statement-1"})"},
      {R"({"observedGeneration": 1})", ""},
      {R"({"job": 7})", ""},
      {R"({"master": {"number": 1}})", ""},
      {R"({"conditions": [{"type": "Failed", "status": "True", "reason": "Refused"}]})", ""}};
  for (const auto& [status, metadata] : kAttended) {
    Hear("{}");
    Hear(status, metadata, ObjectChange::Kind::kChanged);
    EXPECT_EQ(Due(kMuchLater), 0U) << status << metadata;
  }
}

TEST_F(UnattendedJobsTest, ItsDeletionEndsIt) {
  Hear("{}");
  Hear("{}", "", ObjectChange::Kind::kGone);
  EXPECT_EQ(Due(kMuchLater), 0U);
  Hear("{}");
  Hear("{}", R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")", ObjectChange::Kind::kChanged);
  EXPECT_EQ(Due(kMuchLater), 0U);
}

}  // namespace
}  // namespace sluice::k8s
