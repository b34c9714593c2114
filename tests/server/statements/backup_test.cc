#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"
#include "tests/support/recording_sink.h"

// What docs/backup.md says, as it is written there.
namespace sluice::server {
namespace {

class BackupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/sluice-backup-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The page's only block of that language behind the heading.
  static std::string Block(const std::string& heading, const std::string& language) {
    std::ifstream file(std::filesystem::path(SLUICE_SOURCE_DIR) / "docs/backup.md");
    std::stringstream text;
    text << file.rdbuf();
    const std::string page = text.str();
    const std::string open = "```" + language + "\n";
    const size_t begin = page.find(open, page.find("## " + heading)) + open.size();
    return page.substr(begin, page.find("```", begin) - begin);
  }
  static Status Run(const std::string& url, const std::string& script) {
    ASSIGN_OR_RETURN(const catalog::Database database, catalog::OpenDatabase(url));
    Session session(*database.source, *database.catalog, "tester");
    RecordingSink sink;
    return RunScript(script, session, sink);
  }
  static void Train(const std::string& url, const std::string& model) {
    const Status trained =
        Run(url,
            "CREATE TABLE t (a integer, y integer); INSERT INTO t VALUES (1, 0), (2, 1), (3, 0);"
            " SELECT a, y FROM t TO TRAIN LinearClassifier WITH split.kind='none' LABEL y INTO " +
                model);
    ASSERT_TRUE(trained.ok()) << trained.ToString();
  }
  // Predicts, and trains a further version.
  static void ExpectUsable(const std::string& url) {
    const Status used =
        Run(url,
            "SELECT 1 AS a TO PREDICT y USING churn; SELECT 1 AS a, 0 AS y UNION ALL SELECT 2, 1"
            " TO TRAIN LinearClassifier WITH split.kind='none' LABEL y INTO churn;"
            " SELECT 1 AS a TO PREDICT y USING churn:2");
    EXPECT_TRUE(used.ok()) << used.ToString();
  }
  std::string File(const std::string& name) const { return folder_ + "/" + name; }
  // Runs a block of the page in the folder.
  void Shell(const std::string& from, const std::string& to, const std::string& block) const {
    const ShellOutcome outcome = RunInShell(
        fmt::format("cd {}; set -e; FROM='{}'; TO='{}'; PATH=$PATH:/usr/lib/postgresql/15"
                    "/bin; exec 2>&1; {}",
                    folder_, from, to, block));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  }

  std::string folder_;
};

TEST_F(BackupTest, PostgresSchemaIsRestored) {
  const testing::PostgresTestDatabase from, to;
  if (from.url().empty()) {
    GTEST_SKIP() << "no PostgreSQL server";
  }
  Train(from.url(), "churn");
  Shell(from.url(), to.url(), Block("PostgreSQL", "sh"));
  ExpectUsable(to.url());
}

TEST_F(BackupTest, SqliteFileIsCopied) {
  Train("sqlite:" + File("a.db"), "churn");
  Shell("a.db", "b.db", Block("SQLite", "sh"));
  ExpectUsable("sqlite:" + File("b.db"));
}

TEST_F(BackupTest, OneModelMoves) {
  Train("sqlite:" + File("a.db"), "churn");
  Train("sqlite:" + File("other.db"), "another");
  std::string moves = Block("SQLite", "sql");
  moves.replace(moves.find("other.db"), 8, File("other.db"));
  const Status moved = Run("sqlite:" + File("a.db"), moves);
  ASSERT_TRUE(moved.ok()) << moved.ToString();
  ExpectUsable("sqlite:" + File("other.db"));
}

}  // namespace
}  // namespace sluice::server
