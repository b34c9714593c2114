#include "executor/local/wait_for_database.h"

#include <chrono>

#include "base/clock.h"
#include "base/sleep.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::executor {

Result<catalog::Database> OpenWhenThere(const catalog::DatabaseLogin& source,
                                        const catalog::DatabaseLogin& catalog,
                                        double patience_seconds, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kAgain{500};
  const SteadyClock clock;
  const TimePoint begun = clock.Now();
  for (;;) {
    auto both = catalog::OpenDatabase(source, catalog, stop);
    if (!catalog::IsUnavailableForNow(both.status()) || stop.stop_requested() ||
        SecondsBetween(begun, clock.Now()) >= patience_seconds) {
      return both;
    }
    SleepFor(kAgain, stop);
  }
}

}  // namespace sluice::executor
