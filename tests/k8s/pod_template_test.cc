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

}  // namespace
}  // namespace sluice::k8s
