#include "executor/pods/job_places.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace sluice::executor {

using elastic::Role;

void JobPlaces::Want(uint32_t workers) {
  wants_others_ = wants_others_ || workers != workers_;
  workers_ = workers;
}

void JobPlaces::OnMade(const std::string& name, Role role, bool placed) {
  servers_made_ += role == Role::kParameterServer ? 1 : 0;
  pods_[name] = {role, placed, false, {}, {}, ++made_};
}

void JobPlaces::OnPlaced(const std::string& name) {
  const auto found = pods_.find(name);
  if (found != pods_.end()) {
    found->second.placed = true;
  }
}

void JobPlaces::OnWaits(const std::string& name, const std::string& why, bool known,
                        TimePoint now) {
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return;
  }
  Pod& pod = found->second;
  if (pod.placed || pod.why.empty()) {
    pod.since = now;
  }
  pod.placed = false;
  pod.known = pod.known || known;
  pod.why = why;
}

void JobPlaces::OnGone(const std::string& name) {
  pods_.erase(name);
}

uint32_t JobPlaces::Placed(Role role) const {
  return static_cast<uint32_t>(std::count_if(pods_.begin(), pods_.end(), [role](const auto& each) {
    return each.second.role == role && each.second.placed;
  }));
}

uint32_t JobPlaces::Waiting(Role role, double seconds, TimePoint now) const {
  return static_cast<uint32_t>(std::count_if(pods_.begin(), pods_.end(), [&](const auto& each) {
    const Pod& pod = each.second;
    return pod.role == role && !pod.placed && pod.known &&
           SecondsBetween(pod.since, now) >= seconds;
  }));
}

// Of those that training needs, the ones that have no place.
uint32_t JobPlaces::MissingServers() const {
  return servers_ - std::min(servers_, Placed(Role::kParameterServer));
}

bool JobPlaces::MayMakeWorkers() const {
  if (servers_made_ < servers_) {
    return false;
  }
  return MissingServers() == 0 || std::all_of(pods_.begin(), pods_.end(), [](const auto& each) {
           return each.second.role != Role::kParameterServer || each.second.placed;
         });
}

std::string JobPlaces::WaitsFor() const {
  for (const Role role : {Role::kParameterServer, Role::kWorker}) {
    for (const auto& [name, pod] : pods_) {
      if (pod.role == role && !pod.placed && pod.known) {
        return pod.why;
      }
    }
  }
  return {};
}

std::vector<std::string> JobPlaces::WaitingWorkers() const {
  std::vector<std::pair<uint64_t, std::string>> waiting;
  for (const auto& [name, pod] : pods_) {
    if (pod.role == Role::kWorker && !pod.placed) {
      waiting.emplace_back(pod.number, name);
    }
  }
  std::sort(waiting.rbegin(), waiting.rend());
  std::vector<std::string> names;
  names.reserve(waiting.size());
  for (const auto& [number, name] : waiting) {
    names.push_back(name);
  }
  return names;
}

// All that are wanted, or those with places and kMaxWaiting more.
std::optional<uint32_t> JobPlaces::GrantByRoom(TimePoint now) {
  const uint32_t placed = Placed(Role::kWorker);
  crowded_ = (crowded_ || Waiting(Role::kWorker, kYieldSeconds, now) > kMaxWaiting) &&
             placed + kMaxWaiting < workers_;
  const uint32_t most = crowded_ ? placed + kMaxWaiting : workers_;
  const bool all_again = granted_.has_value() && most == workers_;
  if (!std::exchange(wants_others_, false) && !all_again && most == granted_.value_or(workers_)) {
    return std::nullopt;
  }
  granted_ = most < workers_ ? std::optional(most) : std::nullopt;
  return most;
}

std::optional<uint32_t> JobPlaces::Grant(TimePoint now) {
  if (MayMakeWorkers()) {
    return GrantByRoom(now);
  }
  // Fewer workers are not due to missing places.
  if (wants_others_ && workers_ < granted_.value_or(Placed(Role::kWorker))) {
    wants_others_ = false;
    granted_ = workers_;
    return granted_;
  }
  const uint32_t waiting =
      std::min(Waiting(Role::kParameterServer, kYieldSeconds, now), MissingServers());
  const uint32_t working = Placed(Role::kWorker);
  // Do not take the last worker: the job needs both.
  if (waiting == 0 || working <= 1 ||
      (granted_.has_value() && SecondsBetween(yielded_, now) < kNextSeconds)) {
    return std::nullopt;
  }
  yielded_ = now;
  granted_ = working > waiting ? working - waiting : 1;
  return granted_;
}

std::vector<std::string> JobPlaces::News(TimePoint now) {
  std::vector<std::string> news;
  for (const Role role : {Role::kParameterServer, Role::kWorker}) {
    const uint32_t waiting = Waiting(role, kNewsSeconds, now);
    const auto first = std::find_if(pods_.begin(), pods_.end(), [&](const auto& each) {
      return each.second.role == role && !each.second.placed && each.second.known &&
             SecondsBetween(each.second.since, now) >= kNewsSeconds;
    });
    const auto before = reported_.find(role);
    if (waiting == 0 ||
        (before != reported_.end() && (before->second.why == first->second.why ||
                                       SecondsBetween(before->second.when, now) < kAgainSeconds))) {
      continue;
    }
    reported_[role] = {first->second.why, now};
    const char* const what = role == Role::kWorker ? "worker" : "parameter server";
    news.push_back(waiting == 1
                       ? fmt::format("{} {} waits: {}", what, first->first, first->second.why)
                       : fmt::format("{} {}s wait: {}", waiting, what, first->second.why));
  }
  return news;
}

}  // namespace sluice::executor
