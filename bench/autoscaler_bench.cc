// The autoscaler in the two experiments of PaddlePaddle EDL, simulated (tests/elastic/
// cluster_simulation.h), compared with EDL's own logs and with the goal. "Fixed": every job asks
// for its largest number of workers and waits, on the same simulated cluster.
#include <fmt/core.h>

#include <chrono>

#include "tests/elastic/fleet/cluster_simulation.h"

namespace sluice::elastic {
namespace {

constexpr int kSeeds = 5;

ClusterFigures Mean(ClusterSimulation::Scaling scaling,
                    ClusterFigures (ClusterSimulation::*run)()) {
  ClusterFigures mean;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    ClusterSimulation simulation(scaling, static_cast<uint64_t>(seed));
    const ClusterFigures one = (simulation.*run)();
    mean.pending_seconds += one.pending_seconds / kSeeds;
    mean.jain += one.jain / kSeeds;
    mean.jobs_below_minimum += one.jobs_below_minimum / kSeeds;
    mean.utilisation += one.utilisation / kSeeds;
    mean.foreground_short += one.foreground_short / kSeeds;
    mean.foreground_back_seconds += one.foreground_back_seconds / kSeeds;
  }
  return mean;
}

void Print(const char* what, double ours, double fixed, double edl, double goal, bool lower) {
  const double ratio = lower ? goal / ours : ours / goal;
  fmt::print("{:<44} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f} {:>7.2f}x{}\n", what, ours, fixed, edl,
             goal, ratio, ratio >= 1 ? "" : "  not reached");
}

int Main() {
  using Scaling = ClusterSimulation::Scaling;
  const auto started = std::chrono::steady_clock::now();
  const ClusterFigures one = Mean(Scaling::kAutoscaler, &ClusterSimulation::RunCase1);
  const ClusterFigures two = Mean(Scaling::kAutoscaler, &ClusterSimulation::RunCase2);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const ClusterFigures fixed_one = Mean(Scaling::kFixed, &ClusterSimulation::RunCase1);
  const ClusterFigures fixed_two = Mean(Scaling::kFixed, &ClusterSimulation::RunCase2);
  fmt::print("{:<44} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "", "ours", "fixed", "EDL log", "goal",
             "ratio");
  Print("case 1: mean pending, s", one.pending_seconds, fixed_one.pending_seconds, 47.2, 5, true);
  Print("case 1: Jain of running workers", one.jain, fixed_one.jain, 0.437, 0.99, false);
  Print("case 1: utilisation, 300-500 s", one.utilisation, fixed_one.utilisation, 0.863, 0.887,
        false);
  fmt::print("{:<44} {:>8.3f} {:>8.3f} {:>8.3f} {:>8.3f}\n", "case 1: jobs below their minimum",
             one.jobs_below_minimum, fixed_one.jobs_below_minimum, 3.5, 0.0);
  Print("case 2: Nginx short, of wanted", two.foreground_short, fixed_two.foreground_short, 0.233,
        0.026, true);
  Print("case 2: all of Nginx back after, s", two.foreground_back_seconds,
        fixed_two.foreground_back_seconds, 118, 15, true);
  fmt::print("{:<44} {:>8.3f} {:>8.3f} {:>8.3f}\n", "case 2: utilisation", two.utilisation,
             fixed_two.utilisation, 0.837);
  fmt::print("{:<44} {:>8.3f}\n", "one simulated experiment takes, s", seconds / (2 * kSeeds));
  return 0;
}

}  // namespace
}  // namespace sluice::elastic

int main() {
  return sluice::elastic::Main();
}
