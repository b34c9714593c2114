#include "server/pgwire/key_desk.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "catalog/data_source.h"
#include "catalog/key_login.h"
#include "catalog/source_url.h"
#include "server/pgwire/scram_keys.h"
#include "tests/support/postgres_server.h"

// Logins with SCRAM's keys instead of a password, at a real server.
namespace sluice::server::pgwire {
namespace {

using ::testing::HasSubstr;

class KeyDeskTest : public ::testing::Test {
 protected:
  static constexpr char kPassword[] = "pässword of this test";

  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    admin_ = catalog::OpenDataSource(database_.url()).value();
    role_ = fmt::format("keys_{}", getpid());
    Admin(
        fmt::format("DO $$ BEGIN CREATE ROLE {} LOGIN; EXCEPTION WHEN duplicate_object OR "
                    "unique_violation THEN NULL; END $$",
                    testing::kPasswordRole));
    Admin(fmt::format("CREATE ROLE {} LOGIN PASSWORD '{}' IN ROLE {}", role_, kPassword,
                      testing::kPasswordRole));
    url_ = catalog::WithRole(database_.url(), role_);
    if (catalog::OpenDataSourceAs(url_, role_, kPassword).status().sqlstate() == "28000") {
      GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << testing::kPasswordRole;
    }
    desk_ = KeyDesk::Start().value();
  }
  void TearDown() override {
    desk_.reset();
    if (!role_.empty()) {
      Admin("DROP ROLE " + role_);
    }
  }
  void Admin(const std::string& sql) {
    const auto done = admin_->Execute(sql, nullptr, {});
    ASSERT_TRUE(done.ok()) << sql << "\n" << done.status().ToString();
  }
  ScramKeys Keys() const { return FindScramKeys({url_, kPassword}).value().value(); }

  testing::PostgresTestDatabase database_;
  std::unique_ptr<catalog::DataSource> admin_;
  std::string role_, url_;
  std::unique_ptr<KeyDesk> desk_;
};

TEST_F(KeyDeskTest, LogsInAsTheUserWhoseKeysTheyAre) {
  const auto source = catalog::OpenDataSource(url_, KeySecret(Keys()));
  ASSERT_TRUE(source.ok()) << source.status().ToString();
  EXPECT_EQ((*source)->url(), url_);
  EXPECT_EQ((*source)->ActingRole({}).value(), role_);
}

TEST_F(KeyDeskTest, AChangedPasswordEndsThem) {
  const std::string secret = KeySecret(Keys());
  Admin(fmt::format("ALTER ROLE {} PASSWORD 'another'", role_));
  const Status refused = catalog::OpenDataSource(url_, secret).status();
  EXPECT_EQ(refused.sqlstate(), "28P01");
  EXPECT_THAT(refused.message(), HasSubstr("password authentication failed"));
}

TEST_F(KeyDeskTest, KeysOfAnotherRoleAreRefused) {
  const std::string other = catalog::WithRole(database_.url(), testing::kPasswordRole);
  EXPECT_EQ(catalog::OpenDataSource(other, KeySecret(Keys())).status().sqlstate(), "28P01");
}

TEST_F(KeyDeskTest, WhatAreNoKeysIsRefused) {
  for (const char* secret :
       {"sluice-scram-keys:", "sluice-scram-keys:AAAA", "sluice-scram-keys:?"}) {
    EXPECT_EQ(catalog::OpenDataSource(url_, secret).status().sqlstate(), "28000") << secret;
  }
}

// Whoever may choose a password chooses no server with it.
TEST_F(KeyDeskTest, APasswordThatNamesAServerIsAPassword) {
  const std::string password =
      KeySecret(Keys()) + " " + catalog::WithRole(database_.url(), testing::kPasswordRole) + "?x=";
  EXPECT_FALSE(catalog::IsKeySecret(password));
  EXPECT_EQ(catalog::OpenDataSource(url_, password).status().sqlstate(), "28P01");
  Admin(fmt::format("ALTER ROLE {} PASSWORD '{}'", role_, password));
  EXPECT_EQ(catalog::OpenDataSource(url_, password).value()->ActingRole({}).value(), role_);
}

TEST_F(KeyDeskTest, AServerThatIsAwayIsNamed) {
  const Status away =
      catalog::OpenDataSource(fmt::format("postgresql://{}@127.0.0.1:1/postgres", role_),
                              KeySecret(Keys()))
          .status();
  EXPECT_EQ(away.sqlstate(), "08001");
  EXPECT_THAT(away.message(), HasSubstr("at 127.0.0.1:1"));
}

TEST_F(KeyDeskTest, StatementsCanBeCancelled) {
  const auto source = catalog::OpenDataSource(url_, KeySecret(Keys())).value();
  std::stop_source stop;
  Status slept;
  {
    const std::jthread sleeper([&] {
      slept = source->Execute("SELECT pg_sleep(600)", nullptr, stop.get_token()).status();
    });
    const std::string asleep = fmt::format(
        "DO $$ BEGIN LOOP EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE usename = '{}' AND "
        "query LIKE '%pg_sleep%' AND state = 'active'); PERFORM pg_sleep(0.01); "
        "PERFORM pg_stat_clear_snapshot(); END LOOP; END $$",
        role_);
    Admin(asleep);
    stop.request_stop();
  }
  EXPECT_EQ(slept.sqlstate(), "57014");
}

TEST_F(KeyDeskTest, AServerThatDoesNotAskHasNoKeys) {
  EXPECT_EQ(FindScramKeys({database_.url(), "whatever"}).value(), std::nullopt);
}

TEST_F(KeyDeskTest, AWrongPasswordHasNoKeys) {
  EXPECT_EQ(FindScramKeys({url_, "wrong"}).status().sqlstate(), "28P01");
}

}  // namespace
}  // namespace sluice::server::pgwire
