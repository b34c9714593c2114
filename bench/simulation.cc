// Runs the engine's simulation over many seeds:
//   simulation [--seeds N] [--from S] [--outages] [--early-stopping] [--delays] [--tell]
// Names each seed that breaks an invariant; with --seeds 1 --tell prints its history.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <cstring>

#include "tests/simulation/simulation.h"

int main(int argc, char** argv) {
  using namespace sluice::elastic::simulation;
  uint64_t seeds = 1000, from = 1;
  bool tell = false;
  Simulation::Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--tell") == 0) {
      tell = true;
    } else if (std::strcmp(argv[i], "--outages") == 0) {
      options.faults = Simulation::Faults::kOutages;
    } else if (std::strcmp(argv[i], "--early-stopping") == 0) {
      options.early_stopping = true;
    } else if (std::strcmp(argv[i], "--delays") == 0) {
      options.delays = true;
    } else if (i + 1 < argc && std::strcmp(argv[i], "--seeds") == 0) {
      seeds = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--from") == 0) {
      from = std::strtoull(argv[++i], nullptr, 10);
    } else {
      fmt::print(
          stderr,
          "simulation [--seeds N] [--from S] [--outages] [--early-stopping] [--delays] [--tell]\n");
      return 2;
    }
  }
  Outcome sum;
  int64_t broken = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (uint64_t seed = from; seed < from + seeds; ++seed) {
    std::function<void(const std::string&)> listener;
    if (tell) {
      listener = [](const std::string& line) { fmt::print("{}\n", line); };
    }
    const Outcome outcome = Simulation(seed, options).Run(listener);
    if (!outcome.broken.empty()) {
      ++broken;
      fmt::print(
          "seed {}: {}\n  replay: simulation --from {} --seeds 1 --tell{}{}{}\n", seed,
          outcome.broken, seed, options.faults == Simulation::Faults::kOutages ? " --outages" : "",
          options.early_stopping ? " --early-stopping" : "", options.delays ? " --delays" : "");
    }
    sum.Add(outcome);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} seeds, {} broken; {} events, {:.0f} virtual hours in {:.1f} s\n"
      "{} kills, {} stops, {} cuts, {} takeovers ({} with a torn journal), {} tasks shared, {} "
      "shards skipped\n"
      "{} outages, {} full disks, {} checkpoints and {} that failed, {} jobs went on from one\n"
      "{} lost servers, {} times weights were kept, {} jobs stopped early\n"
      "{} slow writes, {} slow calls of the fleet, {} workers without room\n",
      seeds, broken, sum.events, sum.seconds / 3600, took.count(), sum.kills, sum.pauses, sum.cuts,
      sum.takeovers, sum.torn, sum.shared, sum.skipped, sum.outages, sum.full_disks,
      sum.checkpoints, sum.failed_checkpoints, sum.resumed, sum.lost_servers, sum.kept,
      sum.early_stops, sum.slow_writes, sum.slow_calls, sum.refused_starts);
  return broken == 0 ? 0 : 1;
}
