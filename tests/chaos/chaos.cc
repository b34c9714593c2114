// Trains jobs on real processes while it kills and pauses them, and checks the results:
//   chaos --seeds N M            jobs with the schedules of seeds N and M
//   chaos --minutes 60 --seed S  seeds S, S + 1, ... for an hour
// The exit code is 0 when every job was as it would have been undisturbed.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <vector>

#include "base/clock.h"
#include "tests/chaos/trial.h"

namespace sluice::chaos {
namespace {

struct Options {
  uint64_t seed = 1;
  std::vector<uint64_t> seeds;  // instead of the range
  int64_t jobs = 0;
  double minutes = 0;
  std::string binary = SLUICE_BINARY;
  bool kill_masters = kMastersAreSucceeded;
  bool postgres = true;
  bool only_describe = false, events = false;
  Sizes sizes;
};

struct Totals {
  int64_t jobs = 0, under_storms = 0, with_checkpoints = 0, with_patience = 0, on_postgres = 0;
  int64_t refused = 0;  // rightly
  int64_t checked_jobs = 0, checked_rows = 0;
  std::map<std::pair<Target, FaultKind>, int> injected;
  std::vector<uint64_t> failed;
  int64_t retried_rows = 0;
  double longest_pause = 0;
  uint64_t longest_pause_seed = 0;
};

// A pause this much longer than its faults reveals a problem of the engine; its events are printed.
constexpr double kStrangePause = 5;

double LongestPause(const Schedule& schedule) {
  double longest = 0;
  for (const Fault& fault : schedule.faults) {
    longest = std::max(longest, fault.kind == FaultKind::kPause ? fault.pause_seconds : 0);
  }
  return longest;
}

void Tell(const Schedule& schedule, const Verdict& verdict, bool always_events) {
  fmt::print("{} {}\n  {:.1f} s, {} epochs, longest pause {:.1f} s, {} faults, {} rows retried",
             verdict.complaints.empty() ? "ok  " : "FAIL", Describe(schedule), verdict.seconds,
             verdict.epochs, verdict.longest_pause, verdict.injected.log.size(),
             verdict.retried_rows);
  if (verdict.checked_rows > 0) {
    fmt::print(", {} rows checked", verdict.checked_rows);
  }
  if (verdict.stalest > 0) {
    fmt::print(", at most {} versions stale", verdict.stalest);
  }
  fmt::print("\n");
  if (!verdict.refused.empty()) {
    fmt::print("  failed, as it should: {}\n", verdict.refused);
  }
  for (const std::string& complaint : verdict.complaints) {
    fmt::print("  WRONG {}\n", complaint);
  }
  if (!verdict.complaints.empty()) {
    for (const std::string& line : verdict.injected.log) {
      fmt::print("  {}\n", line);
    }
    fmt::print("  again: chaos --seeds {}\n", schedule.seed);
  }
  if (always_events || !verdict.complaints.empty() ||
      verdict.longest_pause > LongestPause(schedule) + kStrangePause) {
    for (const std::string& event : verdict.events) {
      fmt::print("    {}\n", event);
    }
  }
  std::fflush(stdout);
}

void Count(const Schedule& schedule, const Verdict& verdict, Totals* totals) {
  ++totals->jobs;
  totals->under_storms += IsStorm(schedule.style) ? 1 : 0;
  totals->with_checkpoints += schedule.job.checkpoints ? 1 : 0;
  totals->with_patience += schedule.job.patience > 0 ? 1 : 0;
  totals->on_postgres += schedule.job.postgres ? 1 : 0;
  totals->refused += verdict.refused.empty() ? 0 : 1;
  totals->checked_jobs += verdict.checked_rows > 0 ? 1 : 0;
  totals->checked_rows += verdict.checked_rows;
  totals->retried_rows += verdict.retried_rows;
  for (const auto& [what, count] : verdict.injected.sent) {
    totals->injected[what] += count;
  }
  if (!verdict.complaints.empty()) {
    totals->failed.push_back(schedule.seed);
  }
  if (verdict.longest_pause > totals->longest_pause) {
    totals->longest_pause = verdict.longest_pause;
    totals->longest_pause_seed = schedule.seed;
  }
}

void Tell(const Totals& totals, double minutes) {
  fmt::print(
      "\n{} jobs in {:.1f} minutes, {} of them under storms and bursts; {} with checkpoints,\n"
      "{} with early stopping, {} on PostgreSQL; {} failed as they should\n"
      "{} rows retried; {} rows of {} jobs checked one by one\n",
      totals.jobs, minutes, totals.under_storms, totals.with_checkpoints, totals.with_patience,
      totals.on_postgres, totals.refused, totals.retried_rows, totals.checked_rows,
      totals.checked_jobs);
  for (const auto& [what, count] : totals.injected) {
    fmt::print("  {:10} {:10} {}\n", NameOf(what.second), NameOf(what.first), count);
  }
  fmt::print("longest pause {:.1f} s (seed {})\n{} jobs were not as they should be{}",
             totals.longest_pause, totals.longest_pause_seed, totals.failed.size(),
             totals.failed.empty() ? "" : ": seeds");
  for (const uint64_t seed : totals.failed) {
    fmt::print(" {}", seed);
  }
  fmt::print("\n");
}

int64_t JobsOf(const Options& options) {
  if (!options.seeds.empty()) {
    return static_cast<int64_t>(options.seeds.size());
  }
  return options.jobs > 0      ? options.jobs
         : options.minutes > 0 ? std::numeric_limits<int64_t>::max()
                               : 1;
}

Schedule ScheduleOf(const Options& options, int64_t job) {
  const auto place = static_cast<size_t>(job);
  return DrawSchedule(options.seeds.empty() ? options.seed + place : options.seeds[place],
                      options.kill_masters);
}

Result<bool> Run(const Options& options) {
  const SteadyClock clock;
  ASSIGN_OR_RETURN(const auto trials,
                   Trials::Make({options.binary, options.sizes, options.postgres}));
  const TimePoint begin = clock.Now();
  const auto minutes = [&] { return SecondsBetween(begin, clock.Now()) / 60; };
  const int64_t jobs = JobsOf(options);
  Totals totals;
  while (totals.jobs < jobs && (options.minutes <= 0 || minutes() < options.minutes)) {
    const Schedule schedule = ScheduleOf(options, totals.jobs);
    ASSIGN_OR_RETURN(const Verdict verdict, trials->Run(schedule));
    Tell(schedule, verdict, options.events);
    Count(schedule, verdict, &totals);
  }
  Tell(totals, minutes());
  return totals.failed.empty();
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  sluice::chaos::Options options;
  CLI::App app("Disturbs trainings and examines what comes of them");
  app.add_option("--seed", options.seed, "of the first job; each next one has the next");
  app.add_option("--seeds", options.seeds, "these, one job each");
  app.add_option("--jobs", options.jobs, "end after so many");
  app.add_option("--minutes", options.minutes, "end after so long");
  app.add_option("--binary", options.binary, "the sluice that is disturbed");
  app.add_option("--rows", options.sizes.rows, "of each table");
  app.add_option("--epochs", options.sizes.epochs, "of the asynchronous modes");
  app.add_option("--synchronous-epochs", options.sizes.synchronous_epochs, "of the others");
  app.add_option("--auc-tolerance", options.sizes.auc_tolerance,
                 "of asynchronous jobs beside undisturbed ones");
  app.add_flag("--kill-masters,!--spare-masters", options.kill_masters,
               "masters are killed as well, not only paused");
  app.add_flag("--postgres,!--no-postgres", options.postgres,
               "jobs that a schedule puts on PostgreSQL are on one, where there is one");
  app.add_flag("--events", options.events, "prints the events of jobs that went well, too");
  app.add_flag("--describe", options.only_describe, "prints the schedules of the jobs, and ends");
  CLI11_PARSE(app, argc, argv);
  if (options.only_describe) {
    for (int64_t job = 0; job < sluice::chaos::JobsOf(options); ++job) {
      fmt::print("{}\n", Describe(sluice::chaos::ScheduleOf(options, job)));
    }
    return 0;
  }
  const sluice::Result<bool> good = sluice::chaos::Run(options);
  if (!good.ok()) {
    fmt::print(stderr, "chaos: {}\n", good.status().ToString());
    return 2;
  }
  return *good ? 0 : 1;
}
