#include "elastic/fleet/growth_caution.h"

#include <algorithm>
#include <utility>

namespace sluice::elastic {
namespace {

constexpr double kSettledSeconds = 60;

}  // namespace

double WaitBeforeGrowth(const GrowthCaution& caution, const GrowthWaits& waits, TimePoint now) {
  const bool settled = SecondsBetween(caution.unsettled, now) >= kSettledSeconds;
  return std::min(waits.longest,
                  settled ? waits.shortest : std::max(waits.shortest, caution.wait_seconds));
}

GrowthCaution CautionAfter(GrowthCaution caution, uint32_t had, uint32_t gets, bool gave_up,
                           const GrowthWaits& waits, TimePoint now) {
  const double wait = WaitBeforeGrowth(caution, waits, now);
  if (gets > had) {
    caution.grown = now;
  } else if (gets < had) {
    const auto grown = std::exchange(caution.grown, std::nullopt);
    if (grown && SecondsBetween(*grown, now) < waits.payback) {
      caution.wait_seconds = std::min(waits.longest, 2 * wait);
      caution.unsettled = now;
    }
  } else if (gave_up && wait > waits.shortest) {
    caution.unsettled = now;
  }
  return caution;
}

}  // namespace sluice::elastic
