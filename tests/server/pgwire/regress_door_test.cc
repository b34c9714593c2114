#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/server/pgwire/door_fixture.h"
#include "tests/support/postgres_regress.h"

// PostgreSQL's own regression tests by psql: through the door they answer, and fail, as they do at
// PostgreSQL itself. These files print no ids and no times. (How every statement of all files is
// routed: tests/parser/postgres_regress_test.cc.)
namespace sluice {
namespace {

class RegressDoor : public DoorTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string Answers(const std::string& url, const std::string& file) const {
    return RunInShell(fmt::format("psql -X -a -q -f '{}' '{}' 2>&1", file, url)).output;
  }
  testing::PostgresTestDatabase other_;
};

TEST_P(RegressDoor, DiffersNowhere) {
  const std::string folder = testing::PostgresRegressFolder();
  if (folder.empty()) {
    GTEST_SKIP() << "no source of libpg-query";
  }
  Start();
  const std::string file = fmt::format("{}/{}.sql", folder, GetParam());
  EXPECT_EQ(Answers(Conninfo(), file), Answers(other_.url(), file));
}

INSTANTIATE_TEST_SUITE_P(Files, RegressDoor,
                         ::testing::Values("arrays", "copy2", "errors", "plancache", "portals",
                                           "prepare", "prepared_xacts", "regex", "rowtypes",
                                           "select_into", "strings", "transactions", "union",
                                           "window", "with"),
                         [](const auto& file) { return std::string(file.param); });

}  // namespace
}  // namespace sluice
