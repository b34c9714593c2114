#include "k8s/service_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::k8s {
namespace {

using ::testing::HasSubstr;

Object Parsed(const std::string& json) {
  return ReadObject(json, "a Service").value();
}

std::string Built(int64_t master) {
  return BuildJobService(
      {"team", "job7-3fa9c2", "uid-7", "the-secret", "sluice@sha256:01", 7, master, 7077});
}

TEST(ServiceSpec, CarriesWhatTheNextMasterNeeds) {
  const auto read = ReadJobService(Parsed(Built(3)));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->namespace_name, "team");
  EXPECT_EQ(read->name, "job7-3fa9c2");
  EXPECT_EQ(read->job_uid, "uid-7");
  EXPECT_EQ(read->secret, "the-secret");
  EXPECT_EQ(read->image, "sluice@sha256:01");
  EXPECT_EQ(read->job_number, 7);
  EXPECT_EQ(read->master, 3);
  EXPECT_EQ(read->port, 7077);
  EXPECT_THAT(Built(3), HasSubstr(R"("publishNotReadyAddresses":true)"));
}

TEST(ServiceSpec, LeadsToTheNewestMasterAndNeverBack) {
  const std::string to_four = LeadTo(Parsed(Built(3)), 4).value();
  EXPECT_THAT(to_four, HasSubstr(R"("training.sluice/incarnation":"4")"));
  EXPECT_EQ(LeadTo(Parsed(to_four), 4).value(), to_four);
  EXPECT_EQ(LeadTo(Parsed(to_four), 2).value(), to_four) << "another keeper was faster";
}

TEST(ServiceSpec, WhatIsNoJobsIsNotTakenForOne) {
  EXPECT_FALSE(ReadJobService(Parsed(R"({"metadata":{"name":"web"},"spec":{}})")).has_value());
  std::string damaged = Built(3);
  damaged.replace(damaged.find(R"("7")"), 3, R"("x")");
  EXPECT_FALSE(ReadJobService(Parsed(damaged)).has_value());
}

TEST(ServiceSpec, SaysItsAddressOfEitherKind) {
  const auto with = [](const std::string& address) {
    return Parsed(R"({"metadata":{"name":"s"},"spec":{"clusterIP":")" + address +
                  R"(","ports":[{"port":7077}]}})");
  };
  EXPECT_EQ(ServiceAddress(with("10.96.0.7")).value(), "10.96.0.7:7077");
  EXPECT_EQ(ServiceAddress(with("fd00::7")).value(), "[fd00::7]:7077");
  EXPECT_FALSE(ServiceAddress(with("None")).ok());
  EXPECT_FALSE(ServiceAddress(with("")).ok());
}

TEST(ServiceSpec, SaysWithWhichTrainingJobItGoes) {
  EXPECT_EQ(ReadJobService(Parsed(Built(1)))->owner.uid, "") << "an earlier version's";
  const auto read = ReadJobService(
      Parsed(BuildJobService({"team",
                              "job7-3fa9c2",
                              "uid-7",
                              "the-secret",
                              "sluice@sha256:01",
                              7,
                              1,
                              7077,
                              {"training.sluice/v1alpha1", "TrainingJob", "nightly", "uid-9"}})));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->owner.api_version, "training.sluice/v1alpha1");
  EXPECT_EQ(read->owner.kind, "TrainingJob");
  EXPECT_EQ(read->owner.name, "nightly");
  EXPECT_EQ(read->owner.uid, "uid-9");
}

}  // namespace
}  // namespace sluice::k8s
