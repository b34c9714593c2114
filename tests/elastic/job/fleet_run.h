#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/profile.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "tests/elastic/job/small_job.h"
#include "tests/elastic/job/thread_fleet.h"

// One small training on a fleet of threads, and its reports.
namespace sluice::elastic {

struct FleetRun {
  Result<TrainOutcome> outcome = Internal("not run");
  std::vector<std::pair<std::string, std::string>> events;
  std::vector<std::string> launched;
  Profile profile;

  int Count(const std::string& kind) const {
    int count = 0;
    for (const auto& [name, detail] : events) {
      count += name == kind ? 1 : 0;
    }
    return count;
  }
};

inline plan::TrainPlan FleetPlan(uint32_t workers, uint32_t servers, uint32_t epochs) {
  plan::TrainPlan plan = SmallPlan(epochs, 64);
  plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
  plan.mutable_strategy()->set_workers(workers);
  plan.mutable_strategy()->set_parameter_servers(servers);
  return plan;
}

// `disturb` receives every event while the job runs.
inline FleetRun TrainWith(
    const plan::TrainPlan& plan, testing::MemorySource& source, int64_t rows_per_shard,
    const models::NetworkWeights* base = nullptr,
    const std::function<void(ThreadFleet&, const std::string&, const std::string&)>& disturb = {}) {
  ThreadFleet fleet(source);
  FleetRun run;
  ProfileSum profile;
  EventCallback events;
  events.on_event = [&](const std::string& kind, const std::string& detail) {
    run.events.emplace_back(kind, detail);
    if (disturb) {
      disturb(fleet, kind, detail);
    }
  };
  run.outcome = TrainOnFleet({.plan = plan,
                              .source = source,
                              .dataset = source.Spec(rows_per_shard),
                              .base = base,
                              .events = events,
                              .profile = &profile},
                             fleet, "job1");
  run.profile = profile.Get();
  run.launched = fleet.launched();
  return run;
}

inline std::string Bits(const FleetRun& run) {
  return models::SaveWeights(run.outcome.value().weights);
}

}  // namespace sluice::elastic
