#include "server/config/config.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sluice::server {
namespace {

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("sluice_config_" + std::to_string(getpid()) + ".conf"))
                .string();
  }
  void TearDown() override {
    std::filesystem::remove(path_);
    unsetenv("SLUICE_GRPC");
  }
  const std::string& Write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  std::string path_;
};

TEST_F(ConfigTest, FlagOverEnvironmentOverFileOverDefault) {
  const std::string& file =
      Write("# a comment\n\ngrpc = file:1\n  max_statements=7  \nuser = file\n");
  setenv("SLUICE_GRPC", "environment:2", 1);
  const auto config = LoadConfig(file, {{"user", "flag"}});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->grpc, "environment:2");
  EXPECT_EQ(config->max_statements, 7);
  EXPECT_EQ(config->user, "flag");
  EXPECT_EQ(config->log_level, "warn");
}

TEST_F(ConfigTest, ErrorsNameTheirPlaceAndTheNearestKey) {
  const Status unknown = LoadConfig(Write("grcp = x:1\n"), {}).status();
  EXPECT_EQ(unknown.message(), path_ + ":1: no setting 'grcp'");
  EXPECT_EQ(unknown.diagnostics()[0].hint, "did you mean 'grpc'?");
  EXPECT_EQ(LoadConfig(Write("\nwords\n"), {}).status().message(),
            path_ + ":2: expected 'key = value'");  // it may be a secret
  EXPECT_EQ(LoadConfig("", {{"max_statements", "many"}}).status().message(),
            "command line: max_statements must be an integer from 1 to 1000, not 'many'");
  EXPECT_FALSE(LoadConfig("", {{"max_statements", "0"}}).ok());
  EXPECT_FALSE(LoadConfig("", {{"log_level", "loud"}}).ok());
  EXPECT_FALSE(LoadConfig("", {{"log_format", "xml"}}).ok());
  EXPECT_FALSE(LoadConfig("", {{"tls_cert", "a.pem"}}).ok());
  EXPECT_EQ(LoadConfig(path_ + ".missing", {}).status().code(), Code::kNotFound);
}

TEST_F(ConfigTest, PrintsWhatItLoadsButNoPassword) {
  Config config;
  config.source = "postgresql://ann:se%40cret@host:5432/db";
  const std::string text = PrintConfig(config);
  EXPECT_EQ(text.find("cret"), std::string::npos);
  const auto loaded = LoadConfig(Write(text), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_EQ(loaded->source, "postgresql://ann@host:5432/db");
  EXPECT_EQ(loaded->max_statements, config.max_statements);
}

TEST_F(ConfigTest, JobsAreKeptForDaysOrHours) {
  EXPECT_EQ(LoadConfig("", {})->keep_jobs_hours, 90 * 24);
  EXPECT_EQ(LoadConfig("", {{"keep_jobs", "2d"}})->keep_jobs_hours, 48);
  EXPECT_EQ(LoadConfig("", {{"keep_jobs", "12h"}})->keep_jobs_hours, 12);
  EXPECT_EQ(LoadConfig("", {{"keep_jobs", "0"}})->keep_jobs_hours, 0);
  for (const char* wrong : {"", "90", "d", "-1d", "1.5d", "9w", "99999999d", "1dd"}) {
    EXPECT_FALSE(LoadConfig("", {{"keep_jobs", wrong}}).ok()) << wrong;
  }
}

TEST_F(ConfigTest, LimitsOfRolesHaveDefaults) {
  const RoleLimits usual = LoadConfig("", {})->limits;
  EXPECT_FALSE(usual.sessions.has_value());
  EXPECT_FALSE(usual.jobs.has_value());
  EXPECT_GT(usual.statements, 0);
  const RoleLimits said =
      LoadConfig("", {{"role_limits", "sessions=40,jobs=0,versions=3,stored=7"}})->limits;
  EXPECT_EQ(said.sessions, 40);
  EXPECT_EQ(said.jobs, 0);
  EXPECT_EQ(said.statements, usual.statements);
  EXPECT_EQ(said.versions, 3);
  EXPECT_EQ(said.stored_mebibytes, 7);
  const Status unknown = LoadConfig("", {{"role_limits", "session=4"}}).status();
  EXPECT_EQ(unknown.message(), "role_limits: no limit 'session'");
  EXPECT_EQ(unknown.diagnostics()[0].hint, "did you mean 'sessions'?");
  for (const char* wrong :
       {"jobs", "jobs=", "jobs=-1", "jobs=x", "jobs=1;sessions=2", ",jobs=1", "jobs=99999999999"}) {
    EXPECT_FALSE(LoadConfig("", {{"role_limits", wrong}}).ok()) << wrong;
  }
}

TEST_F(ConfigTest, SlotsAndMemoryOfTheCluster) {
  const auto config = LoadConfig(Write("slots = 6\nmemory_limit = 2048\n"), {});
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  const executor::LocalCluster::Options options = ClusterOptions(*config);
  EXPECT_EQ(options.slots.slots, 6);
  EXPECT_EQ(options.slots.memory_bytes, int64_t{2} << 30);
  EXPECT_NE(LoadConfig("", {{"slots", "-1"}}).status().ToString().find("from 0 to 1024"),
            std::string::npos);
}

TEST_F(ConfigTest, NobodyIsTrustedUnasked) {
  const auto auth = [](const std::string& source, const std::string& address,
                       const std::string& said) {
    Config config;
    config.source = source;
    config.grpc = address;
    config.auth = said;
    return AuthOf(config);
  };
  const std::string postgres = "postgresql://gateway@db/d";
  const std::string sqlite = "sqlite:my.db";
  for (const std::string address : {"127.0.0.1:1", "0.0.0.0:1"}) {
    EXPECT_EQ(auth(postgres, address, "").value(), Auth::kPassword);
    EXPECT_EQ(auth(postgres, address, "trust").value(), Auth::kTrust);
    EXPECT_EQ(auth(sqlite, address, "trust").value(), Auth::kTrust);
  }
  for (const std::string address : {"127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/run/s"}) {
    EXPECT_EQ(auth(sqlite, address, "").value(), Auth::kTrust);
  }
  for (const std::string address :
       {"0.0.0.0:1", "[::]:1", "db.example:1", "10.0.0.1:1", "127.db.example:1"}) {
    const auto refused = auth(sqlite, address, "");
    ASSERT_FALSE(refused.ok()) << address;
    EXPECT_EQ(refused.status().sqlstate(), "28000");
    EXPECT_NE(refused.status().diagnostics()[0].hint.find("--auth trust"), std::string::npos);
  }
  // With a password file users log in, wherever they connect from.
  Config with_users;
  with_users.source = sqlite;
  with_users.password_file = "/no/such/file";  // a typing error must not let everybody in
  EXPECT_EQ(AuthOf(with_users).status().sqlstate(), "58P01");
  with_users.password_file = "/dev/null";  // it exists
  for (const std::string address : {"127.0.0.1:1", "0.0.0.0:1"}) {
    with_users.grpc = address;
    EXPECT_EQ(AuthOf(with_users).value(), Auth::kScram);
  }
  EXPECT_EQ(LoadConfig("", {{"auth", "nobody"}}).status().message(),
            "auth must be password, scram or trust, not 'nobody'");
}

}  // namespace
}  // namespace sluice::server
