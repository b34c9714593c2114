#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
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
// A second on a machine of its own.
constexpr double kGenerousSeconds = 5;

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
  plan::TrainPlan AllReducePlan(uint32_t workers, uint32_t epochs) {
    plan::TrainPlan plan = Plan(workers, 0, epochs, true);
    plan.mutable_strategy()->set_kind(plan::Strategy::ALL_REDUCE);
    plan.mutable_strategy()->set_max_workers(workers);
    return plan;
  }
  // What every synchronous training must give.
  std::string BitsInProcess(const plan::TrainPlan& plan) {
    plan::TrainPlan here = plan;
    here.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
    const Result<TrainOutcome> outcome =
        TrainInProcess(here, *source_, dataset_->spec(), nullptr, nullptr, {}, {}, {});
    return models::SaveWeights(outcome.value().weights);
  }
  // Sends `signals` to workers at random moments, one each 50 to 250 ms, while a job runs.
  std::jthread Disturb(std::vector<int> signals, uint64_t seed) {
    return std::jthread([this, signals = std::move(signals), seed](const std::stop_token& stop) {
      std::mt19937_64 random(seed);
      for (size_t i = 0; i < signals.size() && !stop.stop_requested();) {
        std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 200));
        std::vector<std::string> names;
        {
          const std::lock_guard lock(mutex_);
          names = started_;
        }
        if (names.empty()) {
          continue;
        }
        // The last ones started are the ones that live.
        const size_t recent = std::min<size_t>(names.size(), 3);
        const Result<int> pid = fleet_->ProcessId(names[names.size() - 1 - random() % recent]);
        if (pid.ok() && kill(*pid, signals[i]) == 0) {
          ++i;
          ++sent_;
          const std::lock_guard lock(mutex_);
          disturbed_at_ = disturbed_at_.value_or(std::chrono::steady_clock::now());
        }
      }
    });
  }
  // Sends `signal` to each of the first `victims` workers that starts to work.
  Result<TrainOutcome> Train(const plan::TrainPlan& plan, int signal = 0, int victims = 0) {
    EventCallback events;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      const std::lock_guard lock(mutex_);
      if (kind == "worker_started") {
        started_.push_back(detail);
      }
      if (kind == "world_formed" && disturbed_at_.has_value()) {
        const std::chrono::duration<double> took =
            std::chrono::steady_clock::now() - *disturbed_at_;
        longest_recovery_ = std::max(longest_recovery_, took.count());
        disturbed_at_.reset();
      }
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
  // At the end of each of the first epochs one server gets `signal`, unless the parameters of the last
  // one that was lost are not on two servers again; then `at_epoch` is called.
  Result<TrainOutcome> TrainWithLostServers(
      const plan::TrainPlan& plan, int signal, int victims,
      const std::function<void(JobHandle&, int)>& at_epoch = {}) {
    JobHandle handle;
    EventCallback events;
    int epoch = 0;
    bool whole = true;
    std::chrono::steady_clock::time_point killed;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      whole = whole || kind == "partitions_moved";
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
      if (epoch < victims && pid.ok() && whole) {
        whole = false;
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
  std::mutex mutex_;
  std::vector<std::string> started_;
  std::atomic<int> sent_ = 0;
  // From a disturbance to the next world that trains.
  std::optional<std::chrono::steady_clock::time_point> disturbed_at_;
  double longest_recovery_ = 0;
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

// Another worker races its lanes when the step has waited for a second, and may be through before
// the silence of three seconds gives the hung one up.
TEST_F(FleetTraining, AHungWorkerDoesNotHoldTheJobUp) {  // S12, S19
  const Result<TrainOutcome> outcome = Train(Plan(2, 1, 2, true), SIGSTOP, 1);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_GE(Count("worker_lost") + Count("task_shared"), 1);
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

TEST_F(FleetTraining, AllReduceHasTheBitsOfServersWhateverTheNumberOfWorkers) {  // G4, R4
  const std::string expected = BitsInProcess(AllReducePlan(1, 2));
  const Result<TrainOutcome> servers = Train(Plan(2, 2, 2, true));
  ASSERT_TRUE(servers.ok()) << servers.status().ToString();
  EXPECT_EQ(models::SaveWeights(servers->weights), expected);
  for (uint32_t workers : {1, 2, 3, 8}) {
    const Result<TrainOutcome> outcome = Train(AllReducePlan(workers, 2));
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(models::SaveWeights(outcome->weights), expected) << workers << " workers";
    EXPECT_EQ(outcome->rows_trained, servers->rows_trained);
    EXPECT_EQ(ChildrenLeft(), 0);
  }
}

TEST_F(FleetTraining, AllReduceBitsSurviveKillsAtRandomMoments) {  // R2, R5, R7
  const plan::TrainPlan plan = AllReducePlan(3, 20);
  const std::string expected = BitsInProcess(plan);
  for (uint64_t seed : {1, 2}) {
    events_.clear();
    started_.clear();
    sent_ = 0;
    const std::jthread disturb = Disturb({SIGKILL, SIGTERM, SIGKILL, SIGKILL, SIGTERM}, seed);
    const Result<TrainOutcome> outcome = Train(plan);
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_GE(sent_, 2) << "the job was over before it was disturbed";
    EXPECT_EQ(models::SaveWeights(outcome->weights), expected) << "seed " << seed;
    EXPECT_EQ(outcome->rows_trained, 20 * outcome->rows_per_epoch);
    EXPECT_LT(longest_recovery_, kGenerousSeconds);
    EXPECT_EQ(ChildrenLeft(), 0);
  }
  RecordProperty("longest_recovery_seconds", std::to_string(longest_recovery_));
}

TEST_F(FleetTraining, AllReduceLeavesAHungWorkerBehind) {  // R7
  const plan::TrainPlan plan = AllReducePlan(3, 20);
  const std::string expected = BitsInProcess(plan);
  const std::jthread disturb = Disturb({SIGSTOP}, 3);
  const Result<TrainOutcome> outcome = Train(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(sent_, 1);
  EXPECT_GE(Count("world_formed"), 2);
  EXPECT_LT(longest_recovery_, kGenerousSeconds);
  RecordProperty("recovery_seconds", std::to_string(longest_recovery_));
  EXPECT_EQ(models::SaveWeights(outcome->weights), expected);
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, AllReduceWaitsForTheLeastNumberOfWorkers) {  // R6
  plan::TrainPlan plan = AllReducePlan(2, 20);
  plan.mutable_strategy()->set_min_workers(2);
  const std::string expected = BitsInProcess(plan);
  const std::jthread disturb = Disturb({SIGKILL, SIGKILL}, 4);
  const Result<TrainOutcome> outcome = Train(plan);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_GE(Count("worker_lost"), 1);
  for (const std::string& event : events_) {
    EXPECT_EQ(event.find("1 workers"), std::string::npos) << event;
  }
  EXPECT_EQ(models::SaveWeights(outcome->weights), expected);
}

TEST_F(FleetTraining, P15_KilledServersCostNothing) {
  const Result<TrainOutcome> undisturbed = Train(Plan(1, 1, 4, true));
  ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
  plan::TrainPlan plan = Plan(2, 2, 4, true);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> killed = TrainWithLostServers(plan, SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("server_lost"), 1);
  EXPECT_EQ(killed->rows_trained, 4 * killed->rows_per_epoch);
  EXPECT_EQ(models::SaveWeights(killed->weights), models::SaveWeights(undisturbed->weights));
  EXPECT_EQ(ChildrenLeft(), 0);
}

TEST_F(FleetTraining, P7_AsynchronousTrainingOutlivesKilledServers) {
  plan::TrainPlan plan = Plan(2, 3, 4, false);
  plan.mutable_strategy()->set_replicas(1);
  const Result<TrainOutcome> killed = TrainWithLostServers(plan, SIGKILL, 3);
  ASSERT_TRUE(killed.ok()) << killed.status().ToString();
  EXPECT_GE(Count("server_lost"), 1);
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
