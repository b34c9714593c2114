#include <algorithm>

#include "tests/simulation/cluster_world.h"

// Masters and servers of jobs, and their suspension.
namespace sluice::elastic {

void ClusterWorld::AddMasterAndServers(int index) {
  const WorldJob& job = jobs_[numbers_[static_cast<size_t>(index)]];
  if (job.master.cpu > 0) {
    lives_[AddProcess(index, false, job.master)].master = true;
  }
  for (uint32_t i = 0; i < job.servers; ++i) {
    AddProcess(index, false, job.server);
  }
}

bool ClusterWorld::MayRequestWorker(int index) const {
  constexpr uint32_t kFirstWorkers = 2;
  uint32_t workers = 0;
  bool master_runs = true;
  for (size_t i = 0; options_.master_first && i < state_.processes.size(); ++i) {
    const ClusterProcess& process = state_.processes[i];
    if (process.job != index || process.terminating) {
      continue;
    }
    workers += process.worker ? 1 : 0;
    master_runs = master_runs && (!lives_[i].master || Running(i));
    if (!process.worker && process.node == ClusterProcess::kNone) {
      return false;
    }
  }
  return master_runs ||
         workers < std::min(kFirstWorkers, jobs_[numbers_[static_cast<size_t>(index)]].min);
}

bool ClusterWorld::Suspended(size_t job) const {
  const int index = IndexOf(job);
  return index != ClusterProcess::kNone && state_.jobs[static_cast<size_t>(index)].suspended;
}

// A job that is suspended ends all its processes, and keeps what it has done; master and servers
// wait to be placed again.
void ClusterWorld::Suspend(const ScalingDecision& decision) {
  for (size_t job = 0; job < state_.jobs.size(); ++job) {
    const bool suspend = decision.targets[job].suspend;
    if (suspend && !state_.jobs[job].suspended) {
      const size_t there = state_.processes.size();
      for (size_t i = 0; i < there; ++i) {
        if (state_.processes[i].job == static_cast<int>(job)) {
          End(i);
        }
      }
      AddMasterAndServers(static_cast<int>(job));
      ++suspensions_;
    }
    changed_ = changed_ || suspend != state_.jobs[job].suspended;
    state_.jobs[job].suspended = suspend;
  }
}

}  // namespace sluice::elastic
