#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "tests/process/cluster_job.h"
#include "tests/server/sluice_process.h"

// Compares EXPLAIN's memory estimate with the memory of real processes.
namespace sluice::executor {
namespace {

class MemoryEstimate : public ClusterJobs {
 protected:
  // Peak resident memory of this process's children by role, in bytes, from the kernel.
  class Peaks {
   public:
    Peaks() : thread_([this](const std::stop_token& stop) { Watch(stop); }) {}
    double Of(const std::string& role) {
      thread_.request_stop();
      if (thread_.joinable()) {
        thread_.join();
      }
      return peaks_[role];
    }

   private:
    void Watch(const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const auto& [parent, pid] : Children()) {
          if (parent == getpid()) {
            Look("/proc/" + std::to_string(pid));
          }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    void Look(const std::string& process) {
      std::ifstream command(process + "/cmdline", std::ios::binary);
      std::string program, role;
      std::getline(command, program, '\0');
      std::getline(command, role, '\0');
      std::ifstream status(process + "/status");
      for (std::string line; std::getline(status, line);) {
        if (line.starts_with("VmHWM:")) {
          peaks_[role] = std::max(peaks_[role], std::stod(line.substr(6)) * 1024);
        }
      }
    }
    std::map<std::string, double> peaks_;
    std::jthread thread_;
  };

  plan::TrainPlan PlanOf(const std::string& sql) const {
    const auto statements = parser::Parse(sql).value();
    const auto& train = std::get<parser::TrainStatement>(statements.at(0));
    return planner::MakePlan(train, *source_, catalog_->models(), {}).value().train();
  }
  // Within a third of the estimate: a fifth, plus differences between machines.
  void Expect(const std::string& sql) {
    const plan::TrainPlan plan = PlanOf(sql);
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    Peaks peaks;
    const Status status = Run(sql, cluster, *source_, sink);
    ASSERT_TRUE(status.ok()) << status.ToString();
    for (const auto& [role, estimate] : {std::pair{"worker", plan.estimated_memory_bytes()},
                                         std::pair{"ps", plan.estimated_server_memory_bytes()}}) {
      const double measured = peaks.Of(role);
      EXPECT_EQ(measured > 0, estimate > 0) << role;
      if (estimate > 0) {
        EXPECT_GT(static_cast<double>(estimate), measured * 0.75) << role << ": " << sql;
        EXPECT_LT(static_cast<double>(estimate), measured * 1.33) << role << ": " << sql;
      }
    }
  }
};

TEST_F(MemoryEstimate, OfAFewRows) {
  ASSERT_TRUE(
      source_->Execute("CREATE TABLE few AS SELECT * FROM points WHERE i <= 150", nullptr, {})
          .ok());
  const std::string head =
      "SELECT a, b, y FROM few TO TRAIN DNNClassifier WITH "
      "model.hidden_units=[10,10], train.epoch=200, engine.num_workers=2, ";
  Expect(head + "engine.num_ps=1 LABEL y INTO m");
  Expect(head + "engine.strategy='allreduce' LABEL y INTO m");
}

// Rows with fourteen columns, for several epochs: workers keep them.
TEST_F(MemoryEstimate, OfRowsThatAreKept) {
  std::string columns;
  for (int i = 0; i < 14; ++i) {
    columns += fmt::format(", (i * {} % 1000) / 500.0 AS c{}", 7919 + 2 * i, i);
  }
  ASSERT_TRUE(source_
                  ->Execute("CREATE TABLE many AS SELECT y" + columns +
                                " FROM points p, (WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL "
                                "SELECT k + 1 FROM n WHERE k < 6) SELECT k FROM n)",
                            nullptr, {})
                  .ok());
  Expect(
      "SELECT * FROM many TO TRAIN DNNClassifier WITH model.hidden_units=[64,32], train.epoch=2, "
      "engine.num_workers=2, engine.num_ps=2 LABEL y INTO m");
}

TEST_F(MemoryEstimate, OfALargeTable) {
  const std::string sql =
      "SELECT i, a, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[8], "
      "train.epoch=1, engine.num_workers=2, {} COLUMN EMBEDDING(CATEGORY_HASH(i, 100000), 256, "
      "'sum') LABEL y INTO m";
  Expect(fmt::format(fmt::runtime(sql), "engine.num_ps=1"));
  Expect(fmt::format(fmt::runtime(sql), "engine.num_ps=2"));
  Expect(fmt::format(fmt::runtime(sql), "engine.strategy='allreduce'"));
}

TEST_F(MemoryEstimate, OfWideLayers) {
  Expect(
      "SELECT a, b, y FROM points TO TRAIN DNNClassifier WITH model.hidden_units=[1536,1536], "
      "train.batch_size=64, train.max_steps=60, engine.num_workers=2, engine.num_ps=1 LABEL y INTO "
      "m");
}

// Trees train in the gateway's process: here, that of a shell.
TEST_F(MemoryEstimate, OfTrees) {
  // Seven numbers with few distinct values, and seven with a value of their own in each row.
  std::string columns;
  for (int i = 0; i < 7; ++i) {
    columns += fmt::format(", (i * {} + k * 31) % {} AS f{}", 7919 + 2 * i, 10 * (i + 1), i);
    columns += fmt::format(", (i * 8 + k) * {} % 1000003 / 7.0 AS g{}", 7919 + 2 * i, i);
  }
  ASSERT_TRUE(source_
                  ->Execute("CREATE TABLE many AS SELECT y" + columns +
                                " FROM points p, (WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL "
                                "SELECT k + 1 FROM n WHERE k < 8) SELECT k FROM n)",
                            nullptr, {})
                  .ok());
  for (const char* model : {"xgboost.gbtree WITH ", "xgboost.gblinear WITH "}) {
    const std::string sql = std::string("SELECT * FROM many TO TRAIN ") + model +
                            "train.num_boost_round=2 LABEL y INTO m";
    const auto estimate = static_cast<double>(PlanOf(sql).estimated_memory_bytes());
    Peaks peaks;
    const ShellOutcome outcome =
        RunInShell("exec " SLUICE_BINARY " sql --source " + Url() + " -c \"" + sql + "\" 2>&1");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    const double measured = peaks.Of("sql");
    EXPECT_GT(estimate, measured * 0.75) << sql;
    EXPECT_LT(estimate, measured * 1.33) << sql;
  }
}

}  // namespace
}  // namespace sluice::executor
