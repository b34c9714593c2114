#include "elastic/fleet/autoscaler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "elastic/fleet/fragmentation.h"

namespace sluice::elastic {
namespace {

constexpr double kMemoryGrowth = 1.5;  // after a worker that ran out of memory
constexpr double kSmall = 1e-9;

// One way to distribute the cluster, worker by worker.
class Plan {
 public:
  Plan(const ClusterState& state, const AutoscalerOptions& options, std::vector<uint32_t> limits)
      : state_(state),
        options_(options),
        fragmentation_(state),
        limits_(std::move(limits)),
        running_(state.jobs.size()),
        counts_(state.jobs.size(), 0),
        starts_(state.jobs.size()),
        workers_on_(state.nodes.size()) {
    for (const ClusterNode& node : state_.nodes) {
      room_.push_back(node.capacity);
      budget_ += node.capacity;
    }
    budget_ = budget_ * options_.load;
    free_ = room_;
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      const ClusterProcess& process = state_.processes[i];
      if (process.node == ClusterProcess::kNone || process.terminating) {
        continue;
      }
      free_[Node(process)] -= process.request;
      if (process.worker) {
        running_[static_cast<size_t>(process.job)].push_back(i);
        losable_.push_back(i);
        workers_on_[Node(process)].push_back(i);
      } else {
        room_[Node(process)] -= process.request;
        budget_ -= process.request;
      }
    }
    const auto loses_less = [this](size_t a, size_t b) { return Loss(a) < Loss(b); };
    std::sort(losable_.begin(), losable_.end(), loses_less);
    for (std::vector<size_t>& workers : running_) {
      std::sort(workers.begin(), workers.end(),
                [&](size_t a, size_t b) { return loses_less(b, a); });
    }
    kept_.resize(state_.processes.size(), false);
  }

  void Make() {
    for (size_t i = 0; i < state_.processes.size(); ++i) {
      if (Waits(i, ClusterProcess::kNone)) {
        PutWaiting(i);
      }
    }
    for (const size_t job : ByPriority()) {
      GiveMinimum(job);
    }
    FillUp();
  }

  const std::vector<uint32_t>& counts() const { return counts_; }
  bool kept(size_t process) const { return kept_[process]; }
  const std::vector<std::vector<int>>& starts() const { return starts_; }
  const std::vector<std::pair<size_t, int>>& puts() const { return puts_; }
  uint32_t running(size_t job) const { return static_cast<uint32_t>(running_[job].size()); }

  Capacity Request(size_t job) const { return RequestOf(state_.jobs[job], state_.nodes); }

 private:
  static size_t Node(const ClusterProcess& process) { return static_cast<size_t>(process.node); }
  // Small: ending it disturbs little.
  std::tuple<bool, double, TimePoint> Loss(size_t i) const {
    const ClusterProcess& process = state_.processes[i];
    return {!state_.nodes[Node(process)].suspect, process.cost, -process.started};
  }
  bool Waits(size_t i, int job) const {
    const ClusterProcess& process = state_.processes[i];
    return process.node == ClusterProcess::kNone && process.job == job && !process.worker &&
           !process.terminating;
  }

  std::vector<size_t> ByPriority() const {
    std::vector<size_t> order(state_.jobs.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      const ClusterJob& one = state_.jobs[a];
      const ClusterJob& other = state_.jobs[b];
      return std::tie(other.priority, one.arrival) < std::tie(one.priority, other.arrival);
    });
    return order;
  }

  bool Admits(size_t node, const AllowedNodes& allowed) const {
    return !state_.nodes[node].suspect && !state_.nodes[node].cordoned &&
           (allowed == nullptr || (*allowed)[node]);
  }

  // What a process of that priority finds on a node if all workers leave from which it may take
  // their places.
  Capacity RoomFor(size_t node, std::optional<int> priority) const {
    if (!priority) {
      return room_[node];
    }
    Capacity room = free_[node];
    for (const size_t i : workers_on_[node]) {
      if (!kept_[i] && GivesWay(state_.processes[i], priority)) {
        room += state_.processes[i].request;
      }
    }
    return room;
  }
  static bool GivesWay(const ClusterProcess& worker, std::optional<int> priority) {
    return !priority || !worker.priority || *worker.priority < *priority;
  }

  // Among the nodes with room that is not held by a running worker: the one on which the least
  // capacity becomes unusable, then the fullest. Otherwise the node of the worker that loses the
  // least.
  std::optional<int> Place(const Capacity& request, const AllowedNodes& allowed,
                           std::optional<int> priority = std::nullopt) {
    if (!budget_.Fits(request)) {
      return std::nullopt;
    }
    std::optional<int> best;
    double least = 0;
    for (size_t node = 0; node < free_.size(); ++node) {
      if (!Admits(node, allowed) || !free_[node].Fits(request) || !room_[node].Fits(request)) {
        continue;
      }
      const double cpu = free_[node].cpu;
      const double lost = fragmentation_.Lost(cpu - request.cpu) - fragmentation_.Lost(cpu);
      if (!best || lost < least - kSmall ||
          (lost < least + kSmall && cpu < free_[static_cast<size_t>(*best)].cpu)) {
        best = static_cast<int>(node);
        least = lost;
      }
    }
    for (size_t i = 0; !best && i < losable_.size(); ++i) {
      const ClusterProcess& process = state_.processes[losable_[i]];
      if (!kept_[losable_[i]] && GivesWay(process, priority) && Admits(Node(process), allowed) &&
          room_[Node(process)].Fits(request) && RoomFor(Node(process), priority).Fits(request)) {
        best = process.node;
      }
    }
    if (best) {
      room_[static_cast<size_t>(*best)] -= request;
      free_[static_cast<size_t>(*best)] -= request;
      budget_ -= request;
    }
    return best;
  }

  bool PutWaiting(size_t process) {
    const ClusterProcess& waiting = state_.processes[process];
    const std::optional<int> node = Place(waiting.request, waiting.nodes, waiting.priority);
    if (node) {
      puts_.emplace_back(process, *node);
    }
    return node.has_value();
  }

  // The next running worker whose place has not been taken.
  std::optional<size_t> Keepable(size_t job) const {
    for (const size_t i : running_[job]) {
      const ClusterProcess& process = state_.processes[i];
      if (!kept_[i] && room_[Node(process)].Fits(process.request) &&
          budget_.Fits(process.request)) {
        return i;
      }
    }
    return std::nullopt;
  }

  bool GiveWorker(size_t job) {
    if (const std::optional<size_t> worker = Keepable(job)) {
      kept_[*worker] = true;
      const ClusterProcess& process = state_.processes[*worker];
      room_[Node(process)] -= process.request;
      budget_ -= process.request;
      ++counts_[job];
      return true;
    }
    const std::optional<int> node = Place(Request(job), state_.jobs[job].nodes);
    if (node) {
      starts_[job].push_back(*node);
      ++counts_[job];
    }
    return node.has_value();
  }

  void GiveMinimum(size_t job) {
    if (limits_[job] == 0) {
      return;  // its servers alone would be of no use
    }
    const auto before = std::tuple(room_, free_, budget_, kept_, puts_);
    bool fits = true;
    for (size_t i = 0; fits && i < state_.processes.size(); ++i) {
      if (Waits(i, static_cast<int>(job))) {
        fits = PutWaiting(i);
      }
    }
    while (fits && counts_[job] < std::min(state_.jobs[job].min, limits_[job])) {
      fits = GiveWorker(job);
    }
    if (!fits) {
      std::tie(room_, free_, budget_, kept_, puts_) = before;
      counts_[job] = 0;
      starts_[job].clear();
      limits_[job] = 0;
    }
  }

  // The gain of one more worker for the job, and for the cluster.
  double Gain(size_t index) const {
    const ClusterJob& job = state_.jobs[index];
    const double now = ThroughputAt(job, counts_[index]);
    const double more = ThroughputAt(job, counts_[index] + 1) - now;
    if (counts_[index] > 0 && more < options_.knee * ThroughputAt(job, 1)) {
      return 0;
    }
    const double gain =
        counts_[index] == 0 ? std::numeric_limits<double>::max() : job.weight * more / now;
    return Keepable(index) ? gain * (1 + options_.stickiness) : gain;
  }

  // Whether job `a` comes before job `b` at the same gain.
  bool BeforeAtEqualGain(size_t a, size_t b) const {
    const auto rank = [this](size_t index) {
      const ClusterJob& job = state_.jobs[index];
      return std::tuple(Fulfilment(job.min, job.max, counts_[index]), job.worker.gpu,
                        job.worker.cpu, job.worker.memory_bytes, job.arrival);
    };
    return rank(a) < rank(b);
  }

  void FillUp() {
    std::vector<size_t> order = ByPriority();
    while (!order.empty()) {
      const int priority = state_.jobs[order.front()].priority;
      std::optional<size_t> best;
      double best_gain = 0;
      for (const size_t job : order) {
        if (state_.jobs[job].priority != priority) {
          break;
        }
        if (counts_[job] >= limits_[job]) {
          continue;
        }
        const double gain = Gain(job);
        const double margin = kSmall * std::max(1.0, best_gain);
        const bool better = gain > best_gain + margin ||
                            (best && gain > best_gain - margin && BeforeAtEqualGain(job, *best));
        if (gain > 0 && better) {
          best = job;
          best_gain = gain;
        }
      }
      if (best) {
        if (!GiveWorker(*best)) {
          limits_[*best] = counts_[*best];
        }
        continue;
      }
      std::erase_if(order, [&](size_t job) { return state_.jobs[job].priority == priority; });
    }
  }

  const ClusterState& state_;
  const AutoscalerOptions& options_;
  const Fragmentation fragmentation_;
  std::vector<uint32_t> limits_;
  // Capacity left by foreground, servers and the workers placed so far: of each node with and
  // without the workers that run there and may lose their place, and of the whole cluster.
  std::vector<Capacity> room_, free_;
  Capacity budget_;
  std::vector<std::vector<size_t>> running_;  // by job, largest loss first
  std::vector<size_t> losable_;               // smallest loss first
  std::vector<bool> kept_;                    // by process
  std::vector<uint32_t> counts_;
  std::vector<std::vector<int>> starts_;         // nodes, by job
  std::vector<std::vector<size_t>> workers_on_;  // by node
  std::vector<std::pair<size_t, int>> puts_;
};

// Starting a worker pays only if the job continues for long enough.
bool NearlyDone(const ClusterJob& job, uint32_t workers, const AutoscalerOptions& options) {
  if (!job.rows_left || job.throughput.empty() || workers == 0) {
    return false;
  }
  return *job.rows_left < ThroughputAt(job, workers) * options.payback_seconds;
}

}  // namespace

bool Capacity::Fits(const Capacity& request) const {
  for (size_t i = 0; i < further.size(); ++i) {
    if (request.further[i] > further[i] + kSmall) {
      return false;
    }
  }
  return request.cpu <= cpu + kSmall && request.memory_bytes <= memory_bytes &&
         request.gpu <= gpu + kSmall && request.processes <= processes + kSmall;
}

Capacity& Capacity::operator+=(const Capacity& other) {
  cpu += other.cpu;
  memory_bytes += other.memory_bytes;
  gpu += other.gpu;
  processes += other.processes;
  for (size_t i = 0; i < further.size(); ++i) {
    further[i] += other.further[i];
  }
  return *this;
}

Capacity& Capacity::operator-=(const Capacity& other) {
  cpu -= other.cpu;
  memory_bytes -= other.memory_bytes;
  gpu -= other.gpu;
  processes -= other.processes;
  for (size_t i = 0; i < further.size(); ++i) {
    further[i] -= other.further[i];
  }
  return *this;
}

Capacity operator*(const Capacity& one, double times) {
  Capacity product = {one.cpu * times,
                      static_cast<int64_t>(static_cast<double>(one.memory_bytes) * times),
                      one.gpu * times, one.processes * times};
  for (size_t i = 0; i < product.further.size(); ++i) {
    product.further[i] = one.further[i] * times;
  }
  return product;
}

Capacity RequestOf(const ClusterJob& job, const std::vector<ClusterNode>& nodes) {
  int64_t largest = 0;
  for (const ClusterNode& node : nodes) {
    largest = std::max(largest, node.capacity.memory_bytes);
  }
  Capacity request = job.worker;
  const double grown =
      static_cast<double>(request.memory_bytes) * std::pow(kMemoryGrowth, job.out_of_memory);
  request.memory_bytes = std::max(
      request.memory_bytes, static_cast<int64_t>(std::min(grown, static_cast<double>(largest))));
  return request;
}

double Fulfilment(uint32_t min, uint32_t max, uint32_t workers) {
  return max <= min ? 1
                    : (static_cast<double>(workers) - static_cast<double>(min)) /
                          static_cast<double>(max - min);
}

double ThroughputAt(const ClusterJob& job, uint32_t workers) {
  const double n = workers;
  std::pair<double, double> before{0, 0}, last{0, 0};
  for (const auto& [count, rate] : job.throughput) {
    const double higher = std::max(rate, last.second);  // more workers do not do less work: noise
    if (n <= count) {
      return last.second + (higher - last.second) * (n - last.first) / (count - last.first);
    }
    before = last;
    last = {count, higher};
  }
  if (last.first == 0) {
    return n;
  }
  return last.second +
         (last.second - before.second) / (last.first - before.first) * (n - last.first);
}

ScalingDecision Autoscale(const ClusterState& state, const AutoscalerOptions& options,
                          const AutoscalerHistory& history, TimePoint now) {
  const size_t jobs = state.jobs.size();
  std::vector<uint32_t> running(jobs, 0);
  for (const ClusterProcess& process : state.processes) {
    if (process.worker && !process.terminating) {
      ++running[static_cast<size_t>(process.job)];
    }
  }
  std::vector<uint32_t> limits(jobs);
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    limits[i] = NearlyDone(job, running[i], options) ? std::min(running[i], job.max) : job.max;
  }
  // First the plan that all jobs would like; then without the jobs that have not waited long
  // enough.
  Plan wanted(state, options, limits);
  wanted.Make();
  ScalingDecision decision;
  const auto patience = std::chrono::duration_cast<TimePoint>(
      std::chrono::duration<double>(options.hysteresis_seconds));
  for (size_t i = 0; i < jobs; ++i) {
    const ClusterJob& job = state.jobs[i];
    limits[i] = wanted.counts()[i];
    if (running[i] < job.min || wanted.counts()[i] <= running[i]) {
      continue;
    }
    const auto found = history.wants_more_since.find(job.name);
    const TimePoint since = found == history.wants_more_since.end() ? now : found->second;
    decision.history.wants_more_since[job.name] = since;
    if (now - since < patience) {
      limits[i] = running[i];
      decision.look_again =
          std::min(decision.look_again.value_or(since + patience), since + patience);
    }
  }
  // Workers that an impatient job does not get yet go to no other job: a job that would have to
  // give workers up for it keeps them. A job that has fewer than its smallest number, and cannot
  // get it, keeps none.
  for (size_t i = 0; i < jobs && decision.look_again; ++i) {
    if (running[i] >= state.jobs[i].min) {
      limits[i] = std::max(limits[i], std::min(running[i], state.jobs[i].max));
    }
  }
  Plan plan(state, options, limits);
  plan.Make();

  std::vector<Capacity> room;  // really there
  for (const ClusterNode& node : state.nodes) {
    room.push_back(node.capacity);
  }
  for (size_t i = 0; i < state.processes.size(); ++i) {
    const ClusterProcess& process = state.processes[i];
    if (process.node != ClusterProcess::kNone) {
      room[static_cast<size_t>(process.node)] -= process.request;
      if (process.worker && !process.terminating && !plan.kept(i)) {
        decision.victims.push_back(i);
      }
    }
  }
  const auto take = [&room](int node, const Capacity& request) {
    Capacity& there = room[static_cast<size_t>(node)];
    const bool fits = there.Fits(request);
    if (fits) {
      there -= request;
    }
    return fits;
  };
  for (const auto& [process, node] : plan.puts()) {
    if (take(node, state.processes[process].request)) {
      decision.puts.emplace_back(process, node);
    }
  }
  for (size_t i = 0; i < jobs; ++i) {
    const Capacity request = plan.Request(i);
    decision.targets.push_back({plan.counts()[i], request});
    for (const int node : plan.starts()[i]) {
      if (take(node, request)) {
        decision.starts.push_back({static_cast<int>(i), node});
      }
    }
  }
  return decision;
}

}  // namespace sluice::elastic
