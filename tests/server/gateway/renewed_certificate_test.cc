// Certificates that are renewed while the gateway runs.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>

#include "server/gateway/gateway.h"
#include "server/pgwire/certificate_files.h"

namespace sluice::server {
namespace {

class RenewedCertificateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-certificates-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    Config config;
    config.source = "sqlite:" + (folder_ / "test.db").string();
    config.grpc = "127.0.0.1:0";
    config.pg = "127.0.0.1:0";
    config.tls_cert = (folder_ / "link" / pgwire::kCertificateFile).string();
    config.tls_key = (folder_ / "link" / pgwire::kKeyFile).string();
    first_ = Make("first");
    LinkTo("first");
    auto gateway = Gateway::Start(config);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = *std::move(gateway);
  }
  void TearDown() override {
    gateway_.reset();
    std::filesystem::remove_all(folder_);
  }
  // A pair in a folder of that name; its certificate's fingerprint.
  std::string Make(const std::string& name) {
    const auto made =
        pgwire::KeepCertificate((folder_ / name).string(), "gateway.example", std::time(nullptr));
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return pgwire::CertificateFingerprint(made->certificate).value();
  }
  // As the files of a mounted Secret change: all at once.
  void LinkTo(const std::string& name) {
    std::filesystem::create_directory_symlink(folder_ / name, folder_ / "next");
    std::filesystem::rename(folder_ / "next", folder_ / "link");
  }
  std::string ShownAt(const std::string& address, const std::string& more) const {
    FILE* const openssl =
        popen(fmt::format("openssl s_client -connect {} {} </dev/null 2>/dev/null | openssl x509 "
                          "-noout -fingerprint -sha256",
                          address, more)
                  .c_str(),
              "r");
    char line[200] = "";
    const bool read = fgets(line, sizeof(line), openssl) != nullptr;
    pclose(openssl);
    std::string text = read ? line : "";
    text.erase(0, text.find('=') + 1);
    return text.substr(0, text.find('\n'));
  }
  std::string ShownByGrpc() const { return ShownAt(gateway_->address(), "-alpn h2"); }
  std::string ShownByPostgres() const {
    return ShownAt(gateway_->pg_address(), "-starttls postgres");
  }

  std::filesystem::path folder_;
  std::string first_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(RenewedCertificateTest, IsShownToTheNextClients) {
  EXPECT_EQ(ShownByGrpc(), first_);
  EXPECT_EQ(ShownByPostgres(), first_);
  const std::string second = Make("second");
  ASSERT_NE(first_, second);
  LinkTo("second");
  EXPECT_EQ(ShownByPostgres(), second);
  std::string shown;
  for (int i = 0; i < 300 && (shown = ShownByGrpc()) != second; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(shown, second);
}

// A certificate whose key is not there yet, and files that are gone.
TEST_F(RenewedCertificateTest, TheOldOneStaysWhereTheNewOneCannotBeUsed) {
  Make("half");
  Make("other");
  std::filesystem::copy_file(folder_ / "other" / pgwire::kKeyFile,
                             folder_ / "half" / pgwire::kKeyFile,
                             std::filesystem::copy_options::overwrite_existing);
  LinkTo("half");
  EXPECT_EQ(ShownByPostgres(), first_);
  std::filesystem::remove(folder_ / "link");
  EXPECT_EQ(ShownByPostgres(), first_);
  const std::string last = Make("last");
  LinkTo("last");
  EXPECT_EQ(ShownByPostgres(), last);
}

TEST(Certificate, FilesThatDoNotBelongTogetherAreRefusedAtStart) {
  EXPECT_EQ(pgwire::CheckFiles("/nowhere/a.crt", "/nowhere/a.key").sqlstate(), "22023");
}

}  // namespace
}  // namespace sluice::server
