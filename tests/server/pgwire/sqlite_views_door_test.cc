#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

// SQLite expands views while it prepares a statement, and asks nothing meanwhile.
TEST_F(SqliteDoorTest, ViewsOfViewsHoldNobodyUp) {
  Start();
  std::string columns, views = "CREATE VIEW p0 AS SELECT * FROM wide;\n";
  for (int i = 0; i < 60; ++i) {
    columns += fmt::format("{}c{} int", i == 0 ? "" : ", ", i);
  }
  for (int i = 1; i <= 15; ++i) {  // each takes twice what the one before does
    views += fmt::format("CREATE VIEW p{0} AS SELECT * FROM p{1} UNION ALL SELECT * FROM p{1};\n",
                         i, i - 1);
  }
  for (int i = 0; i < 50; ++i) {
    views += fmt::format("CREATE VIEW w{} AS SELECT * FROM p15;\n", i);
  }
  ASSERT_EQ(Psql(fmt::format("CREATE TABLE wide ({});\n{}", columns, views)).output.find("ERROR"),
            std::string::npos);
  const ShellOutcome listed = RunInShell(
      fmt::format("timeout 60 psql -X -P pager=off '{}' -c '\\d p1' -c '\\dv' 2>&1", Conninfo()));
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.output.find("c59"), std::string::npos) << listed.output;
  EXPECT_NE(listed.output.find("w49"), std::string::npos) << listed.output;
  const ShellOutcome cancelled = RunInShell(fmt::format(
      "timeout -s INT 1 psql -X '{}' -c 'SELECT * FROM p15 JOIN p14 USING (c0)' 2>&1", Conninfo()));
  EXPECT_NE(cancelled.output.find("canceling statement due to user request"), std::string::npos)
      << cancelled.output;
}

}  // namespace
}  // namespace sluice
