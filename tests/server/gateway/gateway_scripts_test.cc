#include "server/gateway/gateway_scripts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "server/config/open_cluster.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

// Exceptions below a handler, represented by one where a row is received.
class ThrowingSink final : public executor::ResultSink {
 public:
  explicit ThrowingSink(bool memory) : memory_(memory) {}
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch&) override {
    if (memory_) {
      throw std::bad_alloc();
    }
    throw std::length_error("vector::reserve");
  }
  void Notice(const std::string&) override {}
  void Progress(const elastic::Progress&) override {}
  void Done(const std::string&) override {}

 private:
  const bool memory_;
};

class GatewayScriptsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() /
             ("sluice_scripts_" + std::to_string(getpid()) + ".db"))
                .string();
    config_.source = "sqlite:" + path_;
    config_.max_statements = 1;
    auto sources = SourcePool::Open(config_.source, Auth::kTrust);
    ASSERT_TRUE(sources.ok()) << sources.status().ToString();
    scripts_ = std::make_unique<GatewayScripts>(std::move(*sources),
                                                OpenCluster(config_, true).value(), config_);
  }
  void TearDown() override {
    scripts_.reset();
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_ + suffix);
    }
  }
  Status Run(const std::string& script, executor::ResultSink& sink) {
    GatewayScripts::Client client;
    client.is_gone = [] { return false; };
    client.ended = [this](const Status& status) { told_ = status; };
    return scripts_->Run({script, {}, "ann", nullptr}, client, sink, {});
  }

  std::string path_;
  Config config_;
  std::unique_ptr<GatewayScripts> scripts_;
  Status told_;
};

TEST_F(GatewayScriptsTest, AnExceptionIsTheScriptsErrorAndItsPlaceIsFree) {
  for (int i = 0; i < 3; ++i) {
    ThrowingSink sink(i == 0);
    const Status status = Run("SELECT 1", sink);
    EXPECT_EQ(status.sqlstate(), i == 0 ? "53200" : "XX000");
    EXPECT_EQ(told_.sqlstate(), status.sqlstate()) << "the client hears of it";
  }
  RecordingSink sink;
  const Status status = Run("SELECT 1 AS n", sink);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(sink.Cell("n"), Value(int64_t{1}));
}

TEST_F(GatewayScriptsTest, AnExceptionInAJobIsTheJobsError) {
  RecordingSink made;
  ASSERT_TRUE(
      Run("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
          "WHERE i < 200) SELECT i AS a, i % 2 AS y FROM n; SELECT * FROM t TO TRAIN "
          "LinearClassifier WITH train.epoch=1 LABEL y INTO m",
          made)
          .ok())
      << told_.ToString();
  ThrowingSink sink(true);
  EXPECT_EQ(Run("SELECT a FROM t TO PREDICT p.y USING m", sink).sqlstate(), "53200");
  const auto source = scripts_->sources().Acquire({});
  ASSERT_TRUE(source.ok());
  const catalog::Job job = source->catalog().jobs().List().value().front();
  EXPECT_EQ(job.kind, "predict");
  EXPECT_EQ(job.state, catalog::JobState::kFailed);
  EXPECT_NE(job.error.find("out of memory"), std::string::npos) << job.error;
}

}  // namespace
}  // namespace sluice::server
