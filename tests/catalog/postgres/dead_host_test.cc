#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "tests/support/database_proxy.h"
#include "tests/support/eventually.h"
#include "tests/support/postgres_server.h"

// The server's host has vanished: requests to cancel are never answered, and libpq would wait
// minutes for an answer.
namespace sluice::catalog {
namespace {

class Silence final : public RowReceiver {
 public:
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch&) override { return OkStatus(); }
};

class DeadHost : public ::testing::Test {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    const std::string url = database_.url();
    const size_t slash = url.find('/', url.find("//") + 2);
    const size_t colon = url.rfind(':', slash);
    proxy_.emplace(std::stoi(url.substr(colon + 1)));
    url_ = "postgresql://postgres@127.0.0.1:" + std::to_string(proxy_->port()) + url.substr(slash);
    source_ = OpenDataSource(url_).value();
    direct_ = OpenDataSource(url).value();
  }
  void WaitUntilItSleeps() const {
    struct First final : RowReceiver {
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        number = batch.columns[0].int64s[0];
        return OkStatus();
      }
      int64_t number = 0;
    } sleeping;
    while (sleeping.number == 0) {
      const auto asked = direct_->Execute(
          "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
          "wait_event = 'PgSleep'",
          &sleeping, {});
      ASSERT_TRUE(asked.ok()) << asked.status().ToString();
    }
  }

  testing::PostgresTestDatabase database_;
  std::optional<testing::DatabaseProxy> proxy_;
  std::string url_;
  std::unique_ptr<DataSource> source_, direct_;
};

TEST_F(DeadHost, AStatementThatIsStoppedEnds) {
  std::stop_source stop;
  ASSERT_TRUE(source_->BeginStatement("", stop.get_token()).ok());
  Silence nobody;
  auto read = std::async(std::launch::async,
                         [&] { return source_->Read("SELECT pg_sleep(600)", &nobody); });
  WaitUntilItSleeps();
  proxy_->Freeze();
  stop.request_stop();
  EXPECT_EQ(read.get().sqlstate(), "57014");
  source_->EndStatement();
}

TEST_F(DeadHost, APlainStatementThatIsStoppedEnds) {
  std::stop_source stop;
  Silence nobody;
  auto ran = std::async(std::launch::async, [&] {
    return source_->Execute("SELECT pg_sleep(600)", &nobody, stop.get_token()).status();
  });
  WaitUntilItSleeps();
  proxy_->Freeze();
  stop.request_stop();
  EXPECT_EQ(ran.get().sqlstate(), "57014");
}

TEST_F(DeadHost, NobodyWaitsForAConnectionAfterItsStop) {
  proxy_->Freeze();
  std::stop_source stop;
  auto opened = std::async(std::launch::async,
                           [&] { return OpenDataSource(url_, "", stop.get_token()).status(); });
  stop.request_stop();
  EXPECT_EQ(opened.get().sqlstate(), "57014");
}

// The server is only slow to accept connections: what read the rows reads on.
TEST_F(DeadHost, AReaderOutlivesTheLateCancelOfAStreamThatWasLeft) {
  ASSERT_TRUE(direct_
                  ->Execute("CREATE TABLE t AS SELECT i, repeat('long', 25) AS wide"
                            " FROM generate_series(1, 2000) AS i",
                            nullptr, {})
                  .ok());
  const auto dataset = source_->OpenDataset("SELECT * FROM t", {.rows_per_shard = 100'000}).value();
  const auto reader = source_->OpenReader(dataset->spec()).value();
  const auto read = [&] {
    RowBatch batch;
    const auto stream = reader->Read(dataset->spec().shards(0), {0, 1}).value();
    const Status next = stream->Next(10, &batch);
    EXPECT_TRUE(next.ok()) << next.ToString();
  };
  proxy_->HoldCancels(true);
  auto first = std::async(std::launch::async, read);
  EXPECT_TRUE(Eventually([this] { return proxy_->held_cancels() > 0; }));
  // Longer than a statement that is stopped waits for the answer.
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  proxy_->HoldCancels(false);
  first.get();
  read();
}

// A master has lost its machine in the middle of writing its journal: the next one does not wait
// for the server's TCP timeout, which may take hours.
TEST_F(DeadHost, WhatAMasterHasLockedIsFreeForTheNextOne) {
  const auto catalog = OpenCatalog(database_.url()).value();
  JobStore& jobs = catalog->jobs();
  Job job;
  job.kind = "train";
  job.id = jobs.Create(job).value();
  ASSERT_EQ(jobs.BeginTerm(job.id).value(), 1);
  const auto lost = PostgresConnection::Connect({url_, ""}, {}, ConnectionUse::kCatalog).value();
  ASSERT_TRUE(lost->Run("BEGIN").ok());
  ASSERT_TRUE(lost->Run("UPDATE sluice.job_terms SET term = term").ok());
  proxy_->Freeze();
  EXPECT_EQ(jobs.BeginTerm(job.id).value(), 2);
}

}  // namespace
}  // namespace sluice::catalog
