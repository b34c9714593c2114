#include "k8s/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace sluice::k8s {
namespace {

using testing::HasSubstr;

std::string Exceeded(const std::string& requested, const std::string& used,
                     const std::string& limited) {
  return "pods \"w\" is forbidden: exceeded quota: q, requested: " + requested + ", used: " + used +
         ", limited: " + limited;
}

TEST(Admission, APodThatIsLargerThanTheWholeQuotaNeverFits) {
  EXPECT_TRUE(NeverFits(Exceeded("limits.memory=4Gi", "limits.memory=0", "limits.memory=2Gi")));
  EXPECT_TRUE(NeverFits(Exceeded("pods=1,requests.memory=2200Mi", "pods=2,requests.memory=0",
                                 "pods=2,requests.memory=2Gi")));
  EXPECT_TRUE(NeverFits(Exceeded("cpu=1500m", "cpu=0", "cpu=1")));
}

TEST(Admission, WhatOthersUseMayPass) {
  EXPECT_FALSE(NeverFits(Exceeded("memory=2Gi", "memory=1Gi", "memory=2Gi")));
  EXPECT_FALSE(NeverFits(Exceeded("pods=1", "pods=0", "pods=0"))) << "the namespace is paused";
  EXPECT_FALSE(NeverFits(Exceeded("memory=2Gi", "memory=0", "memory=0"))) << "the same";
  EXPECT_FALSE(NeverFits("pods w is forbidden: exceeded quota: q"));
  EXPECT_FALSE(NeverFits(Exceeded("memory=?", "", "memory")));
}

TEST(Admission, AHintNamesTheAttributes) {
  EXPECT_THAT(std::string(AdmissionHint("pods \"w\" is forbidden: failed quota: q: must specify "
                                        "limits.memory")),
              HasSubstr("engine.worker_resource_limit"));
  EXPECT_THAT(std::string(AdmissionHint("pods \"w\" is forbidden: maximum memory usage per Pod is "
                                        "1Gi, but limit is 2147483648")),
              HasSubstr("engine.memory"));
  EXPECT_THAT(std::string(AdmissionHint(Exceeded("memory=2Gi", "memory=0", "memory=1Gi"))),
              HasSubstr("a larger ResourceQuota"));
  EXPECT_THAT(std::string(AdmissionHint(Exceeded("count/trainingjobs.training.sluice=1",
                                                 "count/trainingjobs.training.sluice=9",
                                                 "count/trainingjobs.training.sluice=9"))),
              HasSubstr("counts until it is deleted"));
  EXPECT_EQ(AdmissionHint(Exceeded("memory=2Gi", "memory=1Gi", "memory=2Gi")), "") << "it waits";
  EXPECT_EQ(AdmissionHint("pods is forbidden: User x cannot create"), "");
}

}  // namespace
}  // namespace sluice::k8s
