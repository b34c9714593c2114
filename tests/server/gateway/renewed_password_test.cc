// The password of the gateway's own login, in a file that is renewed while it runs.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "catalog/source_url.h"
#include "tests/server/gateway/two_users.h"

namespace sluice::server {
namespace {

class RenewedPasswordTest : public TwoUsers {
 protected:
  void TearDown() override {
    TwoUsers::TearDown();
    std::filesystem::remove(file_);
  }
  void WritePassword(const std::string& password) {
    std::ofstream(file_) << "*:*:*:" << gateways_ << ":" << password << "\n";
    ASSERT_EQ(chmod(file_.c_str(), S_IRUSR | S_IWUSR), 0);  // libpq passes over any other
  }

  const std::string gateways_ = "gateway_" + std::to_string(getpid());
  const std::string file_ = ::testing::TempDir() + "/sluice-passfile-" + std::to_string(getpid());
};

TEST_F(RenewedPasswordTest, IsReadForEachConnection) {
  gateway_.reset();
  Admin("CREATE ROLE " + gateways_ + " LOGIN PASSWORD 'first' IN ROLE " + testing::kPasswordRole);
  made_.push_back(gateways_);
  Admin("GRANT CREATE ON DATABASE " + database_.url().substr(database_.url().rfind('/') + 1) +
        " TO " + gateways_);
  WritePassword("first");
  config_.source = catalog::WithRole(database_.url(), gateways_) + "?passfile=" + file_;
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
  WritePassword("second");
  const Status renewed = Run(ann_, "SHOW JOBS");
  EXPECT_TRUE(renewed.ok()) << renewed.ToString();
}

}  // namespace
}  // namespace sluice::server
