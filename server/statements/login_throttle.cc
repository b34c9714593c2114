#include "server/statements/login_throttle.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/client_address.h"

namespace sluice::server {
namespace {

std::string AddressKey(const std::string& address) {
  return "address " + NetworkOf(address);
}
std::string RoleKey(const std::string& role) {
  return "role " + role;
}

std::string PairKey(const std::string& address, const std::string& role) {
  return "pair " + NetworkOf(address) + " " + role;
}

}  // namespace

// `free`: this many failures have no effect.
double LoginThrottle::SecondsLeft(const std::string& key, int free, TimePoint now) const {
  const auto found = failures_.find(key);
  if (found == failures_.end()) {
    return 0;
  }
  const Failures& failures = found->second;
  const int beyond = failures.count - free;
  if (beyond < 0 || SecondsBetween(failures.last, now) > kForgetSeconds) {
    return 0;
  }
  const double wait = std::min(kMaxSeconds, std::ldexp(kFirstSeconds, std::min(beyond, 16)));
  return wait - SecondsBetween(std::max(failures.last, failures.trying), now);
}

Status LoginThrottle::Admit(const std::string& address, const std::string& role, TimePoint now) {
  if (address.empty()) {
    return OkStatus();
  }
  const MutexLock lock(mutex_);
  const std::string pair = PairKey(address, role);
  const bool failed = failures_.find(pair) != failures_.end();
  const bool known = known_.find(pair) != known_.end();
  double left = SecondsLeft(pair, kFreeFailures, now);
  if (failed) {
    left = std::max(left, SecondsLeft(RoleKey(role), kFreeFailures, now));
  }
  if (!known) {
    left = std::max(left, SecondsLeft(AddressKey(address), kFreeRoles, now));
  }
  if (left <= 0) {
    Take(pair, kFreeFailures, now);
    if (failed) {
      Take(RoleKey(role), kFreeFailures, now);
    }
    if (!known) {
      Take(AddressKey(address), kFreeRoles, now);
    }
    return OkStatus();
  }
  return Status(Code::kPermissionDenied, "too many failed logins")
      .SqlState("28000")
      .Hint(fmt::format("try again in {:.0f} seconds", std::ceil(left)));
}

void LoginThrottle::Take(const std::string& key, int free, TimePoint now) {
  const auto found = failures_.find(key);
  if (found != failures_.end() && found->second.count >= free) {
    found->second.trying = now;
  }
}

void LoginThrottle::GiveBack(const std::string& key) {
  const auto found = failures_.find(key);
  if (found != failures_.end()) {
    found->second.trying = TimePoint{0};
  }
}

bool LoginThrottle::Count(const std::string& key, TimePoint now) {
  Failures& failures = failures_[key];
  if (SecondsBetween(failures.last, now) > kForgetSeconds) {
    failures.count = 0;
  }
  ++failures.count;
  failures.last = now;
  return failures.count == 1;
}

void LoginThrottle::Failed(const std::string& address, const std::string& role, TimePoint now,
                           LoginOver over) {
  if (address.empty()) {
    return;
  }
  const MutexLock lock(mutex_);
  Forget(now);
  Failures& before = failures_[AddressKey(address)];
  const bool same_attempt = before.role == role && before.over != over &&
                            SecondsBetween(before.last, now) < kOtherWaySeconds;
  before.role = same_attempt ? std::string() : role;
  before.over = over;
  if (!same_attempt) {
    if (Count(PairKey(address, role), now)) {
      Count(AddressKey(address), now);
    }
    Count(RoleKey(role), now);
  }
}

void LoginThrottle::Succeeded(const std::string& address, const std::string& role) {
  const MutexLock lock(mutex_);
  failures_.erase(RoleKey(role));
  GiveBack(AddressKey(address));
  GiveBack(PairKey(address, role));
  Remember(PairKey(address, role));
}

void LoginThrottle::Undecided(const std::string& address, const std::string& role) {
  const MutexLock lock(mutex_);
  GiveBack(AddressKey(address));
  GiveBack(PairKey(address, role));
  GiveBack(RoleKey(role));
}

void LoginThrottle::Remember(const std::string& pair) {
  if (known_.size() >= kMaxKept) {
    std::erase_if(known_, [first = logins_ - kMaxKept / 2](const auto& entry) {
      return entry.second <= first;
    });
  }
  if (known_.emplace(pair, logins_ + 1).second) {
    ++logins_;
  }
}

// Invented names must not fill the memory: forget the older half.
void LoginThrottle::Forget(TimePoint now) {
  if (failures_.size() < kMaxKept) {
    return;
  }
  std::erase_if(failures_, [now](const auto& entry) {
    return SecondsBetween(entry.second.last, now) > kForgetSeconds;
  });
  if (failures_.size() < kMaxKept) {
    return;
  }
  std::vector<TimePoint> times;
  for (const auto& [key, failures] : failures_) {
    times.push_back(failures.last);
  }
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(failures_,
                [oldest = *middle](const auto& entry) { return entry.second.last <= oldest; });
}

}  // namespace sluice::server
