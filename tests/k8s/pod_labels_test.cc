#include "k8s/pod_labels.h"

#include <gtest/gtest.h>

namespace sluice::k8s {
namespace {

PodIdentity Of(elastic::Role role) {
  return {"uid-7", role, elastic::Incarnation(9), elastic::ServerId(1)};
}

TEST(PodLabels, SayWhichProcessItIs) {
  for (const elastic::Role role :
       {elastic::Role::kMaster, elastic::Role::kWorker, elastic::Role::kParameterServer}) {
    const auto identity = IdentityOf(LabelsOf(Of(role)));
    ASSERT_TRUE(identity);
    EXPECT_EQ(identity->job_uid, "uid-7");
    EXPECT_EQ(identity->role, role);
    EXPECT_EQ(identity->incarnation, elastic::Incarnation(9));
  }
  auto labels = LabelsOf(Of(elastic::Role::kParameterServer));
  EXPECT_EQ(IdentityOf(labels)->server_index, elastic::ServerId(1));
  labels["training.sluice/server"] = "1x";
  EXPECT_FALSE(IdentityOf(labels));
  EXPECT_FALSE(IdentityOf({}));
}

}  // namespace
}  // namespace sluice::k8s
