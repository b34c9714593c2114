// Who may read the files that Sluice makes over SQLite.
#include <gtest/gtest.h>

#include "tests/server/pgwire/sqlite_door_fixture.h"

namespace sluice {
namespace {

TEST_F(SqliteDoorTest, OthersReadNoFilesThatSluiceMakes) {
  const auto made = [this](const std::string& umask) {
    return RunInShell(fmt::format("cd {} && rm -f new.db && umask {} && {} sql --source "
                                  "sqlite:new.db -c 'CREATE TABLE t (a INTEGER)' >/dev/null && "
                                  "stat -c %a new.db 2>&1",
                                  home_, umask, SLUICE_BINARY))
        .output;
  };
  EXPECT_EQ(made("022"), "640\n");
  EXPECT_EQ(made("002"), "660\n");
  EXPECT_EQ(made("077"), "600\n");
  // One that is there keeps its rights.
  EXPECT_EQ(
      RunInShell(fmt::format("cd {} && rm -f new.db && touch new.db && chmod 644 new.db && {} "
                             "sql --source sqlite:new.db -c 'CREATE TABLE t (a INTEGER)' "
                             ">/dev/null && stat -c %a new.db 2>&1",
                             home_, SLUICE_BINARY))
          .output,
      "644\n");
}

TEST_F(SqliteDoorTest, OthersReadNoFilesOfAGateway) {
  Start();
  EXPECT_EQ(Psql("BEGIN;\nINSERT INTO needs VALUES (1);\nCOMMIT;\n\\! cd " + home_ +
                     " && find . -type f -name 'shop.db*' | sort && find . -type f -perm /007 "
                     "-not -name '*.csv' -not -name script.sql\n",
                 "-q")
                .output,
            "./shop.db\n");
}

}  // namespace
}  // namespace sluice
