#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "catalog/job_store.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_stage_internal.h"
#include "tests/catalog/both_databases.h"

// Behaviour specific to SQLite.
namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SqliteTest : public BothDatabases {
 protected:
  Result<Texts> Read(std::string_view select, bool many_processes = false) {
    DatasetOptions options;
    options.many_processes = many_processes;
    ASSIGN_OR_RETURN(const auto dataset, source().OpenDataset(select, options));
    return ReadAll(source(), dataset->spec());
  }
};

TEST_P(SqliteTest, CellsOfAnotherClassAreConverted) {
  Run("CREATE TABLE mixed (i INTEGER, r REAL, t TEXT, b BOOLEAN, d DATE)");
  // A blob of text shows that the column's affinity is not TEXT.
  Run("INSERT INTO mixed VALUES (3.0, 5, 7, 'true', '2024-01-02'),"
      " (' 12', ' 1.5 ', 2.5, 0, 86400), (NULL, NULL, NULL, NULL, NULL)");
  const auto rows = Read("SELECT * FROM mixed");
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT((*rows)[0], ElementsAre("3", "5", "7", "t", "2024-01-02 00:00:00"));
  EXPECT_THAT((*rows)[1], ElementsAre("12", "1.5", "2.5", "f", "1970-01-02 00:00:00"));
  EXPECT_THAT((*rows)[2], ElementsAre("NULL", "NULL", "NULL", "NULL", "NULL"));
}

int64_t long_runs = 0;
int CountLongRun(unsigned, void*, void* statement, void*) {
  constexpr size_t kLong = 100'000;
  long_runs += std::string_view(sqlite3_sql(static_cast<sqlite3_stmt*>(statement))).size() > kLong;
  return 0;
}
int CountLongRuns(sqlite3* database, char**, const void*) {
  return sqlite3_trace_v2(database, SQLITE_TRACE_STMT, CountLongRun, nullptr);
}

// Each run of the select builds the list again.
TEST_P(SqliteTest, ALongListIsRunAFewTimesOnly) {
  Run("CREATE TABLE t (a INTEGER, y INTEGER)");
  Run("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
      " SELECT i, i % 2 FROM n");
  std::string select = "SELECT a, y FROM t WHERE a IN (0";
  for (int i = 1; i <= 30'000; ++i) {
    select += "," + std::to_string(i);
  }
  select += ")";
  const auto entry = reinterpret_cast<void (*)()>(CountLongRuns);
  sqlite3_auto_extension(entry);
  const auto counted = std::move(OpenDataSource(url())).value();
  const auto schema = counted->Describe(select);
  ASSERT_TRUE(schema.ok()) << schema.status().ToString();
  EXPECT_TRUE(counted->Statistics(select, *schema, {}).ok());
  EXPECT_EQ(counted->EstimateCut(select, {})->method, "rowid ranges");
  const auto dataset = counted->OpenDataset(select, {});
  ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
  EXPECT_EQ(ReadAll(*counted, (*dataset)->spec())->size(), 5'000U);
  sqlite3_cancel_auto_extension(entry);
  EXPECT_GT(long_runs, 0);
  EXPECT_LT(long_runs, 64);
}

// How much of a table a statement reads.
int StepsOf(const std::string& file, const std::string& select) {
  sqlite3* database = nullptr;
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_open(file.c_str(), &database), SQLITE_OK);
  EXPECT_EQ(sqlite3_prepare_v2(database, select.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << select;
  while (sqlite3_step(statement) == SQLITE_ROW) {
  }
  const int steps = sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_VM_STEP, 0);
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return steps;
}

TEST_P(SqliteTest, AConditionOnTheKeyDoesNotWidenAShard) {
  Run("CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER)");
  Run("INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
      "50000)"
      " SELECT i, i % 7 FROM n");
  const std::string file = url().substr(std::string_view("sqlite:").size());
  for (const char* condition : {"id <= 49000", "id >= 5", "rowid > 5 AND rowid < 49000",
                                "id BETWEEN 5 AND 49000", "id > 5 AND x < 9"}) {
    const auto dataset =
        source().OpenDataset(std::string("SELECT id, x FROM t WHERE ") + condition, {});
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    std::string select = (*dataset)->spec().shard_select();
    for (const auto& [bound, row] : {std::pair("{begin}", "20000"), std::pair("{end}", "20010")}) {
      const size_t at = select.find(bound);
      ASSERT_NE(at, std::string::npos) << select;
      select.replace(at, std::string_view(bound).size(), row);
    }
    EXPECT_LT(StepsOf(file, select), 1'000) << select;
  }
}

TEST_P(SqliteTest, ACellThatCannotBeConvertedIsNamed) {
  Run("CREATE TABLE mixed (i INTEGER)");
  Run("INSERT INTO mixed VALUES (1), (2), ('three')");
  const auto rows = Read("SELECT i FROM mixed");
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.status().sqlstate(), "22018");
  EXPECT_EQ(rows.status().message(), "column 'i' is bigint, but row 3 holds 'three'");
  EXPECT_THAT(rows.status().diagnostics()[0].hint, HasSubstr("NULLIF"));
  // A plain statement shows all of it.
  EXPECT_THAT(Select("SELECT i FROM mixed"),
              ElementsAre(ElementsAre("1"), ElementsAre("2"), ElementsAre("three")));
}

TEST_P(SqliteTest, ExpressionsAreTypedByTheirCells) {
  Run("CREATE TABLE t (a INTEGER, b)");
  Run("INSERT INTO t VALUES (NULL, 1), (1, 2.5)");
  const auto schema =
      source().Describe("SELECT a + 1, a / 2.0, a || 'x', b, count(*) OVER () FROM t");
  ASSERT_TRUE(schema.ok()) << schema.status().ToString();
  std::vector<DataType> types;
  for (const ColumnInfo& column : schema->columns) {
    types.push_back(column.type);
  }
  EXPECT_THAT(types, ElementsAre(DataType::kInt64, DataType::kDouble, DataType::kText,
                                 DataType::kDouble, DataType::kInt64));
}

TEST_P(SqliteTest, SparseRowidsAreCutByTheirDensity) {
  Run("CREATE TABLE sparse (id INTEGER PRIMARY KEY, x TEXT)");
  // Two clusters of ids, far from each other.
  Run("INSERT INTO sparse WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
      " i < 300000) SELECT CASE WHEN i <= 150000 THEN i ELSE 9000000000000000000 + i END, 'x' FROM "
      "n");
  DatasetOptions options;
  options.rows_per_shard = 50'000;
  const auto dataset = source().OpenDataset("SELECT id FROM sparse", options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
  EXPECT_EQ((*dataset)->CountRows().value(), 300'000);
  EXPECT_NEAR((*dataset)->spec().shards_size(), 6, 2);
  const auto rows = ReadAll(source(), (*dataset)->spec());
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->size(), 300'000U);
}

TEST_P(SqliteTest, TheLastRowidThereIsIsNotLost) {
  Run("CREATE TABLE ends (id INTEGER PRIMARY KEY)");
  Run("INSERT INTO ends VALUES (-9223372036854775808), (0), (9223372036854775807)");
  const auto rows = Read("SELECT id FROM ends");
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->size(), 3U);
}

TEST_P(SqliteTest, TablesWithoutRowidAreStaged) {
  Run("CREATE TABLE keyed (k TEXT PRIMARY KEY, v INTEGER) WITHOUT ROWID");
  Run("INSERT INTO keyed VALUES ('b', 2), ('a', 1)");
  const auto rows = Read("SELECT v FROM keyed");
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre("1"), ElementsAre("2")));
}

TEST_P(SqliteTest, AColumnCalledRowidIsNotTheRowid) {
  Run("CREATE TABLE fake (rowid TEXT, x INTEGER)");
  Run("INSERT INTO fake VALUES ('a', 1), ('b', 2)");
  const auto rows = Read("SELECT x FROM fake");
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_EQ(rows->size(), 2U);
}

TEST_P(SqliteTest, SnapshotsHoldWhileOthersCommit) {
  Run("CREATE TABLE t (x INTEGER)");
  Run("INSERT INTO t VALUES (0)");
  std::jthread writer([&](const std::stop_token& stop) {
    const auto other = OpenDataSource(url());
    ASSERT_TRUE(other.ok());
    while (!stop.stop_requested()) {
      // Rows are added in pairs: an odd number would mean reading in the middle of a transaction.
      EXPECT_TRUE((*other)->Execute("INSERT INTO t VALUES (1), (2)", nullptr, {}).ok());
    }
  });
  for (int i = 0; i < 20; ++i) {
    const auto dataset = source().OpenDataset("SELECT x FROM t", {});
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    const int64_t rows = (*dataset)->CountRows().value();
    EXPECT_EQ(rows % 2, 1);
    const auto first = source().OpenReader((*dataset)->spec());
    const auto second = source().OpenReader((*dataset)->spec());
    ASSERT_TRUE(first.ok() && second.ok());
    for (const auto* reader : {&*first, &*second}) {
      int64_t seen = 0;
      for (const ShardRange& shard : (*dataset)->spec().shards()) {
        const auto stream = (*reader)->Read(shard, {0});
        RowBatch batch;
        do {
          ASSERT_TRUE((*stream)->Next(1000, &batch).ok());
          seen += static_cast<int64_t>(batch.rows);
        } while (batch.rows > 0);
      }
      EXPECT_EQ(seen, rows);
    }
  }
}

TEST_P(SqliteTest, AnInMemoryDatabaseWorksInOneProcess) {
  const auto opened = OpenDatabase("sqlite::memory:");
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  DataSource* const memory = opened->source.get();
  const auto run = [&](std::string_view sql) {
    const auto done = memory->Execute(sql, nullptr, {});
    EXPECT_TRUE(done.ok()) << done.status().ToString();
  };
  run("CREATE TABLE t (x INTEGER)");
  run("INSERT INTO t VALUES (1), (2), (3)");
  DatasetOptions options;
  options.rows_per_shard = 2;
  const auto dataset = memory->OpenDataset("SELECT x FROM t", options);
  ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
  run("DELETE FROM t");  // neither waits for the dataset nor shows in it
  const auto rows = ReadAll(*memory, (*dataset)->spec());
  ASSERT_TRUE(rows.ok()) << rows.status().ToString();
  EXPECT_THAT(*rows, ElementsAre(ElementsAre("1"), ElementsAre("2"), ElementsAre("3")));
  Job job;
  EXPECT_TRUE(opened->catalog->jobs().Create(job).ok());

  const auto other = OpenDataSource("sqlite::memory:");
  EXPECT_FALSE((*other)->Describe("SELECT * FROM t").ok());  // each source has its own
  options.many_processes = true;
  const auto shared = memory->OpenDataset("SELECT x FROM t", options);
  ASSERT_FALSE(shared.ok());
  EXPECT_THAT(shared.status().message(), HasSubstr("in-memory"));
}

TEST_P(SqliteTest, WhatADeadProcessLeftIsSweptUp) {
  const std::string left = "sqlite:" + directory() + "/left.db";
  const std::string select = "SELECT x FROM t ORDER BY x";
  const Schema schema = {{{"x", DataType::kInt64, ""}}};
  ResultTable out;
  out.name.name = "out";
  // A process that dies suddenly, in the middle of a stage and of a result.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto own = OpenDataSource(left);
    const bool made = (*own)->Execute("CREATE TABLE t AS SELECT 1 AS x", nullptr, {}).ok();
    const auto staged = (*own)->OpenDataset(select, {});
    const auto writer = (*own)->OpenWriter(out, schema);
    _exit(made && staged.ok() && writer.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto files = [&] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      count += entry.path().string().find(".db.stage-") == std::string::npos ? 0 : 1;
    }
    return count;
  };
  const auto opened = OpenDataSource(left);
  ASSERT_TRUE(opened.ok()) << opened.status().ToString();
  DataSource& heir = **opened;
  const auto tables = [&] {
    const auto dataset = heir.OpenDataset(
        "SELECT name FROM sqlite_schema WHERE name LIKE 'sluice_new_%' ORDER BY 1", {});
    return ReadAll(heir, (*dataset)->spec())->size();
  };
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(tables(), 0U) << "the first statement sweeps";
  EXPECT_EQ(files(), 0);
  const auto mine = heir.OpenDataset(select, {});
  const auto writer = heir.OpenWriter(out, schema);
  ASSERT_TRUE(mine.ok() && writer.ok()) << writer.status().ToString();
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(tables(), 1U);
  // The next one leaves the tables of living processes alone.
  const auto other = heir.OpenDataset(select, {});
  const auto second = heir.OpenWriter(out, schema);
  ASSERT_TRUE(other.ok() && second.ok());
  EXPECT_EQ(files(), 2);
  EXPECT_EQ(tables(), 2U);
}

TEST_P(SqliteTest, WhatOnlyLooksLikeAStageIsTheUsers) {
  Run("CREATE TABLE t (x INTEGER)");
  const std::string text = directory() + "/test.db.stage-2147483646-abc";
  const std::string database = directory() + "/test.db.stage-2147483646-mine";
  std::ofstream(text) << "x";
  std::ofstream(directory() + "/test.db.stage-1-empty") << "";
  ASSERT_TRUE((*OpenDataSource("sqlite:" + database))
                  ->Execute("CREATE TABLE precious (x)", nullptr, {})
                  .ok());
  Run("CREATE TABLE \"out__sluice_new_2147483646_abc\" (x INTEGER)");
  Run("CREATE TABLE sluice_new_abc (x INTEGER)");
  const auto dataset = source().OpenDataset("SELECT x FROM t ORDER BY x", {});
  ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
  const Schema schema = {{{"x", DataType::kInt64, ""}}};
  ResultTable out;
  out.name.name = "out";
  ASSERT_TRUE(source().OpenWriter(out, schema).ok());
  EXPECT_TRUE(std::filesystem::exists(text));
  EXPECT_TRUE(std::filesystem::exists(database));
  EXPECT_TRUE(std::filesystem::exists(directory() + "/test.db.stage-1-empty"));
  EXPECT_EQ(Select("SELECT count(*) FROM sqlite_schema WHERE name IN"
                   " ('out__sluice_new_2147483646_abc', 'sluice_new_abc')")[0][0],
            "2");
}

TEST_P(SqliteTest, AStageIsAsReadableAsItsDatabase) {
  Run("CREATE TABLE t AS SELECT 1 AS x");
  for (const auto mode : {std::filesystem::perms::owner_read | std::filesystem::perms::owner_write,
                          std::filesystem::perms{0640}, std::filesystem::perms{0664}}) {
    std::filesystem::permissions(directory() + "/test.db", mode);
    const auto dataset = source().OpenDataset("SELECT x FROM t ORDER BY x", {});
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    const std::string stage = directory() + "/test.db." + (*dataset)->spec().staging_table();
    EXPECT_EQ(std::filesystem::status(stage).permissions(), mode);
    EXPECT_EQ(ReadAll(source(), (*dataset)->spec())->size(), 1U);
  }
}

TEST_P(SqliteTest, AStageLeavesRoomForOthers) {
  Run("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE"
      " i < 20000) SELECT i, 'some words that take room ' || i AS words FROM n");
  const SqliteLocation location = LocateSqlite(directory() + "/test.db");
  StageRoom room = FindStageRoom(location).value();
  EXPECT_EQ(room.folder, directory());
  EXPECT_GT(room.free_bytes, room.kept_free_bytes);
  EXPECT_GT(room.kept_free_bytes, 0);
  {
    const auto fits = SqliteStage::Create(location, "SELECT * FROM t", 2, 1000, room, {});
    ASSERT_TRUE(fits.ok()) << fits.status().ToString();
    EXPECT_EQ((*fits)->rows(), 20'000);
  }
  room.free_bytes = 900 * 1024;
  room.kept_free_bytes = 500 * 1024;
  const auto full = SqliteStage::Create(location, "SELECT * FROM t", 2, 1000, room, {});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.status().sqlstate(), "53100");
  EXPECT_THAT(full.status().message(), HasSubstr(directory() + ": 0.9 MiB were free there, of"));
  EXPECT_THAT(full.status().message(), HasSubstr("0.5 MiB are left to others"));
  for (const auto& entry : std::filesystem::directory_iterator(directory())) {
    EXPECT_THAT(entry.path().string(), ::testing::Not(HasSubstr(".stage-")));
  }
}

TEST_P(SqliteTest, AFileThatIsNoDatabaseIsToldSo) {
  const std::string path = directory() + "/text.db";
  std::ofstream(path) << std::string(4096, 'x');
  const auto opened = OpenDataSource("sqlite:" + path);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), HasSubstr(path));
  EXPECT_THAT(opened.status().message(), HasSubstr("not a database"));
  const auto missing = OpenDataSource("sqlite:" + directory() + "/no/such/folder.db");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().sqlstate(), "08001");
}

TEST_P(SqliteTest, AFullDiskIsAResourceError) {
  Run("CREATE TABLE t (x TEXT)");
  Run("PRAGMA max_page_count = 20");
  const auto full = source().Execute("INSERT INTO t VALUES (hex(zeroblob(1000000)))", nullptr, {});
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.status().sqlstate(), "53100");
  EXPECT_EQ(full.status().code(), Code::kResourceExhausted);
}

TEST_P(SqliteTest, ALockedDatabaseIsToldSo) {
  Run("CREATE TABLE t (x INTEGER)");
  const auto other = OpenDataSource(url());
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE((*other)->Execute("PRAGMA busy_timeout = 10", nullptr, {}).ok());
  Run("BEGIN IMMEDIATE");
  const auto locked = (*other)->Execute("INSERT INTO t VALUES (1)", nullptr, {});
  ASSERT_FALSE(locked.ok());
  EXPECT_EQ(locked.status().sqlstate(), "55P03");
  EXPECT_THAT(locked.status().diagnostics()[0].hint, HasSubstr("COMMIT"));
}

INSTANTIATE_TEST_SUITE_P(Databases, SqliteTest, ::testing::Values("sqlite"), DatabaseName);

}  // namespace
}  // namespace sluice::catalog
