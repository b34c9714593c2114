// The password of the gateway's own login, in a file that is renewed while it runs.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "catalog/client_login.h"
#include "catalog/source_url.h"
#include "server/config/config.h"
#include "tests/server/gateway/two_users.h"

namespace sluice::server {
namespace {

class RenewedPasswordTest : public TwoUsers {
 protected:
  void TearDown() override {
    TwoUsers::TearDown();
    std::filesystem::remove(file_);
  }
  // The gateway's login, with the password "first".
  void MakeLogin() {
    gateway_.reset();
    Admin("CREATE ROLE " + gateways_ + " LOGIN PASSWORD 'first' IN ROLE " + testing::kPasswordRole);
    made_.push_back(gateways_);
    Admin("GRANT CREATE ON DATABASE " + database_.url().substr(database_.url().rfind('/') + 1) +
          " TO " + gateways_);
  }
  std::string PassfileLine(const std::string& password) const {
    return "*:*:*:" + gateways_ + ":" + password;
  }
  std::string UrlLine(const std::string& password) const {
    std::string url = catalog::WithRole(database_.url(), gateways_);
    return url.insert(url.find('@'), ":" + password);
  }
  void WriteFile(const std::string& line) {
    std::ofstream(file_) << line << "\n";
    ASSERT_EQ(chmod(file_.c_str(), S_IRUSR | S_IWUSR), 0);  // libpq passes over any other
  }
  // The server changes the password to "second", and then the file is written again.
  void ExpectRenewed(const std::string& line) {
    Start();
    ASSERT_TRUE(Run(ann_, "SHOW JOBS").ok());
    Admin("ALTER ROLE " + gateways_ + " PASSWORD 'second'");
    Admin("SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = '" +
          gateways_ + "'");
    std::string refused = Run(ann_, "SHOW JOBS").sqlstate();
    // On connections whose end was not seen yet.
    for (int i = 0; i < 100 && refused == "08006"; ++i) {
      refused = Run(ann_, "SHOW JOBS").sqlstate();
    }
    EXPECT_EQ(refused, "28P01");
    WriteFile(line);
    const Status renewed = Run(ann_, "SHOW JOBS");
    EXPECT_TRUE(renewed.ok()) << renewed.ToString();
  }

  const std::string gateways_ = "gateway_" + std::to_string(getpid());
  const std::string file_ = ::testing::TempDir() + "/sluice-passfile-" + std::to_string(getpid());
};

TEST_F(RenewedPasswordTest, IsReadForEachConnection) {
  MakeLogin();
  WriteFile(PassfileLine("first"));
  config_.source = catalog::WithRole(database_.url(), gateways_) + "?passfile=" + file_;
  ExpectRenewed(PassfileLine("second"));
}

TEST_F(RenewedPasswordTest, OfTheSourceFileIsReadForEachConnection) {
  MakeLogin();
  WriteFile(UrlLine("first"));
  ASSERT_EQ(chmod(file_.c_str(), S_IRUSR | S_IWUSR | S_IRGRP), 0);  // as a mounted Secret
  const auto config = LoadConfig("", {{"source_file", file_}});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->source.find("first"), std::string::npos);
  config_.source = config->source;
  ExpectRenewed(UrlLine("second"));
}

// A connection as another role that the URL is changed to.
TEST_F(RenewedPasswordTest, OfTheSourceFileIsForItsOwnRole) {
  MakeLogin();
  WriteFile(UrlLine("first"));
  const std::string url = catalog::WithPasswordFile(UrlLine("first"), file_);
  EXPECT_TRUE(catalog::OpenDataSource(url).ok());
  EXPECT_EQ(catalog::OpenDataSource(catalog::WithRole(url, ann_)).status().sqlstate(), "28P01");
  const catalog::DatabaseLogin portable = catalog::WithPasswordOfFile({url, ""});
  EXPECT_EQ(portable.url, catalog::WithRole(database_.url(), gateways_));
  EXPECT_EQ(portable.secret, "first");
}

}  // namespace
}  // namespace sluice::server
