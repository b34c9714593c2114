#include "executor/pods/used_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

using elastic::Role;
using ::testing::ElementsAre;

TEST(UsedMemory, IsRecordedWhereItHasGrownByATenth) {
  std::vector<std::string> recorded;
  UsedMemory memory([&recorded](const std::string& metric, double bytes) {
    recorded.push_back(metric + " " + std::to_string(static_cast<int64_t>(bytes)));
  });
  for (const int64_t bytes : {100, 90, 109, 110, 111}) {
    memory.Hear(Role::kWorker, bytes);
  }
  memory.Hear(Role::kParameterServer, 50);
  EXPECT_THAT(recorded, ElementsAre("worker_peak_bytes 100", "worker_peak_bytes 111",
                                    "server_peak_bytes 50"));
}

class RaisedEstimates : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "used_memory";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    catalog_ = catalog::OpenCatalog("sqlite:" + (folder_ / "test.db").string()).value();
    plan_.set_into_name("m");
    plan_.set_estimated_memory_bytes(100);
    plan_.set_estimated_server_memory_bytes(100);
  }
  void TearDown() override {
    catalog_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Trained(const std::string& model, double worker, double server,
               catalog::JobState end = catalog::JobState::kSucceeded) {
    catalog::Job job;
    job.kind = "train";
    job.model = model;
    job.id = catalog_->jobs().Create(job).value();
    ASSERT_TRUE(catalog_->jobs()
                    .AddMetrics(job.id, {{1, 0, "worker_peak_bytes", worker},
                                         {2, 0, "server_peak_bytes", server}})
                    .ok());
    job.state = end;
    ASSERT_TRUE(catalog_->jobs().End(job).ok());
  }
  std::string Raised() {
    plan::TrainPlan plan = plan_;
    const Status status = RaiseEstimates(catalog_->jobs(), plan);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return std::to_string(plan.estimated_memory_bytes()) + " " +
           std::to_string(plan.estimated_server_memory_bytes());
  }

  std::filesystem::path folder_;
  std::unique_ptr<catalog::Catalog> catalog_;
  plan::TrainPlan plan_;
};

TEST_F(RaisedEstimates, AreWhatTheLastTrainingsOfTheModelUsed) {
  EXPECT_EQ(Raised(), "100 100");
  Trained("m", 900, 900);
  EXPECT_EQ(Raised(), "900 900");
  Trained("m", 70, 300);
  Trained("m", 200, 80);
  Trained("m", 150, 90);
  EXPECT_EQ(Raised(), "200 300") << "the first one is too long ago, and the estimate counts, too";
}

TEST_F(RaisedEstimates, OtherJobsDoNotCount) {
  Trained("other", 900, 900);
  Trained("m", 900, 900, catalog::JobState::kFailed);
  EXPECT_EQ(Raised(), "100 100");
  Trained("m", 900, 900);
  plan_.set_estimated_server_memory_bytes(0);
  EXPECT_EQ(Raised(), "900 0") << "it has no servers";
  plan_.set_estimated_memory_bytes(0);
  EXPECT_EQ(Raised(), "0 0") << "nobody knows what it takes";
}

}  // namespace
}  // namespace sluice::executor
