#include <gmock/gmock.h>

#include "catalog/key_login.h"
#include "catalog/source_url.h"
#include "k8s/secret_content.h"
#include "server/pgwire/scram_keys.h"
#include "tests/process/pods_fixture.h"

// What the Secrets of a job on pods hold.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PodsSecrets : public Pods {
 protected:
  // Trains m, and returns what each Secret held meanwhile.
  std::map<std::string, std::string> TrainAndRead() {
    std::map<std::string, std::string> secrets;
    RecordingSink sink;
    Status status;
    {
      const std::jthread reader([&](const std::stop_token& stop) {
        EXPECT_TRUE(Eventually([&] {
          for (const k8s::Object& secret :
               k8s::ListObjects(kubelet_->client(), {k8s::kSecrets, kubelet_->namespace_name(), ""},
                                {})
                   .objects) {
            for (const auto& [key, content] : k8s::SecretContent(secret).value()) {
              secrets[secret.name] += content;
            }
          }
          return stop.stop_requested() || Count(1, "epoch_done") >= 1;
        }));
      });
      status = Train("m", kSynchronous, sink);
    }
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(secrets.size(), 3U);  // of its master, its workers and its servers
    EXPECT_EQ(Sha("m").size(), 64U);
    return secrets;
  }
  // From now on the server asks the user for a password; false: this server asks nobody.
  bool AskTheUser() {
    for (const std::string& sql :
         {fmt::format("DO $$ BEGIN CREATE ROLE {} LOGIN; EXCEPTION WHEN duplicate_object OR "
                      "unique_violation THEN NULL; END $$",
                      testing::kPasswordRole),
          fmt::format("GRANT {} TO {}", testing::kPasswordRole, user_),
          fmt::format("ALTER ROLE {} PASSWORD '{}'", user_, kUsersPassword)}) {
      EXPECT_TRUE(admin_->Execute(sql, nullptr, {}).ok()) << sql;
    }
    users_password_ = kUsersPassword;
    const std::string asked =
        catalog::OpenDataSourceAs(UrlBy(Url(), user_, 0), user_, kUsersPassword)
            .status()
            .sqlstate();
    source_ = catalog::OpenDataSource(UserUrl()).value();
    return asked != "28000";
  }

  static constexpr char kUsersPassword[] = "us3rs-s3cret";
};

TEST_F(PodsSecrets, HoldALoginOfTheJobsOwnAndNoPasswordOfTheGateway) {
  for (const auto& [name, content] : TrainAndRead()) {
    EXPECT_THAT(content, Not(HasSubstr(kGatewaysPassword))) << name;
    EXPECT_EQ(content.find("sluice_job_") != std::string::npos, name.ends_with("-master")) << name;
  }
}

TEST_F(PodsSecrets, HoldKeysInPlaceOfTheUsersPassword) {
  if (!AskTheUser()) {
    GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << testing::kPasswordRole;
  }
  for (const auto& [name, content] : TrainAndRead()) {
    EXPECT_THAT(content, Not(HasSubstr(kUsersPassword))) << name;
    EXPECT_EQ(content.find(catalog::kKeySecretPrefix) != std::string::npos,
              name.find("-ps-") == std::string::npos)
        << name;
  }
}

TEST_F(PodsSecrets, HoldTheKeysOfAUserWhosePasswordTheGatewayNeverHad) {
  if (!AskTheUser()) {
    GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << testing::kPasswordRole;
  }
  const auto keys = server::pgwire::FindScramKeys({UrlBy(Url(), user_, 0), kUsersPassword});
  ASSERT_TRUE(keys.ok() && keys->has_value()) << keys.status().ToString();
  const std::string name = database_.url().substr(database_.url().rfind('/') + 1);
  at_desk_ = {catalog::WithSocket(UrlBy(Url(), user_, 0), "@desk", "5432"),
              tickets_.Issue({user_, name, **keys})};
  for (const auto& [secret, content] : TrainAndRead()) {
    EXPECT_THAT(content, Not(HasSubstr(kUsersPassword))) << secret;
    EXPECT_THAT(content, Not(HasSubstr(at_desk_.secret))) << secret;
    EXPECT_EQ(content.find(server::pgwire::KeySecret(**keys)) != std::string::npos,
              secret.find("-ps-") == std::string::npos)
        << secret;
  }
}

}  // namespace
}  // namespace sluice::executor
