#include "k8s/shared_secrets.h"

#include <gtest/gtest.h>

#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

// A master's account may create Secrets and read none, not even those of its own job.
TEST(SharedSecrets, OneThatExistsIsTakenWithoutBeingRead) {
  TestedApiServer server(false);
  server.fake().Make(FakeApiServer::Trouble::kForbidden, "get", "secrets", 100);
  PodShape shape;
  shape.namespace_name = server.namespace_name();
  elastic::ProcessSpec process;
  process.role = elastic::Role::kWorker;
  process.name = "job7-worker-1";
  process.config = "the configuration";
  const std::string name = SecretName(process);
  const auto json = SharedSecrets::Build(shape, {"job-uid", process.role, {}, {}}, process);
  ASSERT_TRUE(json.ok()) << json.status().ToString();
  for (int master = 1; master <= 2; ++master) {
    SharedSecrets secrets;
    const auto refused =
        secrets.Create(server.client(), server.namespace_name(), {{name, *json}}, {});
    EXPECT_TRUE(refused.empty()) << refused.begin()->second.status.ToString();
  }
  EXPECT_EQ(server.fake().Asked("create", "secrets"), 2);
  EXPECT_EQ(server.fake().Asked("get", "secrets"), 0);
}

}  // namespace
}  // namespace sluice::k8s
