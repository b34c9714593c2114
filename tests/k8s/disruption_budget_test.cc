#include "k8s/disruption_budget.h"

#include <gtest/gtest.h>

namespace sluice::k8s {
namespace {

TEST(DisruptionBudget, KeepsAllServersButOne) {
  const Owner owner = {"training.sluice/v1alpha1", "TrainingJob", "census", "uid-7"};
  EXPECT_EQ(
      BuildDisruptionBudget(kDisruptionBudgets, "team", "census-servers", owner, "uid-7", 2),
      R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{)"
      R"("name":"census-servers","namespace":"team","labels":{"training.sluice/job":"uid-7"},)"
      R"("ownerReferences":[{"apiVersion":"training.sluice/v1alpha1","kind":"TrainingJob",)"
      R"("name":"census","uid":"uid-7"}]},"spec":{"minAvailable":2,"selector":{)"
      R"("matchLabels":{"training.sluice/job":"uid-7","training.sluice/role":"ps"}}}})");
}

}  // namespace
}  // namespace sluice::k8s
