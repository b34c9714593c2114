#include <gmock/gmock.h>

#include "tests/server/gateway/running_gateway.h"
#include "tests/support/recording_sink.h"

// Clients of a gateway over a SQLite file have the rights of the gateway's user on the machine, but
// for what is refused.
namespace sluice::server {
namespace {

using ::testing::HasSubstr;

class SqliteGuardTest : public RunningGateway {
 protected:
  void SetUp() override {
    RunningGateway::SetUp();
    config_.max_statements = 16;  // a script keeps its place for a moment after its answer
    Start();
    client_ = Connect();
    Run("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <"
        " 50) SELECT i AS a, i % 2 AS y FROM n");
    Run("SELECT a, y FROM t TO TRAIN LinearClassifier LABEL y INTO m");
  }
  std::string Run(const std::string& sql) {
    RecordingSink sink;
    return client_->Run(sql, {}, sink).ToString();
  }

  std::unique_ptr<GatewayClient> client_;
};

TEST_F(SqliteGuardTest, WhatTheOtherDoorRefusesIsRefusedHere) {
  const std::string other = path_ + "-other.db";
  for (const std::string& sql : {
           "ATTACH '" + other + "' AS o",
           std::string("ATTACH DATABASE ':memory:' AS o"),
           "VACUUM INTO '" + other + "'",
           std::string("PRAGMA writable_schema = 1"),
           std::string("PRAGMA journal_mode = OFF"),
           std::string("SELECT load_extension('x')"),
           std::string("SELECT fts3_tokenizer('evil', x'4141414141414141')"),
           std::string("UPDATE sluice_models SET name = 'mine'"),
           std::string("INSERT INTO sluice_jobs (id) VALUES (1)"),
           std::string("DELETE FROM sluice_model_chunks"),
           std::string("DROP TABLE sluice_models"),
           std::string("ALTER TABLE sluice_models RENAME TO mine"),
           std::string("CREATE TRIGGER x AFTER INSERT ON sluice_jobs BEGIN SELECT 1; END"),
           std::string("CREATE INDEX x ON sluice_models (name)"),
       }) {
    EXPECT_THAT(Run(sql), HasSubstr("42501: permission denied")) << sql;
  }
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(SqliteGuardTest, WhatIsTheUsersOwnGoesOn) {
  for (const char* const sql :
       {"SELECT count(*) FROM sluice_models", "CREATE TABLE mine (a); INSERT INTO mine VALUES (1)",
        "CREATE TEMP TABLE kept AS SELECT 1 AS a; DROP TABLE kept",
        "BEGIN; UPDATE mine SET a = 2; COMMIT", "VACUUM", "PRAGMA user_version = 7",
        "SELECT a FROM t TO PREDICT scored.y USING m", "DROP MODEL m"}) {
    EXPECT_EQ(Run(sql), Status().ToString()) << sql;
  }
}

// Selects of our statements are read on other connections than the session's.
TEST_F(SqliteGuardTest, NoSelectThatIsReadRegistersATokenizer) {
  for (const char* const call :
       {"fts3_tokenizer('simple')", "fts3_tokenizer('evil', x'4141414141414141')"}) {
    for (const char* const rest :
         {" IS NOT NULL TO TRAIN LinearClassifier LABEL y INTO n", " IS NOT NULL TO EVALUATE m",
          " IS NOT NULL TO PREDICT y USING m"}) {
      EXPECT_THAT(Run(std::string("SELECT a, y FROM t WHERE ") + call + rest),
                  HasSubstr("fts3_tokenizer is off"))
          << call << rest;
    }
  }
}

// A statement of ours has SQLite ask other questions in between.
TEST_F(SqliteGuardTest, StatementsOfSluiceDoNotLiftTheGuard) {
  EXPECT_THAT(
      Run("CREATE TEMP TABLE kept AS SELECT 1 AS a; SELECT a FROM t TO PREDICT scored.y USING"
          " m; ATTACH ':memory:' AS o"),
      HasSubstr("42501: permission denied"));
}

}  // namespace
}  // namespace sluice::server
