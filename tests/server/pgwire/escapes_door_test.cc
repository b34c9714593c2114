#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/pgwire/door_fixture.h"

// What a user wants of another's at the PostgreSQL door: clients/two_users.py. What is the same at
// all doors is tried in tests/server/gateway/escapes_test.cc.
namespace sluice {
namespace {

class EscapesDoorTest : public DoorTest {
 protected:
  void SetUp() override {
    DoorTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    Direct(fmt::format("CREATE ROLE {} LOGIN", testing::kPasswordRole));  // it may be there
    for (const std::string& role : {ann_, bob_}) {
      ASSERT_EQ(Direct(fmt::format("CREATE ROLE {0} LOGIN PASSWORD 'secret' IN ROLE {1};"
                                   "GRANT CREATE ON SCHEMA public TO {0}",
                                   role, testing::kPasswordRole))
                    .exit_code,
                0);
    }
  }
  void TearDown() override {
    gateway_.reset();
    for (const std::string& role : {ann_, bob_}) {
      Direct(fmt::format("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", role));
    }
    DoorTest::TearDown();
  }
  void Try(const std::string& auth) {
    Start("--auth " + auth);
    const ShellOutcome came_in = RunInShell(
        fmt::format("PGPASSWORD=secret psql -XAtq '{}' -c 'SELECT 1' 2>&1", Conninfo(bob_)));
    if (came_in.output.find("without asking for the password") != std::string::npos) {
      GTEST_SKIP() << "this PostgreSQL does not ask members of " << testing::kPasswordRole;
    }
    EXPECT_EQ(RunInShell(fmt::format("PGPASSWORD=secret /usr/bin/python3 {}/tests/server/pgwire/"
                                     "clients/two_users.py '{}' '{}' 2>&1",
                                     SLUICE_SOURCE_DIR, Conninfo(ann_), Conninfo(bob_)))
                  .output,
              "ok\n");
  }

  const std::string ann_ = "ann_" + Name();
  const std::string bob_ = "bob_" + Name();
};

TEST_F(EscapesDoorTest, WithPasswords) {
  Try("password");
}

TEST_F(EscapesDoorTest, WithScram) {
  Try("scram");
}

}  // namespace
}  // namespace sluice
