#include "server/gateway/housekeeper_internal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "tests/executor/sqlite_test.h"
#include "tests/support/eventually.h"

namespace sluice::server {
namespace {

class HousekeeperTest : public executor::SqliteTest {
 protected:
  std::string Url() const { return "sqlite:" + folder_ + "/test.db"; }
  int64_t Tables() const {
    struct Count final : catalog::RowReceiver {
      Status Header(const Schema&) override { return OkStatus(); }
      Status Rows(const RowBatch& batch) override {
        tables += static_cast<int64_t>(batch.rows);
        return OkStatus();
      }
      int64_t tables = 0;
    } count;
    const auto asked = source_->Execute(
        "SELECT name FROM sqlite_schema WHERE name LIKE 'sluice_new_%'", &count, {});
    EXPECT_TRUE(asked.ok()) << asked.status().ToString();
    return count.tables;
  }
  int64_t Job(int64_t finished_micros) {
    catalog::Job job;
    job.kind = "predict";
    job.id = catalog_->jobs().Create(job).value();
    job.state = catalog::JobState::kSucceeded;
    job.finished_micros = finished_micros;
    EXPECT_TRUE(catalog_->jobs().End(job).ok());
    return job.id;
  }
};

TEST_F(HousekeeperTest, WhatAKilledProcessLeftGoes) {
  const auto sources = SourcePool::Open(Url(), Auth::kTrust);
  ASSERT_TRUE(sources.ok()) << sources.status().ToString();
  const pid_t child = fork();
  if (child == 0) {
    const auto own = catalog::OpenDataSource(Url());
    catalog::ResultTable out;
    out.name.name = "out";
    const auto writer = (*own)->OpenWriter(out, {{{"x", DataType::kInt64, ""}}});
    _exit(writer.ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_EQ(Tables(), 1);
  const Housekeeper keeper(**sources, std::chrono::hours(0));
  EXPECT_TRUE(Eventually([&] { return Tables() == 0; }));
}

TEST_F(HousekeeperTest, OldJobsGo) {
  for (int i = 0; i < 150; ++i) {  // more than one batch
    Job(1);
  }
  const int64_t young = Job(WallMicros());
  const auto sources = SourcePool::Open(Url(), Auth::kTrust);
  ASSERT_TRUE(sources.ok()) << sources.status().ToString();
  const Housekeeper keeper(**sources, std::chrono::hours(1));
  EXPECT_TRUE(Eventually([&] { return catalog_->jobs().Count().value() == 1; }));
  EXPECT_TRUE(catalog_->jobs().Find(young).ok());
}

}  // namespace
}  // namespace sluice::server
