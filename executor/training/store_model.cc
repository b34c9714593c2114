#include "executor/training/store_model.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/sleep.h"
#include "catalog/sql/sqlstate.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::milliseconds kStorePause{200};

}  // namespace

Result<std::optional<catalog::ModelVersion>> FindStored(catalog::ModelStore& models,
                                                        const std::string& schema,
                                                        const std::string& name, int64_t job) {
  Result<std::vector<catalog::ModelVersion>> versions = models.Versions(schema, name);
  if (versions.status().code() == Code::kNotFound) {
    return std::optional<catalog::ModelVersion>();
  }
  RETURN_IF_ERROR(versions.status());
  for (catalog::ModelVersion& version : *versions) {
    if (version.job == job) {
      return std::optional(std::move(version));
    }
  }
  return std::optional<catalog::ModelVersion>();
}

Status StoreModel(catalog::ModelStore& models, const catalog::ModelVersion& version,
                  std::string_view weights, bool must_be_new, const catalog::EndOfJob& end,
                  const StorePatience& patience) {
  const SteadyClock clock;
  const TimePoint begun = clock.Now();
  for (bool told = false;; told = true) {
    const Status stored = models.PutAndEnd(version, weights, must_be_new, end).status();
    if (!catalog::IsUnavailableForNow(stored)) {
      return stored;
    }
    const double limit =
        catalog::IsLocked(stored) ? patience.locked_seconds : patience.away_seconds;
    const double waited = SecondsBetween(begun, clock.Now());
    if (waited >= limit) {
      return Status(stored).Because(
          fmt::format("the model could not be stored for {:.0f} seconds", waited));
    }
    if (!told && patience.tell) {
      patience.tell(
          fmt::format("the training is over and its model waits to be stored, for {:.0f} "
                      "seconds at most: {}",
                      limit, stored.message()));
    }
    if (!SleepFor(kStorePause, patience.stop)) {
      return Cancelled("the training was cancelled while its model waited to be stored");
    }
  }
}

}  // namespace sluice::executor
