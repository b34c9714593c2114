#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/cluster_world.h"
#include "tests/simulation/shared_cluster.h"

// Published experiments with clusters shared by trainings, on virtual time.
namespace sluice::elastic {

// What was seen once a second.
struct Trace {
  std::vector<double> seconds;
  std::vector<double> used;               // by running processes, of all processors (or GPUs)
  std::vector<double> pending;            // jobs that have had no worker yet
  std::vector<std::vector<double>> jobs;  // running workers, by job
  std::vector<double> service, service_wanted;
};

struct ExperimentResult {
  double pending_seconds = 0;       // mean over the jobs: from arrival to the first running worker
  double jain = 0;                  // of running workers
  double jobs_below_minimum = 0;    // mean
  double utilisation = 0;           // by running requests
  double service_short = 0;         // missing over wanted process-seconds, while its demand grows
  double service_back_seconds = 0;  // from the last growth of demand until all of it runs
  double finished_seconds = 0;      // the last job
  double used_of_packable = 0;      // workers' processors over what packing allows
  double longest_dip_seconds = 0;   // the longest time that less than everything was used
  uint64_t starts = 0;              // of workers
  Trace trace;
};

inline constexpr uint32_t kEdlMostWorkers = 60;

// PaddlePaddle EDL (2017): 133 nodes, 2,352 processors; jobs of a master of 1, 10 servers of 4 and
// workers of 5 processors. 20 jobs, one every 10 s; Jain over 400-500 s, utilisation over
// 300-500 s.
ExperimentResult RunEdlCase1(const WorldOptions& options);
ExperimentResult PlayEdlCase1(SharedCluster& cluster, uint32_t most_workers = kEdlMostWorkers);
// The same with Nginx of 3 processors: 400 pods, 6 jobs, down to 100 and up again. Utilisation over
// all of it.
ExperimentResult RunEdlCase2(const WorldOptions& options);
ExperimentResult PlayEdlCase2(SharedCluster& cluster, uint32_t most_workers = kEdlMostWorkers);

// ElasticDL (2020-2021): two equal jobs, of which the second arrives later.
struct TwoJobs {
  int nodes = 3;
  Capacity node;
  Capacity worker;
  Capacity master;
  double work = 0;            // worker-seconds of each job
  uint32_t asked = 0;         // workers that a job of fixed size has
  uint32_t max = 0;           // that it may have where jobs are elastic
  double second_arrives = 0;  // s
};
TwoJobs ElasticDlE1();   // 24 processors, jobs of 13
TwoJobs ElasticDlE1b();  // 320 processors, jobs of 175
TwoJobs ElasticDlA1();   // 6 GPUs, jobs of 4
ExperimentResult RunTwoJobs(const TwoJobs& jobs, const WorldOptions& options);

// ElasticDL: a job fills what a service leaves of 21 (320) processors while the demand for the
// service changes.
ExperimentResult RunElasticDlE2(const WorldOptions& options);
ExperimentResult RunElasticDlE2b(const WorldOptions& options);

// Fifty equal jobs that arrive and leave within an hour, on 40 nodes of 16 processors, beside a
// service that swings between 10 and 30 % of them. Jain among the jobs that have been there for
// half a minute; usage while the jobs together could use everything.
ExperimentResult RunFiftyJobs(const WorldOptions& options);

}  // namespace sluice::elastic
