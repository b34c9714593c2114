#include "elastic/fleet/sharing_plan.h"

#include <algorithm>
#include <limits>

namespace sluice::elastic {
namespace {

constexpr double kEqual = 1e-9;
// Measurements vary: a worker that runs goes when it adds less than this part of what one has to
// add that starts.
constexpr double kKeptKnee = 0.5;

}  // namespace

SharingPlan::SharingPlan(const ClusterState& state, const AutoscalerOptions& options,
                         std::vector<uint32_t> limits)
    : state_(state),
      options_(options),
      fragmentation_(state),
      limits_(std::move(limits)),
      running_(state.jobs.size()),
      next_running_(state.jobs.size(), {0, 0}),
      counts_(state.jobs.size(), 0),
      starts_(state.jobs.size()),
      workers_on_(state.nodes.size()) {
  for (const ClusterJob& job : state_.jobs) {
    requests_.push_back(RequestOf(job, state_.nodes));
  }
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
    std::sort(workers.begin(), workers.end(), [&](size_t a, size_t b) { return loses_less(b, a); });
  }
  kept_.resize(state_.processes.size(), false);
}

void SharingPlan::Make() {
  PutServices();
  for (const size_t job : ByPriority()) {
    GiveMinimum(job);
  }
  FillUp();
}

bool SharingPlan::GivesMinimum(size_t job) {
  PutServices();
  for (const size_t each : ByPriority()) {
    GiveMinimum(each);
    if (each == job) {
      break;
    }
  }
  return counts_[job] >= state_.jobs[job].min;
}

void SharingPlan::PutServices() {
  for (size_t i = 0; i < state_.processes.size(); ++i) {
    if (Waits(i, ClusterProcess::kNone)) {
      PutWaiting(i);
    }
  }
}

// Small: ending it disturbs little.
std::tuple<bool, double, TimePoint> SharingPlan::Loss(size_t i) const {
  const ClusterProcess& process = state_.processes[i];
  return {!state_.nodes[Node(process)].suspect, process.cost, -process.started};
}

bool SharingPlan::Waits(size_t i, int job) const {
  const ClusterProcess& process = state_.processes[i];
  return process.node == ClusterProcess::kNone && process.job == job && !process.worker &&
         !process.terminating;
}

std::vector<size_t> SharingPlan::ByPriority() const {
  std::vector<size_t> order(state_.jobs.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  // Of jobs that arrived at the same time, in whole seconds on Kubernetes, those that run come
  // first, and those whose workers are being started.
  const auto waits = [this](size_t job) {
    const ClusterJob& described = state_.jobs[job];
    return std::max<size_t>(running_[job].size(), described.granted) < described.min;
  };
  std::stable_sort(order.begin(), order.end(), [this, &waits](size_t a, size_t b) {
    const ClusterJob& one = state_.jobs[a];
    const ClusterJob& other = state_.jobs[b];
    return std::tuple(other.priority, one.arrival, waits(a)) <
           std::tuple(one.priority, other.arrival, waits(b));
  });
  return order;
}

bool SharingPlan::Admits(size_t node, const AllowedNodes& allowed) const {
  return !state_.nodes[node].suspect && !state_.nodes[node].cordoned &&
         (allowed == nullptr || (*allowed)[node]);
}

// Its workers have less room than they use: some of them leave.
bool SharingPlan::Crowded(size_t node) const {
  return !free_[node].Fits({});
}

// What a process of that priority finds on a node if all workers leave from which it may take
// their places.
Capacity SharingPlan::RoomFor(size_t node, std::optional<int> priority) const {
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

bool SharingPlan::GivesWay(const ClusterProcess& worker, std::optional<int> priority) {
  return !priority || !worker.priority || *worker.priority < *priority;
}

// Among the nodes with room that is not held by a running worker: the one on which the least
// capacity becomes unusable, then the fullest.
std::optional<int> SharingPlan::BestFree(const Capacity& request,
                                         const AllowedNodes& allowed) const {
  std::optional<int> best;
  double least = 0;
  for (size_t node = 0; node < free_.size(); ++node) {
    if (!free_[node].Fits(request) || !room_[node].Fits(request) || !Admits(node, allowed)) {
      continue;
    }
    const double cpu = free_[node].cpu;
    const double lost = fragmentation_.Lost(cpu - request.cpu) - fragmentation_.Lost(cpu);
    if (!best || lost < least - kEqual ||
        (lost < least + kEqual && cpu < free_[static_cast<size_t>(*best)].cpu)) {
      best = static_cast<int>(node);
      least = lost;
    }
  }
  return best;
}

// Where there is free room, otherwise on the node of the worker that loses the least.
std::optional<int> SharingPlan::Place(const Capacity& request, const AllowedNodes& allowed,
                                      std::optional<int> priority) {
  if (!budget_.Fits(request)) {
    return std::nullopt;
  }
  std::optional<int> best = BestFree(request, allowed);
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

bool SharingPlan::PutWaiting(size_t process) {
  const ClusterProcess& waiting = state_.processes[process];
  const std::optional<int> node = Place(waiting.request, waiting.nodes, waiting.priority);
  if (node) {
    puts_.emplace_back(process, *node);
  }
  return node.has_value();
}

// The next running worker whose place has not been taken. Of a crowded node some have to leave, of
// whichever job: what a job keeps elsewhere first leaves room for the others there, and no more of
// them have to move.
std::optional<size_t> SharingPlan::Keepable(size_t job) {
  const std::vector<size_t>& running = running_[job];
  for (const bool crowded : {false, true}) {
    for (size_t& next = next_running_[job][crowded ? 1 : 0]; next < running.size(); ++next) {
      const ClusterProcess& process = state_.processes[running[next]];
      if (!kept_[running[next]] && (crowded || !Crowded(Node(process))) &&
          room_[Node(process)].Fits(process.request) && budget_.Fits(process.request)) {
        return running[next];
      }
    }
  }
  return std::nullopt;
}

bool SharingPlan::GiveWorker(size_t job) {
  if (const std::optional<size_t> worker = Keepable(job)) {
    kept_[*worker] = true;
    const ClusterProcess& process = state_.processes[*worker];
    room_[Node(process)] -= process.request;
    budget_ -= process.request;
    ++counts_[job];
    return true;
  }
  const std::optional<int> node = Place(requests_[job], state_.jobs[job].nodes);
  if (node) {
    starts_[job].push_back(*node);
    ++counts_[job];
  }
  return node.has_value();
}

// False: its smallest number of workers does not fit, wherever they are placed. Saves the attempt.
bool SharingPlan::MayHaveRoom(size_t job) const {
  const uint32_t wanted = std::min(state_.jobs[job].min, limits_[job]);
  uint32_t fit = 0;
  for (size_t node = 0; node < room_.size() && fit < wanted; ++node) {
    Capacity room = room_[node];
    while (fit < wanted && Admits(node, state_.jobs[job].nodes) && room.Fits(requests_[job])) {
      room -= requests_[job];
      ++fit;
    }
  }
  // Those that run may be of another size, and on nodes where nothing new is placed.
  return fit + running_[job].size() >= wanted;
}

void SharingPlan::GiveMinimum(size_t job) {
  if (limits_[job] == 0 || !MayHaveRoom(job)) {
    limits_[job] = 0;
    return;  // its servers alone would be of no use
  }
  if (TryMinimum(job, true)) {
    return;
  }
  // A further server of a job that runs is not worth the job.
  if (running_[job].size() < state_.jobs[job].min || !TryMinimum(job, false)) {
    limits_[job] = 0;
  }
}

// False: it does not fit, and nothing has changed.
bool SharingPlan::TryMinimum(size_t job, bool with_waiting) {
  const auto before = std::tuple(room_, free_, budget_, kept_, puts_, next_running_);
  bool fits = true;
  for (size_t i = 0; with_waiting && fits && i < state_.processes.size(); ++i) {
    if (Waits(i, static_cast<int>(job))) {
      fits = PutWaiting(i);
    }
  }
  while (fits && counts_[job] < std::min(state_.jobs[job].min, limits_[job])) {
    fits = GiveWorker(job);
  }
  if (!fits) {
    std::tie(room_, free_, budget_, kept_, puts_, next_running_) = before;
    counts_[job] = 0;
    starts_[job].clear();
  }
  return fits;
}

// The gain of one more worker for the job, and for the cluster.
double SharingPlan::Gain(size_t index) {
  const ClusterJob& job = state_.jobs[index];
  const double now = ThroughputAt(job, counts_[index]);
  const double more = ThroughputAt(job, counts_[index] + 1) - now;
  const bool runs = Keepable(index).has_value();
  const double knee = runs ? kKeptKnee * options_.knee : options_.knee;
  if (counts_[index] > 0 && more < knee * ThroughputAt(job, 1)) {
    return 0;
  }
  const double gain =
      counts_[index] == 0 ? std::numeric_limits<double>::max() : job.weight * more / now;
  return runs ? gain * (1 + options_.stickiness) : gain;
}

// Whether job `a` comes before job `b` at the same gain.
bool SharingPlan::BeforeAtEqualGain(size_t a, size_t b) const {
  const auto rank = [this](size_t index) {
    const ClusterJob& job = state_.jobs[index];
    return std::tuple(Fulfilment(job.min, job.max, counts_[index]), job.worker.gpu, job.worker.cpu,
                      job.worker.memory_bytes, job.arrival);
  };
  return rank(a) < rank(b);
}

void SharingPlan::FillUp() {
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
      const double margin = kEqual * std::max(1.0, best_gain);
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

}  // namespace sluice::elastic
