#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elastic/job/fleet_job.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/local_job.h"
#include "tests/elastic/job/small_job.h"
#include "tests/elastic/job/thread_fleet.h"
#include "tests/elastic/master/memory_journal.h"

namespace sluice::elastic {

// A job that is stopped after some checkpoints; then the same statement is run again.
class ResumedJob : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 6'000;
  static constexpr int64_t kRowsPerShard = 500;
  // Long enough for some checkpoints: steps are reported ten times a second. What is compiled for
  // the sanitizers trains more slowly.
#ifdef NDEBUG
  static constexpr uint32_t kServerEpochs = 30;
#else
  static constexpr uint32_t kServerEpochs = 8;
#endif
  using Disturb = std::function<void(ThreadFleet&, const std::string& kind)>;

  ResumedJob()
      : path_(std::filesystem::temp_directory_path() /
              ("sluice-resumed-test-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~ResumedJob() override {
    std::filesystem::remove_all(path_);
  }

  plan::TrainPlan Plan(plan::Strategy::Kind kind, uint32_t workers, uint32_t servers = 1) const {
    plan::TrainPlan plan =
        SmallPlan(kind == plan::Strategy::PARAMETER_SERVER ? kServerEpochs : 300, 128);
    plan::Strategy* strategy = plan.mutable_strategy();
    strategy->set_kind(kind);
    strategy->set_workers(workers);
    strategy->set_max_workers(workers);
    strategy->set_parameter_servers(servers);
    plan::Checkpoints* checkpoints = plan.mutable_checkpoints();
    checkpoints->set_directory(path_.string());
    checkpoints->set_every_steps(10);
    checkpoints->set_keep(2);
    checkpoints->set_statement("train it");
    return plan;
  }
  plan::TrainPlan Synchronous(plan::Strategy::Kind kind, uint32_t workers,
                              uint32_t servers = 1) const {
    plan::TrainPlan plan = Plan(kind, workers, servers);
    plan.mutable_strategy()->set_mode(plan::Strategy::SYNCHRONOUS);
    plan.mutable_strategy()->set_micro_batches(4);
    return plan;
  }
  static catalog::DatasetSpec Counted(catalog::DatasetSpec spec) {
    spec.set_counted_rows(kRows);
    return spec;
  }

  // As run by the executor. Stops at the given checkpoint; 0: runs to the end.
  Result<TrainOutcome> Run(const plan::TrainPlan& wanted, int stop_at = 0,
                           const Disturb& disturb = {}) {
    ASSIGN_OR_RETURN(std::optional<JobCheckpoints> checkpoints, JobCheckpoints::Open(wanted));
    const plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
    catalog::DatasetSpec data = Counted(source_->Spec(kRowsPerShard));
    if (checkpoints.has_value()) {
      ASSIGN_OR_RETURN(data, checkpoints->DataToRun(data, nullptr));
    }
    ThreadFleet fleet(*source_);
    std::stop_source stop;
    events_.clear();
    int written = 0;
    EventCallback events;
    events.on_event = [&](const std::string& kind, const std::string& detail) {
      events_.push_back(kind + " " + detail);
      if (kind == "checkpoint_written" && ++written == stop_at) {
        stop.request_stop();
      }
      if (disturb) {
        disturb(fleet, kind);
      }
    };
    JobCheckpoints* saved = checkpoints.has_value() ? &*checkpoints : nullptr;
    if (plan.strategy().kind() == plan::Strategy::LOCAL) {
      return TrainInProcess({.plan = plan,
                             .source = *source_,
                             .dataset = data,
                             .events = events,
                             .stop = stop.get_token(),
                             .checkpoints = saved});
    }
    Succession succession;
    succession.journal = &journal_;
    JobEndpoint endpoint("job1");
    endpoint.term = term_;
    return TrainOnFleet({.plan = plan,
                         .source = *source_,
                         .dataset = data,
                         .events = events,
                         .stop = stop.get_token(),
                         .checkpoints = saved},
                        fleet, endpoint, term_ != kNoTerm ? succession : Succession{});
  }
  Result<TrainOutcome> Undisturbed(plan::TrainPlan plan) {
    plan.clear_checkpoints();
    return Run(plan);
  }
  // A small training may end while its checkpoint is being written: then once more, from the
  // checkpoints that were there.
  void Stopped(const plan::TrainPlan& plan, int at) {
    constexpr int kTries = 20;
    const std::filesystem::path folder = plan.checkpoints().directory();
    const std::filesystem::path before = folder.string() + "-before";
    const auto copy = [](const std::filesystem::path& from, const std::filesystem::path& to) {
      std::filesystem::remove_all(to);
      if (std::filesystem::exists(from)) {
        std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
      }
    };
    copy(folder, before);
    Result<TrainOutcome> stopped = Run(plan, at);
    for (int tried = 1; stopped.ok() && term_ == kNoTerm && tried < kTries; ++tried) {
      copy(before, folder);
      stopped = Run(plan, at);
    }
    std::filesystem::remove_all(before);
    ASSERT_EQ(stopped.status().code(), Code::kCancelled) << stopped.status().ToString();
  }
  static std::string Bits(const Result<TrainOutcome>& outcome) {
    return models::SaveWeights(outcome.value().weights);
  }
  void ExpectSame(const Result<TrainOutcome>& resumed, const Result<TrainOutcome>& undisturbed) {
    ASSERT_TRUE(undisturbed.ok()) << undisturbed.status().ToString();
    ASSERT_TRUE(resumed.ok()) << resumed.status().ToString();
    EXPECT_EQ(Bits(resumed), Bits(undisturbed));
    EXPECT_EQ(resumed->metrics, undisturbed->metrics);
    ExpectEveryRow(resumed);
  }
  static void ExpectEveryRow(const Result<TrainOutcome>& resumed) {
    ASSERT_TRUE(resumed.ok()) << resumed.status().ToString();
    EXPECT_EQ(resumed->rows_per_epoch + resumed->validation_rows, kRows);
    EXPECT_EQ(resumed->rows_trained, resumed->epochs * resumed->rows_per_epoch);
  }
  int Count(const std::string& kind) const {
    int count = 0;
    for (const std::string& event : events_) {
      count += event.starts_with(kind + " ") ? 1 : 0;
    }
    return count;
  }
  std::vector<std::filesystem::path> Checkpoints() const {
    std::vector<std::filesystem::path> paths;
    for (const std::filesystem::directory_entry& entry :
         std::filesystem::directory_iterator(path_)) {
      if (entry.path().filename().string().starts_with("checkpoint-")) {
        paths.push_back(entry.path());
      }
    }
    std::sort(paths.begin(), paths.end(),
              [](const std::filesystem::path& a, const std::filesystem::path& b) {
                return std::stoi(a.filename().string().substr(11)) <
                       std::stoi(b.filename().string().substr(11));
              });
    return paths;
  }

  std::filesystem::path path_;
  Term term_ = kNoTerm;  // of the master; none: it has no journal
  MemoryJournal journal_;
  std::unique_ptr<testing::MemorySource> source_ = SmallSource(kRows);
  std::vector<std::string> events_;
};

}  // namespace sluice::elastic
