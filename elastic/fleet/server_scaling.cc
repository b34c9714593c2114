#include "elastic/fleet/server_scaling.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

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
// When one more is tried again, after the first time in vain and at the latest: other jobs end, and
// one measurement may have been bad.
constexpr double kNoRoomSeconds = 300;
constexpr double kNoGainSeconds = 900;
constexpr double kLongestSeconds = 4 * 3'600;

ServerScaling Anew(const ServerLoad& load, const ServerScaling& before, TimePoint now) {
  ServerScaling scaling;
  scaling.since = now;
  scaling.workers = load.workers;
  scaling.servers = load.serving;
  scaling.asked = load.asked;
  const bool same = before.servers == load.serving && before.asked == load.asked;
  scaling.asked_since = same ? before.asked_since : now;
  scaling.asked_workers = same ? before.asked_workers : load.workers;
  scaling.useless = before.useless;
  if (before.trial && before.trial->workers == load.workers) {
    scaling.trial = before.trial;
  }
  return scaling;
}

ServerScaling::Useless InVain(uint32_t servers, uint32_t workers, double seconds,
                              const ServerScaling& scaling, TimePoint now) {
  ServerScaling::Useless useless{servers, workers, seconds, {}};
  if (scaling.useless && scaling.useless->servers == servers) {
    useless.seconds = std::clamp(2 * scaling.useless->seconds, seconds, kLongestSeconds);
  }
  useless.until =
      now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(useless.seconds));
  return useless;
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
  }
  if (load.serving != load.asked) {
    const double waited = SecondsBetween(scaling.asked_since, now);
    const uint32_t back = std::clamp(load.serving, load.least, load.most);
    if (load.serving > load.asked || back >= load.asked || waited < kPatienceSeconds) {
      return stay();
    }
    scaling.trial.reset();
    scaling.useless = InVain(load.asked, scaling.asked_workers, kNoRoomSeconds, scaling, now);
    return change(back, fmt::format("no room for a further one in {:.0f} s", waited));
  }
  // What a job measures that does not train, since it validates or waits, means nothing.
  if (SecondsBetween(scaling.since, now) < kSettleSeconds || load.workers == 0 ||
      !(load.rows_per_second > 0) || !(load.exchange >= 0 && load.exchange <= 1)) {
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
      scaling.useless = InVain(load.serving, load.workers, kNoGainSeconds, scaling, now);
      return change(
          load.serving - 1,
          fmt::format("with one more it trained {:.0f} rows/s instead of {:.0f}", rate, before));
    }
  }
  // The time that servers need is shared among them.
  const double with_one_more = 1 - exchange / (servers + 1);
  const bool tried = scaling.useless && load.serving + 1 >= scaling.useless->servers &&
                     load.workers <= scaling.useless->workers && now < scaling.useless->until;
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
