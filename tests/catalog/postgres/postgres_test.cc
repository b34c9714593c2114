#include <gmock/gmock.h>

#include "catalog/model_store.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "tests/catalog/both_databases.h"

// Behaviour specific to PostgreSQL.
namespace sluice::catalog {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class PostgresTest : public BothDatabases {
 protected:
  // The URL of this test's database for another role.
  std::string UrlFor(const std::string& role) {
    std::string other = url();
    other.replace(other.find("postgres@"), 8, role);
    return other;
  }

  void TearDown() override {
    if (!role_.empty()) {
      Run("DROP OWNED BY " + role_);
      Run("DROP ROLE " + role_);
    }
    BothDatabases::TearDown();
  }
  // A role that may only read.
  void MakeReader() {
    role_ = "reader_" + url().substr(url().rfind('_') + 1);
    Run("CREATE ROLE " + role_ + " LOGIN PASSWORD 'right'");
    Run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO " + role_);
  }
  std::string role_;
};

TEST_P(PostgresTest, AKilledBackendIsALostConnection) {
  MakeNumbers(10);
  const auto dataset = source().OpenDataset("SELECT id FROM t", {});
  ASSERT_TRUE(dataset.ok());
  const auto reader = source().OpenReader((*dataset)->spec());
  ASSERT_TRUE(reader.ok());
  Select(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
      " WHERE datname = current_database() AND pid <> pg_backend_pid()");
  const auto stream = (*reader)->Read((*dataset)->spec().shards(0), {0});
  RowBatch batch;
  const Status lost = stream.ok() ? (*stream)->Next(10, &batch) : stream.status();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.code(), Code::kUnavailable) << lost.ToString();
}

TEST_P(PostgresTest, TheSessionComesBackAfterALoss) {
  const auto killed =
      source().Execute("SELECT pg_terminate_backend(pg_backend_pid())", nullptr, {});
  ASSERT_FALSE(killed.ok());
  EXPECT_EQ(killed.status().code(), Code::kUnavailable);
  EXPECT_EQ(Select("SELECT 1")[0][0], "1");
}

TEST_P(PostgresTest, UnreachableServersAreNamed) {
  const auto refused = OpenDataSource("postgresql://me:secret@127.0.0.1:1/db");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().sqlstate(), "08001");
  EXPECT_THAT(refused.status().message(), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(refused.status().message(), HasSubstr("refused"));
  EXPECT_THAT(refused.status().ToString(), Not(HasSubstr("secret")));
  const auto unknown = OpenDataSource("postgresql://me@no-such-host.invalid:5432/db");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().sqlstate(), "08001");
  const auto malformed = OpenDataSource("postgresql://host:port/db");
  ASSERT_FALSE(malformed.ok());
}

TEST_P(PostgresTest, AWrongPasswordIsToldWithoutIt) {
  // The role belongs to the server, not to this test's database.
  Run("DO $$ BEGIN CREATE ROLE needs_password LOGIN; EXCEPTION WHEN duplicate_object THEN NULL;"
      " END $$");
  Run("ALTER ROLE needs_password PASSWORD 'right one'");
  const std::string user = UrlFor(testing::kPasswordRole);
  const auto wrong = OpenDataSource(user, "wrong one");
  if (wrong.ok()) {
    GTEST_SKIP() << "this server trusts everybody";
  }
  EXPECT_EQ(wrong.status().sqlstate(), "28P01");
  EXPECT_EQ(wrong.status().code(), Code::kPermissionDenied);
  EXPECT_THAT(wrong.status().message(), HasSubstr("password authentication failed"));
  EXPECT_THAT(wrong.status().ToString(), Not(HasSubstr("wrong one")));
  const auto none = OpenDataSource(user);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.status().sqlstate(), "28P01");
  EXPECT_THAT(none.status().message(), HasSubstr("a password is needed"));
  const auto right = OpenDataSource(user, "right one");
  ASSERT_TRUE(right.ok()) << right.status().ToString();
  EXPECT_EQ((*right)->secret(), "right one");
  EXPECT_EQ((*right)->url(), user);
  std::string with_password = user;
  with_password.insert(with_password.find('@'), ":right%20one");
  const auto in_url = OpenDataSource(with_password);
  ASSERT_TRUE(in_url.ok()) << in_url.status().ToString();
  EXPECT_EQ((*in_url)->url(), user);
  EXPECT_EQ((*in_url)->secret(), "right one");
}

TEST_P(PostgresTest, AMissingDatabaseIsNotFound) {
  const auto missing = OpenDataSource(url() + "_missing");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().sqlstate(), "3D000");
  EXPECT_EQ(missing.status().code(), Code::kNotFound);
  EXPECT_THAT(missing.status().message(), HasSubstr("does not exist"));
}

TEST_P(PostgresTest, ASmallRoleReadsWhatItMay) {
  MakeNumbers(5000);
  Run("CREATE TABLE hidden (x integer)");
  Run("REVOKE ALL ON SCHEMA public FROM PUBLIC");
  Run("GRANT USAGE ON SCHEMA public TO PUBLIC");
  MakeReader();
  Run("REVOKE ALL ON hidden FROM " + role_);
  const auto reader = OpenDataSource(UrlFor(role_), "right");
  ASSERT_TRUE(reader.ok()) << reader.status().ToString();
  EXPECT_EQ((*reader)->secret(), "right");
  EXPECT_THAT((*reader)->url(), Not(HasSubstr("right")));
  EXPECT_EQ((*reader)->Describe("SELECT * FROM t")->columns.size(), 4U);

  const auto hidden = (*reader)->OpenDataset("SELECT * FROM hidden", {});
  ASSERT_FALSE(hidden.ok());
  EXPECT_EQ(hidden.status().sqlstate(), "42501");

  // Without the right to stage, a select that cannot be cut becomes a single shard.
  DatasetOptions options;
  options.rows_per_shard = 100;
  const auto whole = (*reader)->OpenDataset("SELECT id FROM t ORDER BY id DESC", options);
  ASSERT_TRUE(whole.ok()) << whole.status().ToString();
  EXPECT_EQ((*whole)->spec().shards_size(), 1);
  EXPECT_EQ(ReadAll(**reader, (*whole)->spec())->at(0)[0], "5000");

  const auto unsteady = (*reader)->OpenDataset("SELECT random() FROM t", options);
  ASSERT_FALSE(unsteady.ok());
  EXPECT_EQ(unsteady.status().sqlstate(), "42501");
  EXPECT_THAT(unsteady.status().diagnostics()[0].hint, HasSubstr("GRANT USAGE, CREATE"));

  const auto catalog = OpenCatalog(UrlFor(role_), "right");
  ASSERT_TRUE(catalog.ok());
  const auto stored = (*catalog)->models().Put(ModelVersion{}, "w", true);
  ASSERT_FALSE(stored.ok());
  EXPECT_EQ(stored.status().sqlstate(), "42501");
  EXPECT_THAT(stored.status().diagnostics()[0].hint, HasSubstr("CREATE SCHEMA"));
}

TEST_P(PostgresTest, RowLevelSecurityCounts) {
  MakeNumbers(1000);
  MakeReader();
  Run("ALTER TABLE t ENABLE ROW LEVEL SECURITY");
  Run("CREATE POLICY few ON t FOR SELECT USING (id <= 7)");
  const auto reader = OpenDataSource(UrlFor(role_), "right");
  ASSERT_TRUE(reader.ok());
  const auto dataset = (*reader)->OpenDataset("SELECT id FROM t", {});
  ASSERT_TRUE(dataset.ok());
  EXPECT_EQ(ReadAll(**reader, (*dataset)->spec())->size(), 7U);
  EXPECT_EQ((*dataset)->CountRows().value(), 7);
}

TEST_P(PostgresTest, PartitionsAndFunctionsAreNotCutButRead) {
  Run("CREATE TABLE parts (id integer, k integer) PARTITION BY LIST (k)");
  Run("CREATE TABLE part_0 PARTITION OF parts FOR VALUES IN (0)");
  Run("CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1)");
  Run("INSERT INTO parts SELECT i, i % 2 FROM generate_series(1, 3000) i");
  DatasetOptions options;
  options.rows_per_shard = 500;
  for (const std::string select : {"SELECT * FROM parts", "SELECT * FROM parts WHERE k = 1",
                                   "SELECT generate_series(1, 2), id FROM part_0",
                                   "SELECT * FROM generate_series(1, 3000) i"}) {
    SCOPED_TRACE(select);
    const auto dataset = source().OpenDataset(select, options);
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    const int64_t expected = std::stoll(Select("SELECT count(*) FROM (" + select + ") s")[0][0]);
    EXPECT_EQ(static_cast<int64_t>(ReadAll(source(), (*dataset)->spec())->size()), expected);
  }
}

TEST_P(PostgresTest, AnAbandonedStageIsDroppedByWhoeverLooks) {
  MakeNumbers(100);
  const auto mine = source().OpenDataset("SELECT id, random() FROM t", {});
  ASSERT_TRUE(mine.ok()) << mine.status().ToString();
  Run("CREATE UNLOGGED TABLE sluice_stage.stage_abandoned (c0 integer)");
  Run("COMMENT ON TABLE sluice_stage.stage_abandoned IS 'Sluice keeps the rows of a select in "
      "sluice_stage.stage_abandoned while it reads them'");
  ASSERT_TRUE(source().DropLeftovers().ok());
  EXPECT_FALSE(source().ResolveTable({"sluice_stage", "stage_abandoned"}).value().has_value());
  EXPECT_TRUE(ReadAll(source(), (*mine)->spec()).ok()) << "one whose owner lives stays";
}

// Nobody else reads a stage, whatever default privileges say, and nobody else can take what keeps
// it: any role could lock an advisory lock, and make the readers wait behind it.
TEST_P(PostgresTest, AStageIsItsOwnersAlone) {
  MakeNumbers(100);
  Run("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC, pg_monitor");
  const auto mine = source().OpenDataset("SELECT id, random() FROM t", {});
  ASSERT_TRUE(mine.ok()) << mine.status().ToString();
  const std::string stage = (*mine)->spec().staging_table();
  ASSERT_NE(stage, "");
  EXPECT_EQ(Select("SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = '" +
                   stage + "'::regclass AND a.grantee <> c.relowner")[0][0],
            "0");
  EXPECT_EQ(Select("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database ="
                   " (SELECT oid FROM pg_database WHERE datname = current_database())")[0][0],
            "0");
  EXPECT_TRUE(source().HoldDataset((*mine)->spec()).ok());
}

// The owner of a schema may drop the tables in it.
TEST_P(PostgresTest, NothingIsStagedInTheSchemaOfAnother) {
  MakeNumbers(100);
  const std::string role = "stage_owner_" + Select("SELECT current_database()")[0][0];
  Run("CREATE ROLE " + role);
  Run("CREATE SCHEMA sluice_stage AUTHORIZATION " + role);
  const auto mine = source().OpenDataset("SELECT id, random() FROM t", {});
  Run("DROP OWNED BY " + role);
  Run("DROP ROLE " + role);
  EXPECT_EQ(mine.status().sqlstate(), "42501") << mine.status().ToString();
}

// Any role can hold any advisory lock.
TEST_P(PostgresTest, AHeldAdvisoryLockKeepsNobodyFromWriting) {
  ASSERT_TRUE(catalog().MakeTables().ok());
  MakeNumbers(10);
  const auto enemy = PostgresConnection::Connect({url(), ""});
  ASSERT_TRUE(enemy.ok());
  ASSERT_TRUE((*enemy)
                  ->Run("SELECT pg_advisory_lock(736811223),"
                        " pg_advisory_lock(hashtextextended('\"public\".\"scored\"', 736811225))")
                  .ok());
  ResultTable table;
  table.name = {"public", "scored"};
  Schema schema;
  schema.columns = {{"a", DataType::kInt64, "bigint"}};
  auto writer = source().OpenWriter(table, schema);
  ASSERT_TRUE(writer.ok()) << writer.status().ToString();
  const Status written = (*writer)->Commit({});
  EXPECT_TRUE(written.ok()) << written.ToString();
  EXPECT_EQ(Select("SELECT count(*) FROM scored")[0][0], "0");
}

TEST_P(PostgresTest, AnAbandonedStageIsDroppedByTheNext) {
  MakeNumbers(100);
  Run("CREATE SCHEMA sluice_stage");
  Run("CREATE UNLOGGED TABLE sluice_stage.stage_abandoned (c0 integer)");
  Run("COMMENT ON TABLE sluice_stage.stage_abandoned IS 'Sluice keeps the rows of a select in "
      "sluice_stage.stage_abandoned while it reads them'");
  // Tables that only look like ours, without our mark.
  Run("CREATE UNLOGGED TABLE sluice_stage.stage_plan (c0 integer)");
  Run("CREATE TABLE sluice_stage.stage_results (c0 integer)");
  Run("COMMENT ON TABLE sluice_stage.stage_results IS 'Sluice keeps the rows of a select in "
      "sluice_stage.stage_abandoned while it reads them'");
  const auto mine = source().OpenDataset("SELECT id, random() FROM t", {});
  ASSERT_TRUE(mine.ok()) << mine.status().ToString();
  EXPECT_FALSE(source().ResolveTable({"sluice_stage", "stage_abandoned"}).value().has_value());
  EXPECT_TRUE(source().ResolveTable({"sluice_stage", "stage_plan"}).value().has_value());
  EXPECT_TRUE(source().ResolveTable({"sluice_stage", "stage_results"}).value().has_value());
  // A table whose owner is alive stays.
  const auto other = source().OpenDataset("SELECT id, random() FROM t", {});
  ASSERT_TRUE(other.ok());
  const std::string stage =
      (*mine)->spec().staging_table().substr(std::string("sluice_stage.").size());
  EXPECT_TRUE(source().ResolveTable({"sluice_stage", stage}).value().has_value());
}

TEST_P(PostgresTest, ShardsDoNotChangeWhenTheTableIsAnalysed) {
  Run("CREATE TABLE big AS SELECT i, 'some text ' || i AS t FROM generate_series(1, 260000) i");
  DatasetOptions options;
  options.rows_per_shard = 10'000;
  const auto before = source().OpenDataset("SELECT * FROM big", options);
  Run("ANALYZE big");
  const auto after = source().OpenDataset("SELECT * FROM big", options);
  ASSERT_TRUE(before.ok() && after.ok());
  ASSERT_EQ((*before)->spec().shards_size(), (*after)->spec().shards_size());
  EXPECT_NEAR((*after)->spec().shards_size(), 26, 1);
  for (int i = 0; i < (*after)->spec().shards_size(); ++i) {
    EXPECT_EQ((*before)->spec().shards(i).begin(), (*after)->spec().shards(i).begin());
  }
  EXPECT_EQ(ReadAll(source(), (*after)->spec())->size(), 260'000U);
}

TEST_P(PostgresTest, CopyInAStatementIsRefused) {
  MakeNumbers(3);
  for (const std::string sql : {"COPY t FROM STDIN", "COPY t TO STDOUT"}) {
    const auto own = OpenDatabase(url()).value().source;  // which a busy server can cost (08006)
    const auto copy = own->Execute(sql, nullptr, {});
    ASSERT_FALSE(copy.ok());
    EXPECT_EQ(copy.status().sqlstate(), "0A000") << copy.status().ToString();
    EXPECT_EQ(Select("SELECT count(*) FROM t")[0][0], "3");
  }
}

TEST_P(PostgresTest, CopyMovesWhatTheReceiverHasOrTakes) {
  struct Copying final : RowReceiver {
    Status Header(const Schema&) override { return OkStatus(); }
    Status Rows(const RowBatch&) override { return OkStatus(); }
    Status Copied(std::string_view text) override {
      taken += text;
      return OkStatus();
    }
    Result<std::string> NextToCopy() override {
      if (pieces.empty()) {
        return failure.ok() ? Result<std::string>(std::string()) : failure;
      }
      const std::string piece = pieces.front();
      pieces.erase(pieces.begin());
      return piece;
    }
    std::string taken;
    std::vector<std::string> pieces;
    Status failure;
  } copying;
  Run("CREATE TABLE copied (a integer, b text)");
  copying.pieces = {"1\tx\n2", "\ty\n"};
  const auto in = source().Execute("COPY copied FROM STDIN", &copying, {});
  ASSERT_TRUE(in.ok()) << in.status().ToString();
  EXPECT_EQ(in->tag, "COPY 2");
  ASSERT_TRUE(source().Execute("COPY copied TO STDOUT", &copying, {}).ok());
  EXPECT_EQ(copying.taken, "1\tx\n2\ty\n");
  copying.pieces = {"3\tz\n"};
  copying.failure = Cancelled("enough");
  EXPECT_EQ(source().Execute("COPY copied FROM STDIN", &copying, {}).status().code(),
            Code::kCancelled);
  copying.failure = OkStatus();
  copying.pieces = {"x\ty\n"};
  EXPECT_EQ(source().Execute("COPY copied FROM STDIN", &copying, {}).status().sqlstate(), "22P02");
  EXPECT_EQ(Select("SELECT count(*) FROM copied")[0][0], "2");
}

TEST_P(PostgresTest, RowsOfARuleArrive) {
  Run("CREATE TABLE ruled (a integer)");
  Run("CREATE RULE instead AS ON INSERT TO ruled DO INSTEAD SELECT new.a + 1 AS next, ';' AS s");
  EXPECT_EQ(Select("INSERT INTO ruled VALUES (7)"), (Texts{{"8", ";"}}));
  EXPECT_EQ(Select("/* ; */ WITH w AS (SELECT 1) INSERT INTO ruled VALUES (8)"),
            (Texts{{"9", ";"}}));
}

TEST_P(PostgresTest, ErrorsKeepDetailAndHint) {
  MakeNumbers(1);
  const auto duplicate = source().Execute("INSERT INTO t (id) VALUES (1)", nullptr, {});
  ASSERT_FALSE(duplicate.ok());
  EXPECT_THAT(duplicate.status().diagnostics()[0].detail, HasSubstr("(id)=(1) already exists"));
  const auto near = source().Describe("SELECT t.idd FROM t");
  ASSERT_FALSE(near.ok());
  EXPECT_THAT(near.status().diagnostics()[0].hint, HasSubstr("\"t.id\""));
}

INSTANTIATE_TEST_SUITE_P(Databases, PostgresTest, ::testing::Values("postgresql"), DatabaseName);

// A transaction that has imported a snapshot can export it again, and so on.
TEST_P(PostgresTest, ADatasetOutlivesWhoOpenedIt) {
  Run("CREATE TABLE t AS SELECT i FROM generate_series(1, 100) AS i");
  auto first = source().OpenDataset("SELECT i FROM t", {}).value();
  const DatasetSpec opened = first->spec();
  Run("DELETE FROM t WHERE i > 10");
  const auto elsewhere = OpenDataSource(url()).value();
  auto second = elsewhere->HoldDataset(opened);
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_NE((*second)->spec().snapshot(), opened.snapshot());
  first.reset();
  EXPECT_EQ(ReadShard(source(), opened, 0).status().sqlstate(), "72000");
  auto third = source().HoldDataset((*second)->spec());
  ASSERT_TRUE(third.ok()) << third.status().ToString();
  second->reset();
  EXPECT_EQ(ReadShard(*elsewhere, (*third)->spec(), 0)->size(), 100U);
  third->reset();
  EXPECT_EQ(source().HoldDataset(opened).status().sqlstate(), "72000");
}

}  // namespace
}  // namespace sluice::catalog
