#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::k8s {

// Types of conditions, for `kubectl wait --for=condition=Complete`.
inline constexpr std::string_view kConditionQueued = "Queued";  // it has no place yet
inline constexpr std::string_view kConditionSuspended =
    "Suspended";  // nothing of it runs, as asked for
inline constexpr std::string_view kConditionRunning = "Running";
inline constexpr std::string_view kConditionDegraded = "Degraded";  // fewer workers than its least
inline constexpr std::string_view kConditionComplete = "Complete";  // its model is stored
inline constexpr std::string_view kConditionFailed = "Failed";

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;  // one word: QuotaExceeded
  std::string message;
  std::string since;  // of this status, RFC 3339
  int64_t observed_generation = 0;

  bool operator==(const Condition&) const = default;
};

// What the controller says: the job may have so many workers, gives up those pods first, and may
// use those nodes (none named: all).
struct Grant {
  uint32_t workers = 0;
  std::vector<std::string> give_up, nodes;

  bool operator==(const Grant&) const = default;
};

struct Scaling {
  std::string time;  // RFC 3339
  uint32_t from = 0, to = 0;
  std::string reason;

  bool operator==(const Scaling&) const = default;
};
inline constexpr size_t kScalingsKept = 20;

struct TrainingJobStatus {
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::optional<int64_t> job;  // its number in the jobs table
  std::string model;
  std::optional<int64_t> version;  // of the model that was stored
  uint64_t master_number = 0;      // how many masters were started
  std::string master_pod;
  std::optional<Grant> grant;  // the controller's alone: never in StatusPatch
  uint32_t running_workers = 0, granted_workers = 0, most_workers = 0, waiting_workers = 0;
  uint32_t running_servers = 0;
  std::string waiting_for;  // why those that wait have no place
  std::optional<int64_t> percent, seconds_left;
  std::optional<double> loss, rows_per_second;
  std::vector<Scaling> scalings;  // the last kScalingsKept
  std::string selector;           // labels of its workers, for the scale subresource
  std::string started, ended;     // RFC 3339

  bool operator==(const TrainingJobStatus&) const = default;
};

// Of a TrainingJob's JSON. What is missing or of another type is as if it had not been written: the
// status is ours. An error where `json` is no object.
Result<TrainingJobStatus> ParseTrainingJobStatus(std::string_view json);

// The JSON merge patch of the subresource `status` that makes `after` of `before`; nullopt: there
// is nothing to change. It names the fields that differ, so that those of others and those that
// nobody here knows survive.
std::optional<std::string> StatusPatch(const TrainingJobStatus& before,
                                       const TrainingJobStatus& after);
// The same of the controller's one field; nullopt takes the grant back.
std::string GrantPatch(const std::optional<Grant>& grant);

// `since` of an unchanged status stays.
void SetCondition(TrainingJobStatus& status, std::string_view type, bool holds,
                  std::string_view reason, std::string_view message, std::string_view now);
bool Holds(const TrainingJobStatus& status, std::string_view type);
void AddScaling(TrainingJobStatus& status, Scaling scaling);

}  // namespace sluice::k8s
