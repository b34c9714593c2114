#include <gmock/gmock.h>
#include <sqlite3.h>

#include <memory>
#include <string>

#include "catalog/sqlite/sqlite_connection_internal.h"

// What a connection of Sluice's own does not do, whatever a user's text or trigger says.
namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;

class SqlitePrepare : public ::testing::Test {
 protected:
  void Run(const std::string& sql) {
    const Status done = connection_->Run(sql);
    ASSERT_TRUE(done.ok()) << sql << "\n" << done.ToString();
  }
  const std::unique_ptr<SqliteConnection> connection_ =
      SqliteConnection::Open({"file:/sqlite_prepare?vfs=memdb", ""},
                             SqliteConnection::Access::kReadWrite)
          .value();
};

TEST_F(SqlitePrepare, ATriggerChangesNoTableOfSluice) {
  Run("CREATE TABLE sluice_jobs (id INTEGER)");
  Run("INSERT INTO sluice_jobs VALUES (1)");
  for (const char* change : {"INSERT INTO sluice_jobs VALUES (2)", "DELETE FROM SLUICE_jobs",
                             "UPDATE \"sluice_jobs\" SET id = 3"}) {
    Run("CREATE TABLE t (a INTEGER)");
    Run(std::string("CREATE TRIGGER harm AFTER INSERT ON t BEGIN ") + change + "; END");
    const Status fired = connection_->Run("INSERT INTO t VALUES (1)");
    EXPECT_EQ(fired.sqlstate(), "42501") << fired.ToString();
    EXPECT_THAT(fired.message(), HasSubstr("trigger harm changes rows that are Sluice's own"));
    Run("DROP TABLE t");
  }
  EXPECT_EQ(connection_->QueryInteger("SELECT sum(id) FROM sluice_jobs").value(), 1);
  // Its own trigger may change what is the user's.
  Run("CREATE TABLE t (a INTEGER)");
  Run("CREATE TABLE log (a INTEGER)");
  Run("CREATE TRIGGER writes AFTER INSERT ON t BEGIN INSERT INTO log VALUES (new.a); END");
  Run("INSERT INTO t VALUES (1)");
  EXPECT_EQ(connection_->QueryInteger("SELECT count(*) FROM log").value(), 1);
}

TEST_F(SqlitePrepare, APragmaInThePlaceOfASelectIsNotRun) {
  const sqlite3_int64 heap = sqlite3_hard_heap_limit64(-1);
  for (const char* pragma :
       {"PRAGMA hard_heap_limit = 100000000", "PRAGMA hard_heap_limit(100000000)",
        "/* a */ PRAGMA query_only = 1", "EXPLAIN PRAGMA query_only = 1",
        "PRAGMA main.query_only(1)", "EXPLAIN QUERY PLAN PRAGMA case_sensitive_like = 1"}) {
    const Status prepared = connection_->PrepareSelect(pragma).status();
    EXPECT_THAT(prepared.message(), HasSubstr("expected a SELECT, not PRAGMA ")) << pragma;
  }
  EXPECT_EQ(sqlite3_hard_heap_limit64(-1), heap);
  EXPECT_EQ(connection_->QueryInteger("PRAGMA query_only").value(), 0);
  EXPECT_EQ(connection_->QueryInteger("SELECT 'a' LIKE 'A'").value(), 1);
  EXPECT_TRUE(connection_->PrepareSelect("SELECT * FROM pragma_table_list('t')").ok());
}

}  // namespace
}  // namespace sluice::catalog
