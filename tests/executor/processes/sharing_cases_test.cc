// The table of cases on this machine: those with one node and no services.
#include "tests/elastic/fleet/sharing_cases.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "executor/processes/slot_arbiter.h"

namespace sluice::executor {
namespace {

class LocalSharing : public testing::TestWithParam<elastic::SharingCase> {
 protected:
  // Starts and ends workers as granted, until every job has what the table says.
  bool Reach(SlotArbiter& arbiter, const std::vector<int64_t>& ids,
             const std::vector<uint32_t>& goal) {
    std::map<int64_t, std::vector<int64_t>> live;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < until) {
      std::map<size_t, uint32_t> granted;
      {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::milliseconds(50));
        granted = granted_;
      }
      bool reached = true;
      for (size_t job = 0; job < ids.size(); ++job) {
        std::vector<int64_t>& workers = live[ids[job]];
        for (; workers.size() < granted[job];) {
          workers.push_back(arbiter.WorkerStarted(ids[job]));
        }
        for (; workers.size() > granted[job]; workers.pop_back()) {
          arbiter.WorkerEnded(ids[job], workers.back(), false);
        }
        reached = reached && granted[job] == goal[job];
      }
      if (reached) {
        return true;
      }
    }
    return false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, uint32_t> granted_;
};

TEST_P(LocalSharing, OnThisMachine) {
  const elastic::SharingCase& given = GetParam();
  SlotArbiter::Options options;
  options.slots = given.nodes[0];
  options.memory_bytes = int64_t{64} << 30;
  options.autoscaler.hysteresis_seconds = 0;
  SlotArbiter arbiter(options);
  std::vector<int64_t> ids;
  std::vector<uint32_t> goal;
  for (const elastic::SharingCase::Job& job : given.jobs) {
    Room::Request request;
    request.name = "job" + std::to_string(ids.size());
    request.min = job.min;
    request.max = job.max;
    request.priority = job.priority;
    const Result<int64_t> id =
        arbiter.Enter(request, [this, index = ids.size()](const Room::Grant& grant) {
          const std::lock_guard lock(mutex_);
          granted_[index] = grant.workers;
          changed_.notify_all();
        });
    if (job.min > static_cast<uint32_t>(given.nodes[0])) {
      EXPECT_EQ(id.status().code(), Code::kInvalidArgument) << "it would wait for ever";
      EXPECT_EQ(job.workers, 0U);
      continue;
    }
    ASSERT_TRUE(id.ok()) << id.status().ToString();
    ids.push_back(*id);
    goal.push_back(job.workers);
  }
  EXPECT_TRUE(Reach(arbiter, ids, goal)) << testing::PrintToString(granted_);
}

// This machine is one node without services.
std::vector<elastic::SharingCase> LocalCases() {
  std::vector<elastic::SharingCase> cases = elastic::SharingCases();
  std::erase_if(cases, [](const elastic::SharingCase& each) {
    return each.nodes.size() != 1 || !each.services.empty();
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(, LocalSharing, testing::ValuesIn(LocalCases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace sluice::executor
