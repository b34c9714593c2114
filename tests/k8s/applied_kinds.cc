#include "tests/k8s/applied_kinds.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "k8s/manifests.h"

namespace sluice::k8s {

void ApplyKinds(const std::string& namespace_name) {
  const std::string file = testing::TempDir() + "/" + namespace_name + "-kinds.yaml";
  std::ofstream out(file);
  const std::vector<Manifest> manifests =
      BuildManifests({namespace_name, "sluice", "", false}).value();
  for (const Manifest& each : manifests) {
    if (each.file == "training_job.yaml" || each.file == "classes.yaml") {
      out << each.yaml << "---\n";
    }
  }
  out.close();
  const std::string kubectl =
      fmt::format("kubectl --kubeconfig {} ", std::getenv("SLUICE_TEST_KUBERNETES"));
  const std::string quiet = " >/dev/null 2>&1";
  // Another test may create the same objects at this moment: "already exists".
  int applied = 1;
  for (int i = 0; i < 10 && applied != 0; ++i) {
    applied = std::system((kubectl + "apply -f " + file + quiet).c_str());
  }
  EXPECT_EQ(applied, 0);
  EXPECT_EQ(std::system((kubectl +
                         "wait --for=condition=Established --timeout=30s "
                         "crd/trainingjobs.training.sluice" +
                         quiet)
                            .c_str()),
            0);
  for (int i = 0; i < 300 && std::system((kubectl + "get tj" + quiet).c_str()) != 0; ++i) {
  }
}

}  // namespace sluice::k8s
