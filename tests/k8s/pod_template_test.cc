#include "k8s/pod_template.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::k8s {
namespace {

TEST(PodTemplate, AFolderOfAVolumeIsFoundByWholeNames) {
  const std::string given =
      R"({"spec":{"containers":[{"name":"log","volumeMounts":[{"mountPath":"/log"}]},)"
      R"({"name":"sluice","volumeMounts":[{"mountPath":"/data"}]}]}})";
  EXPECT_TRUE(MountsFolder(given, "/data"));
  EXPECT_TRUE(MountsFolder(given, "/data/checkpoints/m"));
  EXPECT_FALSE(MountsFolder(given, "/database"));
  EXPECT_FALSE(MountsFolder(given, "/log/m")) << "of another container";
  EXPECT_FALSE(MountsFolder("", "/data"));
}

TEST(PodTemplate, MemoryIsThatOfOurContainer) {
  const auto given = [](const char* name, const char* resources) {
    return std::string(R"({"spec":{"containers":[{"name":")") + name + R"(","resources":)" +
           resources + "}]}}";
  };
  EXPECT_TRUE(GivesMemory(given("sluice", R"({"requests":{"memory":"1Gi"}})")));
  EXPECT_TRUE(GivesMemory(given("sluice", R"({"limits":{"memory":"1Gi"}})")));
  EXPECT_FALSE(GivesMemory(given("sluice", R"({"limits":{"cpu":"1"}})")));
  EXPECT_FALSE(GivesMemory(given("log", R"({"limits":{"memory":"1Gi"}})")));
  EXPECT_FALSE(GivesMemory(""));
}

}  // namespace
}  // namespace sluice::k8s
