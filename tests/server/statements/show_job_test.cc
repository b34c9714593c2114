#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

// SHOW JOB's line about the workers of a job on processes.
class ShowJobTest : public ::testing::Test {
 protected:
  ShowJobTest() {
    std::string pattern = ::testing::TempDir() + "/sluice-show-job-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    catalog::Database database =
        catalog::OpenDatabase("sqlite:" + (folder_ / "test.db").string()).value();
    source_ = std::move(database.source);
    catalog_ = std::move(database.catalog);
    catalog::Job job;
    job.kind = "train";
    job_.id = catalog_->jobs().Create(job).value();
  }
  ~ShowJobTest() override {
    source_.reset();
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Record(double now, double wanted) {
    std::vector<catalog::JobMetric> metrics;
    const double values[] = {now, wanted, 2, 8};
    for (size_t i = 0; i < 4; ++i) {
      metrics.push_back({++micros_, 0, catalog::kJobWorkersMetrics[i], values[i]});
    }
    ASSERT_TRUE(catalog_->jobs().AddMetrics(job_.id, metrics).ok());
  }
  // "state=Running now=3 wanted=4 allowed=2..8"
  std::string Workers() {
    Session session(*source_, *catalog_, "tester");
    RecordingSink sink;
    EXPECT_TRUE(RunScript("SHOW JOB " + std::to_string(job_.id), session, sink, {}).ok());
    std::string text;
    for (const std::vector<Value>& row : sink.rows) {
      if (std::get<std::string>(row[0]) == "workers") {
        text += (text.empty() ? "" : " ") + std::get<std::string>(row[1]) + "=" +
                std::get<std::string>(row[2]);
      }
    }
    return text;
  }

  std::filesystem::path folder_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Catalog> catalog_;
  catalog::Job job_;
  int64_t micros_ = 0;
};

TEST_F(ShowJobTest, WorkersNowWantedAndAllowed) {
  EXPECT_EQ(Workers(), "");  // a job in the gateway's own process
  Record(0, 0);
  EXPECT_EQ(Workers(), "state=Waiting now=0 wanted=0 allowed=2..8");
  Record(3, 4);
  EXPECT_EQ(Workers(), "state=Running now=3 wanted=4 allowed=2..8");
  Record(1, 0);
  EXPECT_EQ(Workers(), "state=Degraded now=1 wanted=0 allowed=2..8");
  job_.state = catalog::JobState::kSucceeded;
  ASSERT_TRUE(catalog_->jobs().End(job_).ok());
  EXPECT_EQ(Workers(), "allowed=2..8");
}

}  // namespace
}  // namespace sluice::server
