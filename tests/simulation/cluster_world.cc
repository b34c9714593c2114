#include "tests/simulation/cluster_world.h"

#include <algorithm>
#include <cmath>

namespace sluice::elastic {
namespace {

constexpr double kSmall = 1e-9;
// A rate counts when the same workers have run for this long.
constexpr double kSteadySeconds = 1;
// How often measurements alone are decided upon.
constexpr double kLookSeconds = 1;

}  // namespace

void ClusterWorld::AddNode(const std::string& name, const Capacity& capacity) {
  state_.nodes.push_back({name, capacity});
  changed_ = true;
}

void ClusterWorld::LoseNode(const std::string& name) {
  const auto found = std::find_if(state_.nodes.begin(), state_.nodes.end(),
                                  [&name](const ClusterNode& node) { return node.name == name; });
  if (found == state_.nodes.end()) {
    return;
  }
  const int index = static_cast<int>(found - state_.nodes.begin());
  for (size_t i = state_.processes.size(); i-- > 0;) {
    ClusterProcess& process = state_.processes[i];
    if (process.node == index && (process.worker || process.terminating)) {
      Erase(i);
    } else if (process.node == index) {  // replaced by another one
      process.node = ClusterProcess::kNone;
      lives_[i].runs_at = -1;
    } else if (process.node > index) {
      --process.node;
    }
  }
  state_.nodes.erase(found);
  changed_ = true;
}

void ClusterWorld::SetNode(const std::string& name, bool suspect, bool cordoned) {
  for (ClusterNode& node : state_.nodes) {
    if (node.name == name) {
      node.suspect = suspect;
      node.cordoned = cordoned;
    }
  }
  changed_ = true;
}

size_t ClusterWorld::AddJob(WorldJob job) {
  const size_t number = jobs_.size();
  ClusterJob described;
  described.name = job.name.empty() ? "job" + std::to_string(number) : job.name;
  described.min = job.min;
  described.max = job.max;
  described.priority = job.priority;
  described.arrival = At(now_);
  described.worker = job.worker;
  described.can_suspend = job.can_suspend;
  const int index = static_cast<int>(state_.jobs.size());
  state_.jobs.push_back(described);
  numbers_.push_back(number);
  jobs_.push_back(std::move(job));
  AddMasterAndServers(index);
  for (uint32_t i = 0;
       options_.scaling != WorldOptions::Scaling::kAutoscaler && i < jobs_[number].max; ++i) {
    AddProcess(index, true, jobs_[number].worker);
  }
  fates_.push_back({now_, std::nullopt, std::nullopt, 0});
  curves_.emplace_back();
  steady_.emplace_back(0, now_);
  changed_ = true;
  return number;
}

int ClusterWorld::IndexOf(size_t job) const {
  const auto found = std::find(numbers_.begin(), numbers_.end(), job);
  return found == numbers_.end() ? ClusterProcess::kNone
                                 : static_cast<int>(found - numbers_.begin());
}

// Its processes end; they no longer belong to a job.
void ClusterWorld::EndJob(size_t job) {
  const int index = IndexOf(job);
  if (index == ClusterProcess::kNone) {
    return;
  }
  fates_[job].ended = now_;
  for (size_t i = state_.processes.size(); i-- > 0;) {
    ClusterProcess& process = state_.processes[i];
    if (process.job == index) {
      process.job = ClusterProcess::kNone;
      process.worker = false;
      End(i);
    } else if (process.job > index) {
      --process.job;
    }
  }
  state_.jobs.erase(state_.jobs.begin() + index);
  numbers_.erase(numbers_.begin() + index);
  changed_ = true;
}

void ClusterWorld::SetService(const std::string& name, const Capacity& process, uint32_t count,
                              std::optional<int> priority) {
  uint32_t there = 0;
  for (size_t i = state_.processes.size(); i-- > 0;) {
    if (lives_[i].service == name && !state_.processes[i].terminating && ++there > count) {
      End(i);
    }
  }
  for (; there < count; ++there) {
    const size_t made = AddProcess(ClusterProcess::kNone, false, process);
    lives_[made].service = name;
    state_.processes[made].priority = priority;
  }
  changed_ = true;
}

bool ClusterWorld::KillWorker() {
  std::vector<size_t> workers;
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    if (state_.processes[i].worker && Running(i)) {
      workers.push_back(i);
    }
  }
  if (workers.empty()) {
    return false;
  }
  Erase(workers[random_() % workers.size()]);
  return true;
}

size_t ClusterWorld::AddProcess(int job, bool worker, const Capacity& request) {
  ClusterProcess process;
  process.name = "p" + std::to_string(++made_);
  process.job = job;
  process.worker = worker;
  process.request = request;
  process.started = At(now_);
  process.cost = std::uniform_real_distribution<double>(0, 512)(random_);
  state_.processes.push_back(process);
  lives_.emplace_back();
  starts_ += worker ? 1 : 0;
  changed_ = true;
  return state_.processes.size() - 1;
}

void ClusterWorld::Put(size_t process, int node) {
  state_.processes[process].node = node;
  lives_[process].runs_at =
      now_ + std::uniform_real_distribution<double>(options_.shortest_start_seconds,
                                                    options_.longest_start_seconds)(random_);
  changed_ = true;
}

void ClusterWorld::End(size_t process) {
  if (lives_[process].gone_at >= 0) {
    return;
  }
  state_.processes[process].terminating = true;
  lives_[process].gone_at = state_.processes[process].node == ClusterProcess::kNone
                                ? now_
                                : now_ + options_.grace_seconds;
  changed_ = true;
}

void ClusterWorld::Erase(size_t process) {
  state_.processes.erase(state_.processes.begin() + static_cast<std::ptrdiff_t>(process));
  lives_.erase(lives_.begin() + static_cast<std::ptrdiff_t>(process));
  changed_ = true;
}

void ClusterWorld::Step() {
  now_ += options_.step_seconds;
  Collect();
  Train();
  Schedule();
  if (options_.scaling == WorldOptions::Scaling::kAutoscaler) {
    Scale();
  }
}

void ClusterWorld::Collect() {
  for (size_t i = state_.processes.size(); i-- > 0;) {
    if (lives_[i].gone_at >= 0 && lives_[i].gone_at <= now_ + kSmall) {
      Erase(i);
    }
  }
}

bool ClusterWorld::Ready(size_t job) const {
  const int index = IndexOf(job);
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    if (state_.processes[i].job == index && !state_.processes[i].worker && !Running(i)) {
      return false;
    }
  }
  return true;
}

double ClusterWorld::RateOf(size_t job, uint32_t workers) const {
  const double n = workers;
  return n / (1 + jobs_[job].serial * (n - 1));
}

uint32_t ClusterWorld::Workers(size_t job) const {
  const int index = IndexOf(job);
  uint32_t workers = 0;
  for (size_t i = 0; index != ClusterProcess::kNone && i < state_.processes.size(); ++i) {
    const ClusterProcess& process = state_.processes[i];
    workers += process.worker && process.job == index && !process.terminating && Running(i) ? 1 : 0;
  }
  return workers;
}

void ClusterWorld::Train() {
  const std::vector<size_t> numbers = numbers_;
  for (const size_t number : numbers) {
    const uint32_t workers = Workers(number);
    Fate& fate = fates_[number];
    if (workers > 0 && !fate.first_worker) {
      fate.first_worker = now_;
    }
    if (steady_[number].first != workers) {
      steady_[number] = {workers, now_};
    }
    if (workers == 0 || !Ready(number)) {
      continue;
    }
    const double rate = RateOf(number, workers);
    fate.done += rate * options_.step_seconds;
    ClusterJob& described = state_.jobs[static_cast<size_t>(IndexOf(number))];
    const double left = jobs_[number].work - fate.done;
    if (std::isfinite(left)) {
      described.rows_left = left;
    }
    if (now_ - steady_[number].second >= kSteadySeconds &&
        (std::isfinite(left) || jobs_[number].serial > 0) &&
        curves_[number].emplace(workers, rate).second) {
      described.throughput = LeastConcave({curves_[number].begin(), curves_[number].end()});
      described.measured_from = curves_[number].begin()->first;
      changed_ = true;
    }
    if (left <= 0) {
      EndJob(number);
    }
  }
}

void ClusterWorld::Scale() {
  const bool due = look_again_ && *look_again_ <= At(now_);
  const double patience = options_.master_first ? 0 : kLookSeconds;
  if (!changed_ && !due && now_ - decided_ < patience) {
    return;
  }
  changed_ = false;
  decided_ = now_;
  ++decisions_;
  // A worker that waits is a start that the plan makes anew, as in the controller.
  ClusterState seen = state_;
  std::vector<size_t> numbers;  // of seen.processes
  seen.processes.clear();
  std::vector<uint32_t> waiting(state_.jobs.size(), 0);
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    const ClusterProcess& process = state_.processes[i];
    if (process.worker && process.node == ClusterProcess::kNone) {
      waiting[static_cast<size_t>(process.job)] += process.terminating ? 0 : 1;
      continue;
    }
    seen.processes.push_back(process);
    numbers.push_back(i);
  }
  const ScalingDecision decision = Autoscale(seen, options_.autoscaler, history_, At(now_));
  history_ = decision.history;
  look_again_ = decision.look_again;
  for (size_t job = 0; job < state_.jobs.size(); ++job) {
    state_.jobs[job].granted = decision.targets[job].workers;
  }
  for (const size_t victim : decision.victims) {
    End(numbers[victim]);
  }
  const bool planned = options_.placing == WorldOptions::Placing::kPlanned;
  for (const auto& [process, node] : decision.puts) {
    const int job = seen.processes[process].job;
    if (planned && job != ClusterProcess::kNone &&
        !decision.targets[static_cast<size_t>(job)].suspend) {
      Put(numbers[process], node);
    }
  }
  for (const ScalingDecision::Start& start : decision.starts) {
    if (!MayRequestWorker(start.job)) {
      continue;
    }
    uint32_t& there = waiting[static_cast<size_t>(start.job)];
    if (!planned && there > 0) {
      --there;  // it has been made already
      continue;
    }
    const size_t made =
        AddProcess(start.job, true, decision.targets[static_cast<size_t>(start.job)].worker);
    if (planned) {
      Put(made, start.node);
    }
  }
  // What has no place is withdrawn.
  for (size_t i = state_.processes.size(); !planned && i-- > 0;) {
    const ClusterProcess& process = state_.processes[i];
    if (process.worker && process.node == ClusterProcess::kNone && !process.terminating &&
        waiting[static_cast<size_t>(process.job)] > 0) {
      --waiting[static_cast<size_t>(process.job)];
      Erase(i);
    }
  }
  Suspend(decision);
}

}  // namespace sluice::elastic
