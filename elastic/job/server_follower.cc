#include "elastic/job/server_follower.h"

#include <fmt/core.h>

#include <utility>

#include "elastic/master/parameter_fleet.h"

namespace sluice::elastic {
namespace {

constexpr double kLookSeconds = 0.9;

}  // namespace

ServerFollower::ServerFollower(ParameterFleet& servers, uint32_t least, uint32_t most,
                               OnChange on_change)
    : servers_(servers), least_(least), most_(most), on_change_(std::move(on_change)) {}

void ServerFollower::OnProgress(const Progress& progress, const Profile& times, TimePoint now) {
  const double total = times.Total();
  if (least_ >= most_ || SecondsBetween(looked_, now) < kLookSeconds || total <= total_) {
    return;
  }
  looked_ = now;
  const double exchange = times.Seconds(Phase::kExchange);
  ServerLoad load;
  load.least = least_;
  load.most = most_;
  load.asked = servers_.wanted();
  load.serving = static_cast<uint32_t>(servers_.map().servers.size());
  load.workers = static_cast<uint32_t>(progress.workers);
  load.exchange = (exchange - exchange_) / (total - total_);
  load.rows_per_second = progress.rows_per_second;
  exchange_ = exchange;
  total_ = total;
  ServerDecision decision = ScaleServers(load, scaling_, now);
  scaling_ = decision.scaling;
  if (decision.servers != load.asked) {
    servers_.SetServers(decision.servers);
    on_change_(fmt::format("{} instead of {}: {}", decision.servers, load.asked, decision.reason));
  }
}

}  // namespace sluice::elastic
