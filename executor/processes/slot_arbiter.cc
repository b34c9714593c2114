#include "executor/processes/slot_arbiter.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/guarded.h"

namespace sluice::executor {
namespace {

SlotArbiter::Options Whole(SlotArbiter::Options options) {
  const RoomSize size = WithMachine(RoomSize{options.slots, options.memory_bytes});
  options.slots = size.slots;
  options.memory_bytes = size.memory_bytes;
  return options;
}

}  // namespace

SlotArbiter::SlotArbiter(const Options& options) : options_(Whole(options)) {}

Result<int64_t> SlotArbiter::Enter(const Request& request, OnGrant on_grant) {
  RETURN_IF_ERROR(CheckFits(request, {options_.slots, options_.memory_bytes}));
  if (options_.shared_by_roles && request.cpu == 0 &&
      request.memory_bytes > options_.memory_bytes / 2) {
    return ResourceExhausted(
               fmt::format("the training may take {} MiB, and a role's trainings without workers "
                           "may have {}, half of --memory-limit",
                           request.memory_bytes >> 20, options_.memory_bytes >> 21))
        .SqlState("53200")
        .Hint("a smaller model, engine.strategy with workers, or a larger --memory-limit");
  }
  Job job;
  job.request = request;
  job.on_grant = std::move(on_grant);
  const MutexLock lock(mutex_);
  return Add(std::move(job));
}

int64_t SlotArbiter::Return(const Request& request, const Holdings& holdings, OnGrant on_grant) {
  Job job;
  job.request = request;
  job.on_grant = std::move(on_grant);
  job.grant = {holdings.granted, holdings.granted, {}};
  job.started = true;
  job.live.insert(holdings.live.begin(), holdings.live.end());
  job.out_of_memory = holdings.out_of_memory;
  const MutexLock lock(mutex_);
  return Add(std::move(job));
}

void SlotArbiter::SetWorkers(int64_t job, const Holdings& holdings) {
  const MutexLock lock(mutex_);
  Job& known = jobs_.at(job);
  known.live = {holdings.live.begin(), holdings.live.end()};
  known.out_of_memory = holdings.out_of_memory;
  Changed();
}

int64_t SlotArbiter::Add(Job job) {
  job.arrival = clock_.Now();
  jobs_[next_] = std::move(job);
  ForgetRates();
  Changed();
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  return next_++;
}

void SlotArbiter::Leave(int64_t job) {
  const MutexLock lock(mutex_);
  jobs_.erase(job);
  ForgetRates();
  Changed();
}

int64_t SlotArbiter::WorkerStarted(int64_t job) {
  const MutexLock lock(mutex_);
  Job& known = jobs_.at(job);
  const int64_t memory =
      MemoryOfWorker(known.request, known.out_of_memory, {options_.slots, options_.memory_bytes});
  known.live.insert(memory);
  Changed();
  return memory;
}

void SlotArbiter::WorkerEnded(int64_t job, int64_t memory_bytes, bool out_of_memory) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  if (found != jobs_.end()) {
    Job& known = found->second;
    const auto one = known.live.find(memory_bytes);
    if (one != known.live.end()) {
      known.live.erase(one);
    }
    known.out_of_memory += out_of_memory ? 1 : 0;
    Changed();
  }
}

void SlotArbiter::Report(int64_t job, uint32_t workers, double rows_per_second, double rows_left) {
  const MutexLock lock(mutex_);
  Job& known = jobs_.at(job);
  known.rows_left = rows_left;
  if (workers == known.grant.workers && workers > 0 && rows_per_second > 0) {
    known.curve.Measure(workers, rows_per_second);
    Changed();
  }
}

void SlotArbiter::ForgetRates() {
  for (auto& [id, job] : jobs_) {
    job.curve.Forget();
  }
}

void SlotArbiter::Changed() {
  dirty_ = true;
  changed_.notify_all();
}

void SlotArbiter::Run(const std::stop_token& stop) {
  const std::function<void()> decide = [this]() REQUIRES(mutex_) { Decide(); };
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto due = [this]() REQUIRES(mutex_) { return dirty_; };
    if (look_again_) {
      changed_.wait_for(lock.native(), stop, *look_again_ - clock_.Now(), due);
    } else {
      changed_.wait(lock.native(), stop, due);
    }
    dirty_ = false;
    // Logged by Guarded; the next change, or the next look, decides again.
    [[maybe_unused]] const Status decided = Guarded("granting workers", decide);
  }
}

std::vector<elastic::ClusterNode> SlotArbiter::Nodes() const {
  return {{"this machine", {options_.slots, options_.memory_bytes, 0}, false}};
}

elastic::ClusterJob SlotArbiter::Describe(const Job& job) {
  elastic::ClusterJob one;
  one.name = job.request.name;
  one.min = job.request.min;
  one.max = job.request.max;
  one.priority = job.request.priority;
  one.arrival = job.arrival;
  one.worker = {job.request.cpu, job.request.memory_bytes, 0};
  one.granted = job.grant.workers;
  one.out_of_memory = job.out_of_memory;
  one.throughput = job.curve.Points();
  one.measured_from = job.curve.Fewest();
  one.rows_left = job.rows_left;
  return one;
}

// Adds the job and its processes. A granted worker that does not run yet holds its place; one that
// runs beyond its job's grant is about to leave.
void SlotArbiter::Describe(const Job& job, elastic::ClusterState& state) const {
  const int index = static_cast<int>(state.jobs.size());
  state.jobs.push_back(Describe(job));
  elastic::ClusterProcess server;
  server.job = index;
  server.node = job.started ? 0 : elastic::ClusterProcess::kNone;
  server.request.memory_bytes = job.request.server_memory_bytes;
  state.processes.insert(state.processes.end(), job.request.servers, server);
  elastic::ClusterProcess worker;
  worker.job = index;
  worker.node = 0;
  worker.worker = true;
  worker.request = elastic::RequestOf(state.jobs.back(), state.nodes);
  uint32_t count = 0;
  for (const int64_t memory : job.live) {
    elastic::ClusterProcess live = worker;
    live.request.memory_bytes = memory;
    live.terminating = ++count > job.grant.workers;
    state.processes.push_back(live);
  }
  for (; count < job.grant.workers; ++count) {
    state.processes.push_back(worker);
  }
}

std::set<int64_t> SlotArbiter::HeldBack() const {
  std::set<int64_t> held;
  std::map<std::string, int64_t> used;
  for (const bool started : {true, false}) {
    for (const auto& [id, job] : jobs_) {
      if (!options_.shared_by_roles || job.request.cpu > 0 || job.started != started) {
        continue;
      }
      int64_t& of_role = used[job.request.owner];
      if (!started && of_role + job.request.memory_bytes > options_.memory_bytes / 2) {
        held.insert(id);
      } else {
        of_role += job.request.memory_bytes;
      }
    }
  }
  return held;
}

elastic::ClusterState SlotArbiter::Describe(const std::set<int64_t>& without) const {
  elastic::ClusterState state;
  state.nodes = Nodes();
  for (const auto& [id, job] : jobs_) {
    if (!without.contains(id)) {
      Describe(job, state);
    }
  }
  return state;
}

elastic::StartForecast SlotArbiter::Forecast(const Request& request) const {
  Job job;
  job.request = request;
  elastic::ClusterState state = State();
  Describe(job, state);
  return elastic::ForecastStart(state, state.jobs.size() - 1, options_.autoscaler, clock_.Now());
}

elastic::ClusterState SlotArbiter::State() const {
  const MutexLock lock(mutex_);
  return Describe(std::set<int64_t>());
}

void SlotArbiter::Decide() {
  const std::set<int64_t> held = HeldBack();
  const elastic::ClusterState state = Describe(held);
  const elastic::ScalingDecision decision =
      elastic::Autoscale(state, options_.autoscaler, history_, clock_.Now());
  history_ = decision.history;
  look_again_ = decision.look_again;
  int index = 0;
  for (auto& [id, job] : jobs_) {
    if (held.contains(id)) {
      continue;
    }
    const elastic::ScalingDecision::Target& target = decision.targets[static_cast<size_t>(index)];
    const auto starts = static_cast<uint32_t>(
        std::count_if(decision.starts.begin(), decision.starts.end(),
                      [index](const auto& start) { return start.job == index; }));
    ++index;
    Grant grant{std::min(target.workers, job.grant.workers + starts), target.workers,
                target.reason};
    if (!job.started && grant.workers < job.request.min) {
      grant.workers = 0;  // it begins with its smallest number, when there is room for that
    }
    job.started = job.started || grant.workers > 0;
    if (grant.workers != job.grant.workers || grant.wanted != job.grant.wanted) {
      if (job.live.size() < job.grant.workers && grant.workers < job.grant.workers) {
        Changed();  // places are free that no worker will leave
      }
      job.grant = grant;
      job.on_grant(grant);
    }
  }
}

}  // namespace sluice::executor
