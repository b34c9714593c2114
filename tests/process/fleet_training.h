#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/local_job.h"
#include "executor/processes/local_fleet.h"
#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {

// Workers and parameter servers are processes of the real binary over a SQLite file; this process
// is their master, and kills them.
class FleetTraining : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 60'000;

  FleetTraining() {
    file_ = std::filesystem::temp_directory_path() /
            ("sluice-process-test-" + std::to_string(getpid()) + ".db");
    Remove();
    source_ = catalog::OpenDataSource("sqlite:" + file_.string()).value();
    Fill();
    Cut(2'000);
    fleet_ = executor::LocalFleet::Make({SLUICE_BINARY}).value();
  }
  ~FleetTraining() override {
    fleet_.reset();
    dataset_.reset();
    source_.reset();
    Remove();
  }
  void Cut(int64_t rows_per_shard) {
    dataset_.reset();
    catalog::DatasetOptions options;
    options.rows_per_shard = rows_per_shard;
    options.many_processes = true;
    dataset_ = source_->OpenDataset("SELECT a, b, c, y FROM t", options).value();
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
    ASSERT_TRUE(source_->AppendRows({"", "t"}, schema, batch).ok());
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
  // The weights that every synchronous training must give.
  std::string BitsInProcess(const plan::TrainPlan& plan) {
    plan::TrainPlan here = plan;
    here.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
    const Result<TrainOutcome> outcome =
        TrainInProcess({.plan = here, .source = *source_, .dataset = dataset_->spec()});
    return models::SaveWeights(outcome.value().weights);
  }
  // Sends `signals` to random workers while a job runs, one every 50 to 250 ms.
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
        // The last ones started are those that live.
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
  // Sends `signal` to each of the first `victims` workers that start to work.
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
    return TrainOnFleet(
        {.plan = plan, .source = *source_, .dataset = dataset_->spec(), .events = events}, *fleet_,
        "job1");
  }
  // At the end of each of the first epochs, one server gets `signal`, unless the parameters of the
  // previous one are not yet on two servers again.
  Result<TrainOutcome> TrainWithLostServers(const plan::TrainPlan& plan, int signal, int victims) {
    EventCallback events;
    int epoch = 0;
    bool whole = true;
    std::chrono::steady_clock::time_point killed;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      whole = whole || kind == "partitions_moved";
      if (kind == "server_lost") {
        // From the signal to the new map; for information, since no test can guarantee it.
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
    };
    return TrainOnFleet(
        {.plan = plan, .source = *source_, .dataset = dataset_->spec(), .events = events}, *fleet_,
        "job1");
  }
  int Count(const std::string& kind) const {
    int count = 0;
    for (const std::string& event : events_) {
      count += event.starts_with(kind + " ") ? 1 : 0;
    }
    return count;
  }
  // Number of this process's children that run the binary.
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

}  // namespace sluice::elastic
