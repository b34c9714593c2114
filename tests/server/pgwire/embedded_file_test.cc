#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/server/pgwire/embedded_session_fixture.h"

// What becomes of a session whose database file is read-only, locked, deleted, replaced,
// overwritten or on a full disk: each with the words that its client reads.
namespace sluice::server::pgwire {
namespace {

constexpr uid_t kNobody = 65534;

using Heard = std::vector<std::string>;

class EmbeddedFileTest : public EmbeddedSessionsTest {
 protected:
  void SetUp() override {
    std::filesystem::remove(file_);
    std::ofstream(file_).close();
    Ask(*Open(), "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1)");
  }
  std::unique_ptr<EmbeddedServer> Open() const { return OpenServer("sqlite:" + file_); }
  Heard Error(const std::string& rest, const char* ready = "ReadyForQuery I") const {
    return {"ErrorResponse " + rest, ready};
  }
  std::string Gone(const std::string& what) const {
    return "the database file " + file_ + " was " + what + " while it was in use";
  }
};

TEST_F(EmbeddedFileTest, TextsInUtf16AreReadInUtf8) {
  std::filesystem::remove(file_);
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(database,
                         "PRAGMA encoding = 'UTF-16le'; CREATE TABLE u (id INTEGER, t TEXT);"
                         "INSERT INTO u VALUES (1, 'grün'), (2, ''), (3, 'x')",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(database);
  const Heard heard = Ask(*Open(), "SELECT t FROM u ORDER BY id");
  EXPECT_THAT(heard, ::testing::IsSupersetOf({"DataRow grün", "DataRow ", "DataRow x"}));
}

TEST_F(EmbeddedFileTest, ADeletedFileTakesNothing) {
  const auto server = Open();
  std::string prepared;
  AppendMessage(prepared, 'P', std::string("s\0INSERT INTO t VALUES (7)\0\0\0", 29));
  AppendMessage(prepared, 'S', {});
  server->Take(prepared);
  GoOn(*server);
  const auto writer = Open();
  Ask(*writer, "BEGIN; INSERT INTO t VALUES (2)");
  std::filesystem::remove(file_);
  const std::string gone = "58P01 | " + Gone("deleted");
  EXPECT_EQ(Ask(*server, "INSERT INTO t VALUES (3)"), Error(gone));
  EXPECT_EQ(Ask(*server, "SELECT * FROM t").back(), "ReadyForQuery I");
  EXPECT_EQ(Ask(*server, "SELECT relname FROM pg_class"), Error(gone));
  EXPECT_EQ(Ask(*writer, "COMMIT"), Error(gone));
  std::string run;
  AppendMessage(run, 'B', std::string("\0s\0\0\0\0\0\0\0", 9));
  AppendMessage(run, 'E', std::string("\0\0\0\0\0", 5));
  AppendMessage(run, 'S', {});
  server->Take(run);
  EXPECT_EQ(GoOn(*server), (Heard{"BindComplete", "ErrorResponse " + gone, "ReadyForQuery I"}));
  EXPECT_EQ(catalog::OpenEmbeddedSession("sqlite:" + file_, {}).status().sqlstate(), "58P01");
  EXPECT_FALSE(std::filesystem::exists(file_)) << "it is not made anew";
}

TEST_F(EmbeddedFileTest, AReplacedFileIsNotTakenForTheOldOne) {
  const auto server = Open();
  const auto writer = Open();
  Ask(*writer, "BEGIN; INSERT INTO t VALUES (2)");
  const std::string other = file_ + ".other";
  std::filesystem::copy_file(file_, other);
  std::filesystem::rename(other, file_);
  const std::string replaced =
      "58030 | the database file " + file_ + " was replaced by another one while it was in use";
  EXPECT_EQ(Ask(*server, "INSERT INTO t VALUES (3)"), Error(replaced));
  EXPECT_EQ(Ask(*writer, "COMMIT"), Error(replaced));
  // Who connects now has the new one.
  EXPECT_EQ(Ask(*Open(), "SELECT a FROM t")[1], "DataRow 1");
}

TEST_F(EmbeddedFileTest, AnOverwrittenFileIsAnError) {
  const auto server = Open();
  EXPECT_EQ(Ask(*server, "SELECT a FROM t")[1], "DataRow 1");
  std::ofstream(file_, std::ios::in | std::ios::out) << std::string(8192, 'x');
  EXPECT_EQ(Ask(*server, "SELECT a FROM t"), Error("XX001 | file is not a database"));
  EXPECT_EQ(Ask(*server, "INSERT INTO t VALUES (2)"), Error("XX001 | file is not a database"));
  std::filesystem::resize_file(file_, 0);
  EXPECT_EQ(Ask(*server, "INSERT INTO t VALUES (2)"), Error("58030 | " + Gone("truncated")));
  EXPECT_EQ(std::filesystem::file_size(file_), 0U);
}

TEST_F(EmbeddedFileTest, AReadOnlyFileIsRead) {
  std::filesystem::permissions(file_, std::filesystem::perms(0444));
  const uid_t self = geteuid();
  ASSERT_EQ(self == 0 ? seteuid(kNobody) : 0, 0);  // root may write everything
  const auto server = Open();
  ASSERT_EQ(seteuid(self), 0);
  EXPECT_EQ(Ask(*server, "SELECT a FROM t")[1], "DataRow 1");
  EXPECT_EQ(Ask(*server, "SELECT relname FROM pg_class WHERE relkind = 'r'")[1], "DataRow t");
  const std::string refused = "25006 | attempt to write a readonly database";
  EXPECT_EQ(Ask(*server, "INSERT INTO t VALUES (2)"), Error(refused));
  EXPECT_EQ(Ask(*server, "CREATE TABLE u (a INTEGER)"), Error(refused));
  EXPECT_EQ(Ask(*server, "BEGIN; DELETE FROM t").back(), "ReadyForQuery E");
  EXPECT_EQ(Ask(*server, "ROLLBACK").front(), "CommandComplete ROLLBACK");
  EXPECT_EQ(Ask(*server, "CREATE TEMP TABLE u (a INTEGER)").front(),
            "CommandComplete CREATE TABLE");
  EXPECT_EQ(Ask(*server, "SELECT polname FROM pg_catalog.pg_policy").front(),
            "RowDescription polname 25");
}

// Its log would have to lie beside it.
TEST_F(EmbeddedFileTest, AFileWithALogNeedsAFolderThatCanBeWritten) {
  auto logged = catalog::OpenEmbeddedSession("sqlite:" + file_, {"ann", "shop", "", ""});
  ASSERT_TRUE(logged.ok() && (*logged)->Run("PRAGMA journal_mode = WAL").ok());
  *logged = nullptr;
  const std::string folder = file_ + "-alone";
  std::filesystem::create_directory(folder);
  std::filesystem::rename(file_, folder + "/t.db");
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
  const uid_t self = geteuid();
  ASSERT_EQ(self == 0 ? seteuid(kNobody) : 0, 0);
  const Status refused =
      catalog::OpenEmbeddedSession("sqlite:" + folder + "/t.db", {"ann", "shop", "", ""}).status();
  ASSERT_EQ(seteuid(self), 0);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(refused.sqlstate(), "25006") << refused.ToString();  // 58P01 on a read-only file system
  EXPECT_NE(refused.diagnostics()[0].hint.find("write-ahead log"), std::string::npos)
      << refused.ToString();
}

// A transaction that has read, and whose rows somebody else has changed, is told to begin again.
TEST_F(EmbeddedFileTest, AWriterBehindAReaderIsToldToBeginAgain) {
  auto logged = catalog::OpenEmbeddedSession("sqlite:" + file_, {"ann", "shop", "", ""});
  ASSERT_TRUE(logged.ok() && (*logged)->Run("PRAGMA journal_mode = WAL").ok());
  const auto reader = Open();
  const auto writer = Open();
  Ask(*reader, "BEGIN; SELECT * FROM t");
  EXPECT_EQ(Ask(*writer, "INSERT INTO t VALUES (2)").front(), "CommandComplete INSERT 0 1");
  EXPECT_EQ(Ask(*reader, "INSERT INTO t VALUES (3)"),
            Error("40001 | could not serialize access: another session has changed the database "
                  "since this transaction began to read",
                  "ReadyForQuery E"));
}

}  // namespace
}  // namespace sluice::server::pgwire
