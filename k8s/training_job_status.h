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
inline constexpr std::string_view kConditionQueued = "Queued";  // it is not scheduled yet
inline constexpr std::string_view kConditionSuspended =
    "Suspended";  // no process of it runs, as requested
inline constexpr std::string_view kConditionRunning = "Running";
inline constexpr std::string_view kConditionDegraded = "Degraded";  // fewer workers than its
                                                                    // minimum
inline constexpr std::string_view kConditionComplete = "Complete";  // its model is stored
inline constexpr std::string_view kConditionFailed = "Failed";
// An edit has made its spec wrong: what is wrong in it has no effect.
inline constexpr std::string_view kConditionSpecInvalid = "SpecInvalid";

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;  // one word: QuotaExceeded
  std::string message;
  std::string since;  // of this status, RFC 3339
  int64_t observed_generation = 0;

  bool operator==(const Condition&) const = default;
};

// Set by the controller: the number of workers that the job may have, the pods that it gives up
// first, the nodes that it may use (none named: all), and for people why it is this number.
// `suspend`: it is to free all of its pods, as with spec.suspend, until there is room again.
struct Grant {
  uint32_t workers = 0;
  std::vector<std::string> give_up, nodes;
  std::string reason = {};
  bool suspend = false;

  bool operator==(const Grant&) const = default;
};

struct Scaling {
  std::string time;  // RFC 3339
  uint32_t from = 0, to = 0;
  std::string reason;

  bool operator==(const Scaling&) const = default;
};
inline constexpr size_t kScalingsKept = 20;

// The parts of its spec that hold from when it is begun or refused, whatever the spec says later.
struct BegunSpec {
  std::string statement_sha256;  // hex
  std::string source_secret, source_key;

  bool operator==(const BegunSpec&) const = default;
};

struct TrainingJobStatus {
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::optional<int64_t> job;  // its number in the jobs table
  std::optional<BegunSpec> begun = {};
  std::string model;
  std::optional<int64_t> version;       // of the model that was stored
  std::optional<int64_t> rows = {};     // that it was trained with, over all epochs
  std::string sha256 = {};              // of its weights, hex
  std::optional<int64_t> seconds = {};  // from the job's start to its end
  uint64_t master_number = 0;           // how many masters were started
  std::string master_pod;
  std::optional<Grant> grant;  // set by the controller only: never in StatusPatch
  uint32_t running_workers = 0, granted_workers = 0, most_workers = 0, waiting_workers = 0;
  uint32_t running_servers = 0;
  std::string waiting_for;  // why waiting pods are not scheduled
  std::optional<int64_t> percent, seconds_left;
  std::optional<double> loss, rows_per_second;
  std::vector<Scaling> scalings;  // the last kScalingsKept
  std::string selector;           // labels of its workers, for the scale subresource
  bool can_suspend = false;       // it writes checkpoints
  std::string started, ended;     // RFC 3339

  bool operator==(const TrainingJobStatus&) const = default;
};

// From a TrainingJob's JSON. Missing fields and fields of another type count as unset: the status
// is ours. An error if `json` is not an object.
Result<TrainingJobStatus> ParseTrainingJobStatus(std::string_view json);

// The JSON merge patch of the subresource `status` that turns `before` into `after`; nullopt: there
// is nothing to change. It contains only fields that differ, so that those of other writers and
// unknown ones survive. `version`: of the object that has `before`, since conditions, which have
// several writers, are one list: the API server refuses the patch (kConflict) if it has changed.
std::optional<std::string> StatusPatch(const TrainingJobStatus& before,
                                       const TrainingJobStatus& after,
                                       std::string_view version = {});
// The same for the controller's one field; nullopt removes the grant.
std::string GrantPatch(const std::optional<Grant>& grant);

// The controller wants it to have no process for now.
bool SuspendedByGrant(const TrainingJobStatus& status);

// Keeps `since` if the status is unchanged.
void SetCondition(TrainingJobStatus& status, std::string_view type, bool holds,
                  std::string_view reason, std::string_view message, std::string_view now);
bool Holds(const TrainingJobStatus& status, std::string_view type);
void AddScaling(TrainingJobStatus& status, Scaling scaling);

}  // namespace sluice::k8s
