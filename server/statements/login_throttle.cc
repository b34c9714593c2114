#include "server/statements/login_throttle.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <utility>

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

// Of a thread that waits for the outcome of others.
constexpr std::chrono::seconds kPatience(10);

Status TooEarly(double seconds_left) {
  return Status(Code::kPermissionDenied, "too many failed logins")
      .SqlState("28000")
      .Hint(fmt::format("try again in {:.0f} seconds", std::ceil(seconds_left)));
}

}  // namespace

const LoginThrottle::Failures* LoginThrottle::Find(const std::string& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? nullptr : &found->second;
}

// `free`: this many failures have no effect.
double LoginThrottle::SecondsLeft(const std::string& key, int free) const {
  const Failures* const failures = Find(key);
  const TimePoint now = clock_.Now();
  if (failures == nullptr || failures->count < free ||
      SecondsBetween(failures->last, now) > kForgetSeconds) {
    return 0;
  }
  const int beyond = std::min(failures->count - free, 16);
  return std::min(kMaxSeconds, std::ldexp(kFirstSeconds, beyond)) -
         SecondsBetween(failures->last, now);
}

bool LoginThrottle::AreInTheWay(const std::string& key, int free) const {
  const Failures* const failures = Find(key);
  if (failures == nullptr || failures->under_way == 0) {
    return false;
  }
  const bool forgotten = SecondsBetween(failures->last, clock_.Now()) > kForgetSeconds;
  return (forgotten ? 0 : failures->count) + failures->under_way >= free;
}

LoginThrottle::Turn LoginThrottle::TurnOf(const std::string& address, const std::string& role,
                                          double* seconds_left) const {
  const std::string pair = PairKey(address, role);
  const Failures* const of_pair = Find(pair);
  const bool failed = of_pair != nullptr && of_pair->count > 0;
  const bool under_way = of_pair != nullptr && of_pair->under_way > 0;
  const bool known = known_.find(pair) != known_.end();
  const double role_left = SecondsLeft(RoleKey(role), kFreeFailures);
  double left = SecondsLeft(pair, kFreeFailures);
  if (failed) {
    left = std::max(left, role_left);
  }
  if (!known) {
    left = std::max(left, SecondsLeft(AddressKey(address), kFreeRoles));
  }
  if (left > 0) {
    *seconds_left = left;
    return Turn::kTooEarly;
  }
  const bool wait = AreInTheWay(pair, kFreeFailures) ||
                    ((failed || under_way) && AreInTheWay(RoleKey(role), kFreeFailures)) ||
                    (under_way && role_left > 0) ||
                    (!known && AreInTheWay(AddressKey(address), kFreeRoles));
  return wait ? Turn::kLater : Turn::kNow;
}

LoginThrottle::Attempt LoginThrottle::Begin(const std::string& address, const std::string& role) {
  Attempt attempt;
  attempt.throttle_ = this;
  attempt.address_ = address;
  attempt.role_ = role;
  attempt.under_way_ = {PairKey(address, role), RoleKey(role)};
  if (known_.find(attempt.under_way_.front()) == known_.end()) {
    attempt.under_way_.push_back(AddressKey(address));
  }
  for (const std::string& key : attempt.under_way_) {
    ++failures_[key].under_way;
  }
  return attempt;
}

Status LoginThrottle::Check(const std::string& address, const std::string& role) {
  if (address.empty()) {
    return OkStatus();
  }
  const MutexLock lock(mutex_);
  double left = 0;
  return TurnOf(address, role, &left) == Turn::kTooEarly ? TooEarly(left) : OkStatus();
}

Result<LoginThrottle::Attempt> LoginThrottle::AdmitAtOnce(const std::string& address,
                                                          const std::string& role) {
  if (address.empty()) {
    return Attempt();
  }
  const MutexLock lock(mutex_);
  double left = 0;
  if (TurnOf(address, role, &left) == Turn::kTooEarly) {
    return TooEarly(left);
  }
  return Begin(address, role);
}

uint64_t LoginThrottle::Admit(const std::string& address, const std::string& role, Then then) {
  Result<Attempt> attempt = Attempt();
  if (!address.empty()) {
    const MutexLock lock(mutex_);
    double left = 0;
    const Turn turn = TurnOf(address, role, &left);
    if (turn == Turn::kLater) {
      waiting_.push_back({++last_waiter_, address, role, std::move(then)});
      return last_waiter_;
    }
    attempt = turn == Turn::kNow ? Result<Attempt>(Begin(address, role)) : TooEarly(left);
  }
  then(std::move(attempt));
  return 0;
}

void LoginThrottle::LeaveQueue(uint64_t number) {
  const MutexLock lock(mutex_);
  waiting_.remove_if([number](const Waiter& waiter) { return waiter.number == number; });
}

Result<LoginThrottle::Attempt> LoginThrottle::AwaitTurn(const std::string& address,
                                                        const std::string& role,
                                                        const std::stop_token& stop) {
  if (address.empty()) {
    return Attempt();
  }
  MutexLock lock(mutex_);
  double left = 0;
  Turn turn = Turn::kLater;
  ended_.wait_for(lock.native(), stop, kPatience, [&]() REQUIRES(mutex_) {
    turn = TurnOf(address, role, &left);
    return turn != Turn::kLater;
  });
  if (turn == Turn::kNow) {
    return Begin(address, role);
  }
  if (turn == Turn::kTooEarly) {
    return TooEarly(left);
  }
  if (stop.stop_requested()) {
    return Cancelled("canceling statement due to user request");
  }
  return Status(Code::kUnavailable, "too many logins of the role are under way").SqlState("53300");
}

LoginThrottle::Attempt& LoginThrottle::Attempt::operator=(Attempt&& other) noexcept {
  if (this != &other) {
    Release();
    throttle_ = std::exchange(other.throttle_, nullptr);
    address_ = std::move(other.address_);
    role_ = std::move(other.role_);
    under_way_ = std::exchange(other.under_way_, {});
  }
  return *this;
}

void LoginThrottle::Attempt::Release() {
  if (throttle_ == nullptr || under_way_.empty()) {
    return;
  }
  std::vector<Told> ready;
  {
    const MutexLock lock(throttle_->mutex_);
    throttle_->EndIn(this);
    ready = throttle_->TakeReady(*this);
  }
  throttle_->Tell(std::move(ready));
}

void LoginThrottle::Attempt::Failed(LoginOver over) {
  if (throttle_ == nullptr) {
    return;
  }
  std::vector<Told> ready;
  {
    const MutexLock lock(throttle_->mutex_);
    throttle_->CountFailure(*this, over);
    throttle_->EndIn(this);
    ready = throttle_->TakeReady(*this);
  }
  throttle_->Tell(std::move(ready));
}

void LoginThrottle::Attempt::Succeeded() {
  if (throttle_ == nullptr) {
    return;
  }
  std::vector<Told> ready;
  {
    const MutexLock lock(throttle_->mutex_);
    throttle_->EndIn(this);
    const auto of_role = throttle_->failures_.find(RoleKey(role_));
    if (of_role != throttle_->failures_.end()) {
      of_role->second.count = 0;
      throttle_->EraseIfNothing(of_role);
    }
    throttle_->Remember(PairKey(address_, role_));
    ready = throttle_->TakeReady(*this);
  }
  throttle_->Tell(std::move(ready));
}

void LoginThrottle::EndIn(Attempt* attempt) {
  for (const std::string& key : std::exchange(attempt->under_way_, {})) {
    const auto found = failures_.find(key);
    --found->second.under_way;
    EraseIfNothing(found);
  }
}

void LoginThrottle::EraseIfNothing(std::map<std::string, Failures>::iterator entry) {
  if (entry->second.count == 0 && entry->second.under_way == 0) {
    failures_.erase(entry);
  }
}

std::vector<LoginThrottle::Told> LoginThrottle::TakeReady(const Attempt& ended) {
  std::vector<Told> ready;
  const std::string network = NetworkOf(ended.address_);
  for (auto waiter = waiting_.begin(); waiter != waiting_.end();) {
    double left = 0;
    const bool concerned = waiter->role == ended.role_ || NetworkOf(waiter->address) == network;
    const Turn turn = concerned ? TurnOf(waiter->address, waiter->role, &left) : Turn::kLater;
    if (turn == Turn::kLater) {
      ++waiter;
      continue;
    }
    ready.push_back({std::move(waiter->then),
                     turn == Turn::kNow ? Result<Attempt>(Begin(waiter->address, waiter->role))
                                        : TooEarly(left)});
    waiter = waiting_.erase(waiter);
  }
  ended_.notify_all();
  return ready;
}

void LoginThrottle::Tell(std::vector<Told> ready) {
  for (Told& told : ready) {
    told.then(std::move(told.attempt));
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

void LoginThrottle::CountFailure(const Attempt& attempt, LoginOver over) {
  const TimePoint now = clock_.Now();
  Forget(now);
  const auto address = failures_.find(AddressKey(attempt.address_));
  if (address != failures_.end() && address->second.role == attempt.role_ &&
      address->second.over != over &&
      SecondsBetween(address->second.other_way_since, now) < kOtherWaySeconds) {
    address->second.role.clear();
    return;
  }
  if (Count(PairKey(attempt.address_, attempt.role_), now)) {
    Count(AddressKey(attempt.address_), now);
  }
  Count(RoleKey(attempt.role_), now);
  Failures& of_address = failures_[AddressKey(attempt.address_)];
  of_address.role = attempt.role_;
  of_address.over = over;
  of_address.other_way_since = now;
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
    return entry.second.under_way == 0 && SecondsBetween(entry.second.last, now) > kForgetSeconds;
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
  std::erase_if(failures_, [oldest = *middle](const auto& entry) {
    return entry.second.under_way == 0 && entry.second.last <= oldest;
  });
}

}  // namespace sluice::server
