#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <thread>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job.h"
#include "elastic/job_handle.h"
#include "executor/local_fleet.h"
#include "tests/elastic/small_job.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kRows = 60'000;

// Workers and parameter servers are processes of the real binary over a SQLite file; this process
// is their master, and kills them.
class FleetTraining : public ::testing::Test {
 protected:
  FleetTraining() {
    file_ = std::filesystem::temp_directory_path() /
            ("sluice-process-test-" + std::to_string(getpid()) + ".db");
    Remove();
    source_ = catalog::OpenDataSource("sqlite:" + file_.string()).value();
    Fill();
    catalog::DatasetOptions options;
    options.rows_per_shard = 2'000;
    options.many_processes = true;
    dataset_ = source_->OpenDataset("SELECT a, b, c, y FROM t", options).value();
    fleet_ = executor::LocalFleet::Make({SLUICE_BINARY, nullptr}).value();
  }
  ~FleetTraining() override {
    fleet_.reset();
    dataset_.reset();
    source_.reset();
    Remove();
  }
  void Remove() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(file_.string() + suffix);
    }
  }
  void Fill() const {
    Schema schema;
    for (const char* name : {"a", "b", "c", "y"}) {
      schema.columns.push_back({name, DataType::kDouble, ""});
    }
    const std::vector<std::vector<double>> rows = SmallRows(kRows);
    RowBatch batch;
    batch.Reset(schema, rows.size());
    batch.rows = rows.size();
    for (size_t row = 0; row < rows.size(); ++row) {
      for (size_t c = 0; c < 4; ++c) {
        batch.columns[c].null[row] = 0;
        batch.columns[c].doubles[row] = rows[row][c];
      }
    }
    ASSERT_TRUE(source_->AppendRows("t", schema, batch).ok());
  }

  plan::TrainPlan Plan(uint32_t workers, uint32_t servers, uint32_t epochs, bool synchronous) {
    plan::TrainPlan plan = SmallPlan(epochs, 256);
    plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
    plan.mutable_strategy()->set_workers(workers);
    plan.mutable_strategy()->set_parameter_servers(servers);
    if (synchronous) {
      plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
      plan.mutable_strategy()->set_micro_batches(4);
    }
    return plan;
  }
  // Sends `signal` to each of the first `victims` workers that starts to work.
  Result<TrainOutcome> Train(const plan::TrainPlan& plan, int signal = 0, int victims = 0) {
    EventCallback events;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      if (kind == "worker_started" && victims > 0) {
        --victims;
        const Result<int> pid = fleet_->ProcessId(detail);
        if (pid.ok()) {
          pids_.push_back(*pid);
          kill(*pid, signal);
        }
      }
    };
    return TrainOnFleet(plan, *source_, *fleet_, "job1", dataset_->spec(), nullptr, nullptr, {},
                        events, {});
  }
  // At the end of each of the first epochs one server gets `signal`; then `at_epoch` is called.
  Result<TrainOutcome> TrainWithLostServers(
      const plan::TrainPlan& plan, int signal, int victims,
      const std::function<void(JobHandle&, int)>& at_epoch = {}) {
    JobHandle handle;
    EventCallback events;
    int epoch = 0;
    std::chrono::steady_clock::time_point killed;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      if (kind == "server_lost") {
        // From the signal to the new map; for who looks, as no test can promise it.
        RecordProperty("takeover_milliseconds",
                       std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(
                                          std::chrono::steady_clock::now() - killed)
                                          .count()));
      }
      if (kind != "epoch_done") {
        return;
      }
      const Result<int> pid = fleet_->ProcessId("job1-ps-" + std::to_string(epoch));
      if (epoch < victims && pid.ok()) {
        killed = std::chrono::steady_clock::now();
        kill(*pid, signal);
      }
      ++epoch;
      if (at_epoch) {
        at_epoch(handle, epoch);
      }
    };
    return TrainOnFleet(plan, *source_, *fleet_, "job1", dataset_->spec(), nullptr, nullptr, {},
                        events, {}, &handle);
  }
  int Count(const std::string& kind) const {
    int count = 0;
    for (const std::string& event : events_) {
      count += event.starts_with(kind + " ") ? 1 : 0;
    }
    return count;
  }
  // Processes of the binary whose parent is this one.
  static int ChildrenLeft() {
    int left = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "stat");
      std::string pid, name, state;
      int parent = 0;
      if (in >> pid >> name >> state >> parent && parent == getpid() && name == "(sluice)") {
        ++left;
      }
    }
    return left;
  }

  std::filesystem::path file_;
  std::unique_ptr<catalog::DataSource> source_;
  std::unique_ptr<catalog::Dataset> dataset_;
  std::unique_ptr<executor::LocalFleet> fleet_;
  std::vector<std::string> events_;
  std::vector<int> pids_;
};

TEST_F(FleetTraining, WorkersAndServersAreProcesses) {
  const Result<TrainOutcome> outcome = Train(Plan(2, 2, 2, false));
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, kRows);
  EXPECT_EQ(outcome->rows_trained, 2 * outcome->rows_per_epoch);
  EXPECT_GT(MetricOf(*outcome, "auc"), 0.88);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, KilledWorkersLoseAndDoubleNoRow) {  // S6, S7, S13
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 3, false), SIGKILL, 5);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(pids_.size(), 5U);
  EXPECT_GE(Count("worker_lost"), 5);
  EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, kRows);
  EXPECT_EQ(outcome->rows_trained, 3 * outcome->rows_per_epoch);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, AHungWorkerIsReplaced) {  // S12
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 2, true), SIGSTOP, 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(Count("worker_lost"), 1);
  EXPECT_EQ(outcome->rows_trained, 2 * outcome->rows_per_epoch);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, PreemptedWorkersHandBackTheirWork) {  // G5
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 2, false), SIGTERM, 2);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_GE(Count("worker_lost"), 2);
  EXPECT_EQ(outcome->rows_trained, 2 * outcome->rows_per_epoch);
}

TEST_F(FleetTraining, SynchronousBitsSurviveKills) {  // G4, S17
  const Result<TrainOutcome> one = Train(Plan(1, 1, 2, true));
  ASSERT_TRUE(one.ok()) << one.status().ToString();
  const Result<TrainOutcome> killed = Train(Plan(2, 2, 2, true), SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("worker_lost"), 3);
  EXPECT_EQ(models::SaveWeights(one->weights), models::SaveWeights(killed->weights));
}

// A worker that sleeps holds the others up: how far they went without it is told by the master.
TEST_F(FleetTraining, P8_NobodyRunsAheadOfASleepingWorker) {
  plan::TrainPlan plan = Plan(3, 1, 3, false);
  plan.mutable_strategy()->set_mode(plan::Strategy::BOUNDED_STALENESS);
  plan.mutable_strategy()->set_staleness(3);
  std::jthread alarm;
  EventCallback events;
  std::string staleness;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    const Result<int> pid = fleet_->ProcessId("job1-worker-2");
    if (kind == "epoch_done" && !alarm.joinable() && pid.ok()) {
      kill(*pid, SIGSTOP);
      alarm = std::jthread([pid = *pid] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        kill(pid, SIGCONT);
      });
    }
    if (kind == "staleness") {
      staleness = detail;
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet(
      plan, *source_, *fleet_, "job1", dataset_->spec(), nullptr, nullptr, {}, events, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  int ahead = -1;
  ASSERT_EQ(std::sscanf(staleness.c_str(), "a worker was at most %d batches", &ahead), 1);
  EXPECT_LE(ahead, 3);
  EXPECT_EQ(outcome->rows_trained, 3 * outcome->rows_per_epoch);
  EXPECT_GT(MetricOf(*outcome, "auc"), 0.88);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, P15_KilledServersCostNothing) {
  const Result<TrainOutcome> undisturbed = Train(Plan(1, 1, 4, true));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
  plan::TrainPlan plan = Plan(2, 2, 4, true);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> killed = TrainWithLostServers(plan, SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("server_lost"), 2);
  EXPECT_EQ(killed->rows_trained, 4 * killed->rows_per_epoch);
  EXPECT_EQ(models::SaveWeights(killed->weights), models::SaveWeights(undisturbed->weights));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, P7_AsynchronousTrainingOutlivesKilledServers) {
  plan::TrainPlan plan = Plan(2, 3, 4, false);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> killed = TrainWithLostServers(plan, SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("server_lost"), 2);
  EXPECT_EQ(killed->rows_trained, 4 * killed->rows_per_epoch);
  EXPECT_EQ(killed->rows_per_epoch + killed->validation_rows, kRows);
  EXPECT_GT(MetricOf(*killed, "auc"), 0.88);
}

TEST_F(FleetTraining, AHungServerIsReplaced) {
  const Result<TrainOutcome> undisturbed = Train(Plan(1, 1, 3, true));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
  plan::TrainPlan plan = Plan(2, 2, 3, true);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> hung = TrainWithLostServers(plan, SIGSTOP, 1);
  ASSERT_TRUE(hung.ok()) << hung.status().ToString();
  EXPECT_EQ(Count("server_lost"), 1);
  EXPECT_EQ(models::SaveWeights(hung->weights), models::SaveWeights(undisturbed->weights));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, P20_ServersComeAndGoWhileTrainingGoesOn) {
  const Result<TrainOutcome> undisturbed = Train(Plan(1, 1, 5, true));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
  plan::TrainPlan plan = Plan(2, 2, 5, true);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> moved =
      TrainWithLostServers(plan, 0, 0, [](JobHandle& handle, int epoch) {
        ASSERT_TRUE(handle.SetParameterServers(epoch < 3 ? 4 : 3).ok());
      });
  ASSERT_TRUE(moved.ok()) << moved.status().ToString();
  EXPECT_GE(Count("partitions_moved"), 2);
  EXPECT_EQ(moved->rows_trained, 5 * moved->rows_per_epoch);
  EXPECT_EQ(models::SaveWeights(moved->weights), models::SaveWeights(undisturbed->weights));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, AKilledServerIsAClearErrorAndLeavesNothing) {
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string&) {
    const Result<int> pid = fleet_->ProcessId("job1-ps-0");
    if (kind == "worker_started" && pid.ok()) {
      kill(*pid, SIGKILL);
    }
  };
  const Result<TrainOutcome> outcome =
      TrainOnFleet(Plan(2, 1, 1'000, false), *source_, *fleet_, "job1", dataset_->spec(), nullptr,
                   nullptr, {}, events, {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(outcome.status().message().find("job1-ps-0"), std::string::npos)
      << outcome.status().ToString();
  EXPECT_EQ(ChildrenLeft(), 0);
}

}  // namespace
}  // namespace sluice::elastic
