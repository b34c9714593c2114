#include "tests/simulation/cluster_experiments.h"

#include <algorithm>
#include <cmath>

namespace sluice::elastic {
namespace {

constexpr int64_t kGiga = int64_t{1} << 30;
constexpr char kService[] = "nginx";

class Mean {
 public:
  void Add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ > 0 ? sum_ / count_ : 0; }

 private:
  double sum_ = 0;
  int count_ = 0;
};

// A cluster that is looked at once a second.
class Observed {
 public:
  // `gpus`: how many the cluster has, if they are what counts.
  explicit Observed(SharedCluster& cluster, double base_cpu = 0, double gpus = 0)
      : world(cluster), base_(base_cpu), gpus_(gpus) {}

  void Second() {
    world.RunUntil(second_ + 1 - 1e-6);
    ++second_;
    Trace& trace = result.trace;
    trace.seconds.push_back(second_);
    trace.used.push_back(Used());
    double pending = 0;
    trace.jobs.resize(world.jobs());
    for (size_t job = 0; job < world.jobs(); ++job) {
      pending += world.fates()[job].first_worker || world.fates()[job].ended ? 0 : 1;
      trace.jobs[job].resize(trace.seconds.size(), 0);
      trace.jobs[job].back() = world.Workers(job);
    }
    trace.pending.push_back(pending);
    trace.service.push_back(world.ServiceRunning(kService));
    trace.service_wanted.push_back(wanted);
  }
  double Used() const {
    if (gpus_ == 0) {
      return (world.UsedCpu() + base_) / (world.TotalCpu() + base_);
    }
    double workers = 0;
    for (size_t job = 0; job < world.jobs(); ++job) {
      workers += world.Workers(job);
    }
    return workers / gpus_;
  }
  void Want(uint32_t count, const Capacity& each, std::optional<int> priority = std::nullopt) {
    wanted = count;
    world.SetService(kService, each, count, priority);
  }
  std::vector<double> Shares() const {
    std::vector<double> shares;
    for (size_t job = 0; job < world.jobs(); ++job) {
      shares.push_back(world.Workers(job));
    }
    return shares;
  }
  ExperimentResult Finish() {
    Mean pending;
    for (const SharedCluster::Fate& fate : world.fates()) {
      pending.Add(fate.first_worker.value_or(world.now()) - fate.arrived);
      result.finished_seconds = std::max(result.finished_seconds, fate.ended.value_or(0));
    }
    result.pending_seconds = pending.value();
    result.starts = world.starts();
    return std::move(result);
  }
  int second() const { return second_; }

  SharedCluster& world;
  double wanted = 0;
  ExperimentResult result;

 private:
  const double base_;
  const double gpus_;
  int second_ = 0;
};

constexpr double kEdlDaemons = 0.38;  // the cluster's base load, as a share of each node
constexpr int kEdlNodes = 133;

void AddEdlNodes(SharedCluster& world) {
  for (int i = 0; i < kEdlNodes; ++i) {
    const double cpu = i < 70 ? 12 : 24;
    world.AddNode("n" + std::to_string(i), {cpu - kEdlDaemons, 100 * kGiga, 0});
  }
}

uint32_t MostWorkers(const WorldOptions& options, uint32_t fixed) {
  return options.scaling == WorldOptions::Scaling::kAutoscaler ? kEdlMostWorkers : fixed;
}

WorldJob EdlJob(uint32_t most_workers) {
  WorldJob job;
  job.min = 2;
  job.max = most_workers;
  job.master = {1, kGiga, 0};
  job.servers = 10;
  job.server = {4, 5 * kGiga, 0};
  job.worker = {5, 8 * kGiga, 0};
  return job;
}

ExperimentResult RunService(const WorldOptions& options, int nodes, const Capacity& node,
                            uint32_t max, double speed,
                            const std::vector<std::pair<int, uint32_t>>& demand, int end) {
  ClusterWorld world(options);
  Observed seen(world);
  for (int i = 0; i < nodes; ++i) {
    world.AddNode("n" + std::to_string(i), node);
  }
  WorldJob job;
  job.max = max;
  job.worker = {1, kGiga, 0};
  job.master = {1, kGiga, 0};
  seen.world.AddJob(job);
  Mean used;
  double dip = 0;
  while (seen.second() < end * speed) {
    for (const auto& [second, count] : demand) {
      if (seen.second() == static_cast<int>(second * speed)) {
        seen.Want(count, {1, kGiga, 0});
      }
    }
    seen.Second();
    if (seen.second() >= 40) {  // the job has begun
      used.Add(seen.Used());
      dip = seen.Used() < 1 - 1e-6 ? dip + 1 : 0;
      seen.result.longest_dip_seconds = std::max(seen.result.longest_dip_seconds, dip);
    }
  }
  seen.result.utilisation = used.value();
  return seen.Finish();
}

}  // namespace

ExperimentResult RunEdlCase1(const WorldOptions& options) {
  ClusterWorld world(options);
  return PlayEdlCase1(world, MostWorkers(options, 60));
}

ExperimentResult PlayEdlCase1(SharedCluster& cluster, uint32_t most_workers) {
  Observed seen(cluster, kEdlDaemons * kEdlNodes);
  AddEdlNodes(seen.world);
  Mean jain, below, used;
  while (seen.second() < 550) {
    if (seen.second() % 10 == 0 && seen.second() < 200) {
      seen.world.AddJob(EdlJob(most_workers));
    }
    seen.Second();
    if (seen.second() >= 300 && seen.second() < 500) {
      used.Add(seen.Used());
    }
    if (seen.second() >= 400 && seen.second() < 500) {
      const std::vector<double> shares = seen.Shares();
      jain.Add(JainOf(shares));
      below.Add(static_cast<double>(
          std::count_if(shares.begin(), shares.end(), [](double workers) { return workers < 2; })));
    }
  }
  seen.result.jain = jain.value();
  seen.result.jobs_below_minimum = below.value();
  seen.result.utilisation = used.value();
  return seen.Finish();
}

ExperimentResult RunEdlCase2(const WorldOptions& options) {
  ClusterWorld world(options);
  return PlayEdlCase2(world, MostWorkers(options, 15));
}

ExperimentResult PlayEdlCase2(SharedCluster& cluster, uint32_t most_workers) {
  constexpr Capacity kNginx = {3, 3 * kGiga, 0};
  constexpr int kBegin = 15;
  Observed seen(cluster, kEdlDaemons * kEdlNodes);
  AddEdlNodes(seen.world);
  seen.Want(400, kNginx);
  Mean used;
  double missing = 0, wanted = 0;
  std::optional<double> back;
  while (seen.second() < kBegin + 25 + 60 + 6 * 90 + 120) {
    const int second = seen.second() - kBegin;
    if (second >= 0 && second < 30 && second % 5 == 0) {
      seen.world.AddJob(EdlJob(most_workers));
    }
    constexpr uint32_t kWanted[] = {300, 200, 100, 200, 300, 400};
    for (int change = 0; change < 6; ++change) {
      if (second == 85 + 90 * change) {
        seen.Want(kWanted[change], kNginx);
      }
    }
    seen.Second();
    if (second < 0) {
      continue;
    }
    used.Add(seen.Used());
    const double running = seen.world.ServiceRunning(kService);
    if (second >= 85 + 90 * 3) {
      wanted += seen.wanted;
      missing += std::max(0.0, seen.wanted - running);
    }
    if (second >= 85 + 90 * 5 && !back && running >= 400) {
      back = second + 1 - (85 + 90 * 5);
    }
  }
  seen.result.utilisation = used.value();
  seen.result.service_short = missing / wanted;
  seen.result.service_back_seconds = back.value_or(1e9);
  return seen.Finish();
}

TwoJobs ElasticDlE1() {
  return {3, {8, 64 * kGiga, 0}, {1, kGiga, 0}, {1, kGiga, 0}, 5020, 13, 24, 30};
}
TwoJobs ElasticDlE1b() {
  return {20, {16, 64 * kGiga, 0}, {1, kGiga, 0}, {1, kGiga, 0}, 175 * 650, 175, 320, 300};
}
TwoJobs ElasticDlA1() {
  return {3, {16, 64 * kGiga, 2}, {4, kGiga, 1}, {0.5, kGiga, 0}, 1860, 4, 6, 120};
}

ExperimentResult RunTwoJobs(const TwoJobs& jobs, const WorldOptions& options) {
  ClusterWorld world(options);
  Observed seen(world, 0, jobs.node.gpu * jobs.nodes);
  for (int i = 0; i < jobs.nodes; ++i) {
    seen.world.AddNode("n" + std::to_string(i), jobs.node);
  }
  WorldJob job;
  job.min = 1;
  job.max = options.scaling == WorldOptions::Scaling::kAutoscaler ? jobs.max : jobs.asked;
  job.worker = jobs.worker;
  job.master = jobs.master;
  job.work = jobs.work;
  const auto over = [&seen] {
    const auto& fates = seen.world.fates();
    return fates.size() == 2 && fates[0].ended && fates[1].ended;
  };
  Mean used;
  while (!over() && seen.second() < 5000) {
    if (seen.second() == 0 || seen.second() == static_cast<int>(jobs.second_arrives)) {
      seen.world.AddJob(job);
    }
    seen.Second();
    used.Add(seen.Used());
  }
  seen.result.utilisation = used.value();
  return seen.Finish();
}

ExperimentResult RunElasticDlE2(const WorldOptions& options) {
  return RunService(options, 3, {7, 64 * kGiga, 0}, 20, 1,
                    {{85, 3}, {172, 8}, {286, 14}, {367, 11}, {375, 8}, {467, 5}, {470, 3}}, 540);
}

ExperimentResult RunElasticDlE2b(const WorldOptions& options) {
  return RunService(
      options, 20, {16, 64 * kGiga, 0}, 319, 4.5,
      {{85, 45}, {172, 122}, {286, 213}, {367, 167}, {375, 122}, {467, 76}, {470, 45}}, 540);
}

ExperimentResult RunFiftyJobs(const WorldOptions& options) {
  constexpr int kNodes = 40, kJobs = 50, kHour = 3600;
  constexpr double kNodeCpu = 16;
  constexpr double kSettled = 30;
  ClusterWorld world(options);
  Observed seen(world);
  for (int i = 0; i < kNodes; ++i) {
    seen.world.AddNode("n" + std::to_string(i), {kNodeCpu, 128 * kGiga, 0});
  }
  std::mt19937_64 random(options.seed * 7919);
  std::vector<int> arrivals;
  for (int i = 0; i < kJobs; ++i) {
    arrivals.push_back(static_cast<int>(random() % (kHour - 600)));
  }
  std::sort(arrivals.begin(), arrivals.end());
  arrivals.front() = 0;
  Mean jain, used, of_packable;
  size_t arrived = 0;
  while (seen.second() < kHour) {
    if (seen.second() % 60 == 0) {
      const double wave = 0.2 + 0.1 * std::sin(seen.second() / 300.0);
      seen.Want(static_cast<uint32_t>(kNodes * kNodeCpu * wave / 2), {2, 2 * kGiga, 0});
    }
    for (; arrived < arrivals.size() && arrivals[arrived] <= seen.second(); ++arrived) {
      WorldJob job;
      job.min = 1;
      job.max = 200;
      job.master = {0.5, kGiga, 0};
      job.worker = {2, 4 * kGiga, 0};
      job.work = 4'000 + static_cast<double>(random() % 24'000);
      seen.world.AddJob(job);
    }
    seen.Second();
    std::vector<double> shares;
    double could = 0;
    for (size_t job = 0; job < seen.world.jobs(); ++job) {
      const SharedCluster::Fate& fate = world.fates()[job];
      if (!fate.ended) {
        could += 200 * 2;
        if (seen.world.now() - fate.arrived >= kSettled) {
          shares.push_back(seen.world.Workers(job));
        }
      }
    }
    if (shares.size() > 1) {
      jain.Add(JainOf(shares));
    }
    const double packable = world.PackableCpu(2);
    if (could >= packable && seen.second() > 60) {
      of_packable.Add(world.UsedByWorkers() / packable);
    }
    used.Add(seen.Used());
  }
  seen.result.jain = jain.value();
  seen.result.utilisation = used.value();
  seen.result.used_of_packable = of_packable.value();
  return seen.Finish();
}

}  // namespace sluice::elastic
