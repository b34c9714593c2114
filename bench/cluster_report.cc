// cluster_report FOLDER: published experiments with shared clusters, and an hour of fifty jobs,
// simulated beside what was published; and the time of a decision. Writes FOLDER/cluster.md and its
// plots in FOLDER/cluster; FOLDER is docs/.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "bench/report_page.h"
#include "tests/simulation/cluster_experiments.h"

namespace sluice::elastic {
namespace {

constexpr int kSeeds = 5;
using Scaling = WorldOptions::Scaling;
using Placing = WorldOptions::Placing;
using Run = std::function<ExperimentResult(const WorldOptions&)>;

// The figures are means, the plots those of the first seed.
ExperimentResult Mean(const Run& run, WorldOptions options, int seeds = kSeeds) {
  ExperimentResult mean;
  for (int seed = 1; seed <= seeds; ++seed) {
    options.seed = static_cast<uint64_t>(seed);
    ExperimentResult one = run(options);
    const auto add = [seeds](double& sum, double value) { sum += value / seeds; };
    add(mean.pending_seconds, one.pending_seconds);
    add(mean.jain, one.jain);
    add(mean.jobs_below_minimum, one.jobs_below_minimum);
    add(mean.utilisation, one.utilisation);
    add(mean.service_short, one.service_short);
    add(mean.service_back_seconds, one.service_back_seconds);
    add(mean.finished_seconds, one.finished_seconds);
    add(mean.used_of_packable, one.used_of_packable);
    add(mean.longest_dip_seconds, one.longest_dip_seconds);
    mean.starts += one.starts / static_cast<uint64_t>(seeds);
    if (seed == 1) {
      mean.trace = std::move(one.trace);
    }
  }
  return mean;
}

WorldOptions With(Scaling scaling, Placing placing = Placing::kScheduler) {
  WorldOptions options;
  options.scaling = scaling;
  options.placing = placing;
  return options;
}
// Containers whose image is there already.
WorldOptions Quick(Scaling scaling) {
  WorldOptions options = With(scaling);
  options.shortest_start_seconds = 1;
  options.longest_start_seconds = 3;
  return options;
}

// Processor time of this thread: others may use the machine meanwhile.
double ThreadMillis() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e6;
}

// 1,000 nodes, 10,000 pods of which half are workers of 100 jobs, and room for 1,000 more.
// `blocked`: the others are servers of these jobs, and so many further jobs of a higher priority
// have waited for long: each needs 700 workers for which the servers leave no room.
ClusterState LargeCluster(int blocked) {
  constexpr int kNodes = 1'000, kJobs = 100, kOthers = 5'000, kWorkers = 5'000;
  ClusterState state;
  for (int i = 0; i < kNodes; ++i) {
    state.nodes.push_back({"n" + std::to_string(i), {11.4, int64_t{64} << 30, 0, 110}});
  }
  for (int i = 0; i < kJobs + blocked; ++i) {
    ClusterJob job;
    job.name = "job" + std::to_string(i);
    job.min = i < kJobs ? 1 : 700;
    job.max = i < kJobs ? 200 : 1'000;
    job.priority = i < kJobs ? i % 3 : 3;
    job.can_suspend = blocked > 0;
    job.arrival = TimePoint(i);
    job.worker = {i < kJobs ? 1.0 : 8.0, int64_t{1} << 30, 0, 1};
    state.jobs.push_back(job);
  }
  for (int i = 0; i < kOthers + kWorkers; ++i) {
    ClusterProcess process;
    process.name = "p" + std::to_string(i);
    process.node = i % kNodes;
    process.request = {1, int64_t{1} << 30, 0, 1};
    process.worker = i >= kOthers;
    if (process.worker || (blocked > 0 && i >= kNodes)) {
      process.job = i % kJobs;
      process.cost = i * 7919 % 512;
    }
    state.processes.push_back(process);
  }
  return state;
}

struct Decision {
  double millis = 0;
  size_t starts = 0, suspended = 0;
};

Decision TimeDecision(const ClusterState& state) {
  AutoscalerHistory history;
  for (const ClusterJob& job : state.jobs) {
    history.blocked_since[job.name] = TimePoint(0);
  }
  constexpr auto kNow = std::chrono::hours(1);
  Decision made;
  std::vector<double> millis;
  for (int round = 0; round < 7; ++round) {
    const double begun = ThreadMillis();
    const ScalingDecision decision = Autoscale(state, {.hysteresis_seconds = 0}, history, kNow);
    millis.push_back(ThreadMillis() - begun);
    made.starts = decision.starts.size();
    made.suspended = static_cast<size_t>(
        std::count_if(decision.targets.begin(), decision.targets.end(),
                      [](const ScalingDecision::Target& target) { return target.suspend; }));
  }
  std::sort(millis.begin(), millis.end());
  made.millis = millis[millis.size() / 2];
  return made;
}

void Edl(Report& report) {
  report.Text(
      "\n## EDL: twenty jobs, and jobs beside Nginx\n"
      "PaddlePaddle EDL (2017): 133 nodes with 2,352 processors; a job has a master of 1, ten "
      "servers of 4 "
      "and 2 to 60 workers of 5 processors. Case 1: twenty jobs, one every 10 s. Case 2: six jobs "
      "beside 400 Nginx pods of 3 processors, which go down to 100 and up again. EDL's figures are "
      "recomputed from its logs (its published means divide ten passes by eleven). `planned`: "
      "each worker starts on the node that the decision found for it; `scheduler`: on the emptiest "
      "node, as Kubernetes places it. `fixed`: each job asks for 60 (case 2: 15) workers at "
      "once.\n\n"
      "| | planned | scheduler | fixed | EDL | EDL fixed | goal "
      "|\n|---|---|---|---|---|---|---|\n");
  const ExperimentResult planned = Mean(RunEdlCase1, With(Scaling::kAutoscaler, Placing::kPlanned));
  const ExperimentResult one = Mean(RunEdlCase1, With(Scaling::kAutoscaler));
  const ExperimentResult fixed = Mean(RunEdlCase1, With(Scaling::kFixed));
  report.Row("case 1: a job waits for its first worker (mean, s)",
             {Number(planned.pending_seconds, 1), Number(one.pending_seconds, 1),
              Number(fixed.pending_seconds, 1), "47.2", "308.5", "6"});
  report.Row("case 1: Jain's index of running workers, 400-500 s",
             {Number(planned.jain, 3), Number(one.jain, 3), Number(fixed.jain, 3), "0.437", "0.298",
              "0.99"});
  report.Row("case 1: processors used, 300-500 s",
             {Percent(planned.utilisation), Percent(one.utilisation), Percent(fixed.utilisation),
              "86.3 %", "88.7 %", "88.7 %"});
  report.Row("case 1: jobs below their minimum",
             {Number(planned.jobs_below_minimum, 1), Number(one.jobs_below_minimum, 1),
              Number(fixed.jobs_below_minimum, 1), "3.5", "14", "0"});
  const ExperimentResult planned_two =
      Mean(RunEdlCase2, With(Scaling::kAutoscaler, Placing::kPlanned));
  const ExperimentResult two = Mean(RunEdlCase2, With(Scaling::kAutoscaler));
  const ExperimentResult fixed_two = Mean(RunEdlCase2, With(Scaling::kFixed));
  report.Row("case 2: Nginx short of what it wants, while that grows",
             {Percent(planned_two.service_short), Percent(two.service_short),
              Percent(fixed_two.service_short), "23.3 %", "2.6 %", "2.6 %"});
  report.Row("case 2: all 400 Nginx run again after (s)",
             {Number(planned_two.service_back_seconds, 0), Number(two.service_back_seconds, 0),
              Number(fixed_two.service_back_seconds, 0), "not in 118", "14", "15"});
  report.Row("case 2: processors used", {Percent(planned_two.utilisation), Percent(two.utilisation),
                                         Percent(fixed_two.utilisation), "83.7 %", "62.8 %", ""});
  report.Plot("edl_case_1", "EDL, case 1: twenty jobs, one every ten seconds", one.trace,
              "processors used", false, true);
  report.Plot("edl_case_2", "EDL, case 2: six jobs beside Nginx", two.trace, "processors used",
              true, true);
}

void ElasticDl(Report& report) {
  report.Text(
      "\n## ElasticDL: two jobs, and a job beside a service\n"
      "ElasticDL (2019 to 2021). E1: two jobs of 13 processors on 24, the second after 30 s. E1b: "
      "two of 175 "
      "on 320, the second after 300 s. A1: two of 4 GPUs on 6, the second after 120 s; what it "
      "costs to "
      "rebuild an all-reduce is not simulated. `gang`: a job begins when all its workers have "
      "room. "
      "ElasticDL lets a job begin with fewer workers than it asked for; here it may also grow "
      "beyond "
      "them. Pods start in 1 to 3 s (their image is there), end in 2 s.\n\n"
      "| both jobs are over after (s) | elastic | gang, simulated | gang, published | ElasticDL, "
      "published | goal | bound |\n|---|---|---|---|---|---|---|\n");
  const struct {
    const char* name;
    const char* file;
    const char* title;
    TwoJobs jobs;
    std::vector<std::string> published;
  } cases[] = {
      {"E1",
       "elasticdl_e1",
       "ElasticDL E1: two jobs of 13 on 24 processors",
       ElasticDlE1(),
       {"795", "580", "480", "456"}},
      {"E1b",
       "elasticdl_e1b",
       "ElasticDL E1b: two jobs of 175 on 320 processors",
       ElasticDlE1b(),
       {"1300", "1100", "800", "711"}},
      {"A1",
       "elasticdl_a1",
       "ElasticDL A1: two jobs of 4 on 6 GPUs",
       ElasticDlA1(),
       {"968", "809", "676", "620"}},
  };
  std::vector<std::pair<const char*, Trace>> traces;
  for (const auto& each : cases) {
    const Run run = [&each](const WorldOptions& options) { return RunTwoJobs(each.jobs, options); };
    ExperimentResult elastic = Mean(run, Quick(Scaling::kAutoscaler));
    const ExperimentResult gang = Mean(run, Quick(Scaling::kGang));
    std::vector<std::string> cells = {Number(elastic.finished_seconds, 0),
                                      Number(gang.finished_seconds, 0)};
    cells.insert(cells.end(), each.published.begin(), each.published.end());
    report.Row(each.name, cells);
    traces.emplace_back(each.file, std::move(elastic.trace));
  }
  for (size_t i = 0; i < traces.size(); ++i) {
    report.Plot(traces[i].first, cases[i].title, traces[i].second, "used", false, false);
  }
  report.Text(
      "\nE2: Nginx grows from 0 to 14 of 21 processors and shrinks again, the job has the rest. "
      "E2b: "
      "the same on 320, 4.5 times as slowly. A dip is a time during which less than everything "
      "runs: pods that start and end, and the half second for which room has to last before a job "
      "grows.\n\n"
      "| | used | longest dip (s) | ElasticDL, published | goal |\n|---|---|---|---|---|\n");
  const ExperimentResult small = Mean(RunElasticDlE2, Quick(Scaling::kAutoscaler));
  const ExperimentResult large = Mean(RunElasticDlE2b, Quick(Scaling::kAutoscaler));
  report.Row("E2", {Percent(small.utilisation), Number(small.longest_dip_seconds, 0),
                    "over 90 %, dips of 5 to 20 s", "99 %, 2 s"});
  report.Row("E2b",
             {Percent(large.utilisation), Number(large.longest_dip_seconds, 0), "over 90 %", ""});
  report.Plot("elasticdl_e2", "ElasticDL E2: a job fills what Nginx leaves", small.trace, "used",
              true, false);
}

void Hour(Report& report) {
  report.Text(
      "\n## Fifty jobs in an hour\n"
      "Equal jobs that arrive at random within 50 minutes, with work for 4,000 to 28,000 seconds "
      "of one "
      "worker of 2 processors, on 40 nodes of 16, beside a service that swings between 10 and 30 "
      "%.\n\n"
      "| | planned | scheduler | goal |\n|---|---|---|---|\n");
  const ExperimentResult planned =
      Mean(RunFiftyJobs, With(Scaling::kAutoscaler, Placing::kPlanned), 3);
  const ExperimentResult hour = Mean(RunFiftyJobs, With(Scaling::kAutoscaler), 3);
  report.Row("Jain's index among the jobs there for 30 s",
             {Number(planned.jain, 3), Number(hour.jain, 3), "0.99"});
  report.Row("workers' share of what packing allows",
             {Percent(planned.used_of_packable), Percent(hour.used_of_packable), "97 %"});
  report.Row("a job waits for its first worker (mean, s)",
             {Number(planned.pending_seconds, 1), Number(hour.pending_seconds, 1), ""});
  report.Row("workers started",
             {fmt::format("{}", planned.starts), fmt::format("{}", hour.starts), ""});
  report.Plot("fifty_jobs", "Fifty jobs in an hour", hour.trace, "processors used", true, true);
}

int Main(const std::filesystem::path& folder) {
  Report report(folder, "cluster");
  report.Text(
      "# A shared cluster in figures\n"
      "Written by `build/release/bench/cluster_report docs`. Everything here but the last section "
      "is "
      "simulated: nodes, a scheduler, pods that start in 3 to 10 s (where nothing else is said) "
      "and "
      "end in 2 s, and the decisions of `sluice controller` on virtual time. Means of 5 seeds (the "
      "hour: 3); plots of the first. [kubernetes.md](kubernetes.md#the-controller) describes the "
      "controller, [cluster_scheduler.md](cluster_scheduler.md) has EDL's two experiments beside a "
      "real scheduler.\n");
  Edl(report);
  ElasticDl(report);
  Hour(report);
  report.Text(
      "\n## The time of a decision\n"
      "1,000 nodes and 10,000 pods, half of them workers of 100 jobs of three priorities; one "
      "core's "
      "time, median of 7.\n\n| | ms | starts | suspended | goal |\n|---|---|---|---|---|\n");
  const auto row = [&report](const std::string& what, const Decision& decision) {
    report.Row(what, {Number(decision.millis, 0), fmt::format("{}", decision.starts),
                      fmt::format("{}", decision.suspended), "100"});
  };
  row("no job has to wait", TimeDecision(LargeCluster(0)));
  row("one job of a higher priority waits for 700 workers of 8 processors",
      TimeDecision(LargeCluster(1)));
  row("five such jobs", TimeDecision(LargeCluster(5)));
  report.Write();
  return 0;
}

}  // namespace
}  // namespace sluice::elastic

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    fmt::print(stderr,
               "cluster_report FOLDER: writes FOLDER/cluster.md and FOLDER/cluster/*.svg; FOLDER "
               "exists\n");
    return 2;
  }
  return sluice::elastic::Main(argv[1]);
}
