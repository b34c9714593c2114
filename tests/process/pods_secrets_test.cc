#include <gmock/gmock.h>

#include "k8s/secret_content.h"
#include "tests/process/pods_fixture.h"

// What the Secrets of a job on pods hold.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(Pods, TheSecretsOfAJobHoldALoginOfItsOwnAndNoPasswordOfTheGateway) {
  std::map<std::string, std::string> secrets;  // what each holds
  RecordingSink sink;
  Status status;
  {
    const std::jthread reader([&](const std::stop_token& stop) {
      Eventually([&] {
        for (const k8s::Object& secret :
             k8s::ListObjects(kubelet_->client(), {k8s::kSecrets, kubelet_->namespace_name(), ""},
                              {})
                 .objects) {
          for (const auto& [key, content] : k8s::SecretContent(secret).value()) {
            secrets[secret.name] += content;
          }
        }
        return stop.stop_requested() || Count(1, "epoch_done") >= 1;
      });
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(secrets.size(), 3U);  // of its master, its workers and its servers
  for (const auto& [name, content] : secrets) {
    EXPECT_THAT(content, Not(HasSubstr(kGatewaysPassword))) << name;
    EXPECT_EQ(content.find("sluice_job_") != std::string::npos, name.ends_with("-master")) << name;
  }
  EXPECT_EQ(Sha("m").size(), 64U);
}

}  // namespace
}  // namespace sluice::executor
