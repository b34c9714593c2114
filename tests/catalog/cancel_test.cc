#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <stop_token>
#include <thread>

#include "catalog/job_store.h"
#include "tests/catalog/both_databases.h"
#include "tests/support/eventually.h"

// Every wait of a statement ends when its stop is requested: each of these would otherwise take
// longer than the test may.
namespace sluice::catalog {
namespace {

class CancelTest : public BothDatabases {
 protected:
  bool WritesResults() const override { return true; }
  void SetUp() override {
    BothDatabases::SetUp();
    if (!IsSkipped()) {
      Run("CREATE TABLE t (id integer, y integer)");
      Run("INSERT INTO t VALUES (1, 0), (2, 1), (3, 0)");
    }
  }

  // An endless select, whose column types are not known before it has run.
  std::string Endless() const {
    return postgres() ? "SELECT id, y FROM t WHERE pg_sleep(600) IS NULL"
                      : "WITH RECURSIVE s(v) AS (VALUES (1) UNION ALL SELECT v + 1 FROM s)"
                        " SELECT v AS id, v AS y FROM s WHERE v < 0";
  }

  // Begins a statement, stops it as soon as `waits` is true, and returns how `work` ended.
  Status Stopped(const std::function<Status()>& work, const std::function<bool()>& waits) {
    std::stop_source stop;
    EXPECT_TRUE(source().BeginStatement("", stop.get_token()).ok());
    auto done = std::async(std::launch::async, work);
    EXPECT_TRUE(Eventually(waits));
    stop.request_stop();
    Status status = done.get();
    source().EndStatement();
    return status;
  }
  Status Stopped(const std::function<Status()>& work) {
    return Stopped(work, [this] { return !postgres() || Backends("state = 'active'") > 0; });
  }

  // Other backends of this database.
  int64_t Backends(const std::string& condition) {
    struct First final : RowReceiver {
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        number = batch.columns[0].int64s[0];
        return OkStatus();
      }
      int64_t number = 0;
    } first;
    if (observer_ == nullptr) {
      observer_ = std::move(OpenDataSource(url())).value();
    }
    const auto asked = observer_->Execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
        " pid <> pg_backend_pid() AND query NOT LIKE '%pg_stat_activity%' AND " +
            condition,
        &first, {});
    EXPECT_TRUE(asked.ok()) << asked.status().ToString();
    return first.number;
  }

  void ExpectCancelled(const Status& status) {
    EXPECT_EQ(status.code(), Code::kCancelled) << status.ToString();
    EXPECT_EQ(status.sqlstate(), "57014");
    if (postgres()) {
      EXPECT_EQ(Backends("state = 'active' AND query NOT LIKE 'DISCARD%'"), 0);
    }
    // The source is still usable.
    source().EndStatement();
    const auto schema = source().Describe("SELECT id FROM t");
    EXPECT_TRUE(schema.ok()) << schema.status().ToString();
  }

  Schema IdAndY() const {
    return Schema{{{"id", DataType::kInt64, "integer"}, {"y", DataType::kInt64, "integer"}}};
  }

  std::unique_ptr<DataSource> observer_;
};

INSTANTIATE_TEST_SUITE_P(Databases, CancelTest, ::testing::Values("sqlite", "postgresql"),
                         [](const auto& one) { return one.param; });

TEST_P(CancelTest, Statistics) {
  ExpectCancelled(Stopped(
      [&] { return source().Statistics(Endless(), IdAndY(), StatisticsOptions()).status(); }));
}

TEST_P(CancelTest, Read) {
  ExpectCancelled(Stopped([&] { return source().Read(Endless(), nullptr); }));
}

TEST_P(CancelTest, Staging) {
  DatasetOptions options;
  options.many_processes = true;
  ExpectCancelled(Stopped([&] {
    // The first column of SQLite's select is typed by running it.
    return source().OpenDataset(Endless() + " ORDER BY 1", options).status();
  }));
  if (postgres()) {
    // A server that is busy shows the end of a transaction a moment later.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (Backends("state LIKE 'idle in transaction%'") > 0 &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(Backends("state LIKE 'idle in transaction%'"), 0);
  }
}

// A dataset that could be opened, but whose rows never arrive.
TEST_P(CancelTest, RowsOfADataset) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite has run such a select to know its columns";
  }
  Run("CREATE FUNCTION gate(i integer) RETURNS integer STABLE LANGUAGE plpgsql AS 'BEGIN"
      " PERFORM pg_advisory_lock(77); PERFORM pg_advisory_unlock(77); RETURN i; END'");
  const auto guard = std::move(OpenDataSource(url())).value();
  for (const bool counts : {false, true}) {
    std::stop_source stop;
    ASSERT_TRUE(source().BeginStatement("", stop.get_token()).ok());
    const auto dataset = source().OpenDataset("SELECT id, y FROM t WHERE gate(id) > 0", {});
    ASSERT_TRUE(dataset.ok()) << dataset.status().ToString();
    ASSERT_TRUE(guard->Execute("SELECT pg_advisory_lock(77)", nullptr, {}).ok());
    auto done = std::async(std::launch::async, [&]() -> Status {
      if (counts) {
        return (*dataset)->CountRows().status();
      }
      ASSIGN_OR_RETURN(const auto reader, source().OpenReader((*dataset)->spec()));
      ASSIGN_OR_RETURN(const auto stream, reader->Read((*dataset)->spec().shards(0), {0, 1}));
      RowBatch batch;
      return stream->Next(10, &batch);
    });
    EXPECT_TRUE(Eventually([&] { return Backends("wait_event = 'advisory'") > 0; }));
    stop.request_stop();
    ExpectCancelled(done.get());
    source().EndStatement();
    ASSERT_TRUE(guard->Execute("SELECT pg_advisory_unlock(77)", nullptr, {}).ok());
  }
}

TEST_P(CancelTest, DescribeAndEstimate) {
  if (postgres()) {
    GTEST_SKIP() << "PostgreSQL describes without running; see LockedTable";
  }
  ExpectCancelled(Stopped([&] { return source().Describe(Endless()).status(); }));
  ExpectCancelled(Stopped([&] { return source().EstimateCut(Endless(), {}).status(); }));
}

// Another session holds a lock on the table, or the database.
TEST_P(CancelTest, LockedTable) {
  const auto other = std::move(OpenDataSource(url())).value();
  ASSERT_TRUE(other->Execute(postgres() ? "BEGIN" : "BEGIN IMMEDIATE", nullptr, {}).ok());
  if (postgres()) {
    ASSERT_TRUE(other->Execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE", nullptr, {}).ok());
  }
  const auto waits = [this] { return !postgres() || Backends("wait_event_type = 'Lock'") > 0; };
  const auto write = [&]() -> Status {
    ResultTable table;
    table.name.name = "t";
    table.replace = true;
    ASSIGN_OR_RETURN(const auto writer, source().OpenWriter(table, IdAndY()));
    return writer->Commit({});
  };
  const Status written = Stopped(write, waits);
  EXPECT_EQ(written.code(), Code::kCancelled) << written.ToString();
  if (postgres()) {
    const Status described =
        Stopped([&] { return source().Describe("SELECT * FROM t").status(); }, waits);
    EXPECT_EQ(described.code(), Code::kCancelled) << described.ToString();
    const Status tables =
        Stopped([&] { return source().SourceTables("SELECT * FROM t").status(); }, waits);
    EXPECT_EQ(tables.code(), Code::kCancelled) << tables.ToString();
  }
  ASSERT_TRUE(other->Execute("ROLLBACK", nullptr, {}).ok());
  EXPECT_TRUE(source().Describe("SELECT id, y FROM t").ok());
}

// The stop was requested before anything began.
TEST_P(CancelTest, StoppedBefore) {
  std::stop_source stop;
  stop.request_stop();
  const Status begun = source().BeginStatement("", stop.get_token());
  if (begun.ok()) {
    EXPECT_EQ(source().Statistics("SELECT id, y FROM t", IdAndY(), {}).status().code(),
              Code::kCancelled);
    EXPECT_EQ(source().OpenDataset("SELECT id, y FROM t", {}).status().code(), Code::kCancelled);
  } else {
    EXPECT_EQ(begun.code(), Code::kCancelled) << begun.ToString();
  }
  source().EndStatement();
  EXPECT_TRUE(source().OpenDataset("SELECT id, y FROM t", {}).ok());
}

// Jobs are recorded although the statement was cancelled.
TEST_P(CancelTest, StoresGoOn) {
  std::stop_source stop;
  ASSERT_TRUE(source().BeginStatement("", stop.get_token()).ok());
  stop.request_stop();
  Job job;
  job.kind = "train";
  EXPECT_TRUE(catalog().jobs().Create(job).ok());
  source().EndStatement();
}

TEST_P(CancelTest, WaitingForAConnection) {
  if (!postgres()) {
    GTEST_SKIP() << "the same pool";
  }
  const auto dataset = source().OpenDataset("SELECT id, y FROM t", {});
  ASSERT_TRUE(dataset.ok());
  std::vector<std::unique_ptr<ShardReader>> readers;
  while (readers.size() < 30) {  // plus the session's and the dataset's own: all
    auto reader = source().OpenReader((*dataset)->spec());
    ASSERT_TRUE(reader.ok()) << reader.status().ToString();
    readers.push_back(std::move(reader).value());
  }
  const Status waited =
      Stopped([&] { return source().Describe("SELECT id FROM t").status(); }, [] { return true; });
  EXPECT_EQ(waited.code(), Code::kCancelled) << waited.ToString();
}

}  // namespace
}  // namespace sluice::catalog
