#include "elastic/fleet/server_scaling.h"

#include <fmt/core.h>

#include <algorithm>

namespace sluice::elastic {
namespace {

// A worker adds at most 1 / workers of what all of them do: a server has to add half of that, and
// one that adds less than a quarter may go.
constexpr double kWorthAdding = 0.5;
constexpr double kWorthKeeping = 0.25;
// Rates vary by less than this from one measurement to the next.
constexpr double kNoise = 0.03;
// After a change, workers wait for the new map, and servers for their copies.
constexpr double kSettleSeconds = 2;
constexpr int kSamples = 6;
// A server that does not serve after this time has no room.
constexpr double kPatienceSeconds = 60;

ServerScaling Anew(const ServerLoad& load, const ServerScaling& before, TimePoint now) {
  ServerScaling scaling;
  scaling.since = now;
  scaling.workers = load.workers;
  scaling.servers = load.serving;
  scaling.asked = load.asked;
  scaling.useless = before.useless;
  if (before.trial && before.trial->workers == load.workers) {
    scaling.trial = before.trial;
  }
  return scaling;
}

}  // namespace

ServerDecision ScaleServers(const ServerLoad& load, ServerScaling scaling, TimePoint now) {
  const auto stay = [&] { return ServerDecision{load.asked, {}, scaling}; };
  const auto change = [&](uint32_t servers, std::string reason) {
    ServerLoad next = load;
    next.asked = servers;
    return ServerDecision{servers, std::move(reason), Anew(next, scaling, now)};
  };
  if (scaling.workers != load.workers || scaling.servers != load.serving ||
      scaling.asked != load.asked) {
    scaling = Anew(load, scaling, now);
    return stay();
  }
  const double seconds = SecondsBetween(scaling.since, now);
  if (load.serving != load.asked) {
    const uint32_t back = std::clamp(load.serving, load.least, load.most);
    if (load.serving > load.asked || back >= load.asked || seconds < kPatienceSeconds) {
      return stay();
    }
    scaling.trial.reset();
    scaling.useless = {load.asked, load.workers};
    return change(back, fmt::format("no room for a further one in {:.0f} s", seconds));
  }
  if (seconds < kSettleSeconds || load.workers == 0) {
    return stay();
  }
  ++scaling.samples;
  scaling.exchange += load.exchange;
  scaling.rows_per_second += load.rows_per_second;
  if (scaling.samples < kSamples) {
    return stay();
  }
  const double exchange = scaling.exchange / scaling.samples;
  const double rate = scaling.rows_per_second / scaling.samples;
  const double servers = load.serving;
  const double worker = 1.0 / load.workers;
  const auto share = [&] {
    return fmt::format("the exchange takes {:.0f} % of the time of {} worker{}", 100 * exchange,
                       load.workers, load.workers == 1 ? "" : "s");
  };
  if (scaling.trial) {
    const double before = scaling.trial->rows_per_second;
    scaling.trial.reset();
    if (load.serving > load.least &&
        rate < before * (1 + std::max(kNoise, kWorthKeeping * worker))) {
      scaling.useless = {load.serving, load.workers};
      return change(
          load.serving - 1,
          fmt::format("with one more it trained {:.0f} rows/s instead of {:.0f}", rate, before));
    }
  }
  // The time that servers need is shared among them.
  const double with_one_more = 1 - exchange / (servers + 1);
  const bool tried = scaling.useless && load.serving + 1 >= scaling.useless->servers &&
                     load.workers <= scaling.useless->workers;
  if (load.serving < load.most && !tried &&
      1 / with_one_more - 1 >= std::max(kNoise, kWorthAdding * worker)) {
    scaling.trial = {load.workers, rate};
    return change(load.serving + 1, share());
  }
  if (load.serving > load.least && exchange / (servers - 1) <= kWorthKeeping * worker) {
    return change(load.serving - 1, share());
  }
  scaling.samples = 0;
  scaling.exchange = scaling.rows_per_second = 0;
  return stay();
}

}  // namespace sluice::elastic
