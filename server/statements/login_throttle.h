#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server {

enum class LoginOver { kPlain, kTls };

// Slows down password guessing: after a few failed logins, each further one from the same address,
// or for the same role from any address that has failed itself, has to wait twice as long as the
// one before. An address without failures never waits, so an attacker cannot lock a user out from
// elsewhere. No thread waits: an attempt that comes too early is refused unchecked. A successful
// login clears its role but not the address, so an attacker cannot clear an address with a login of
// their own; it does not cause waiting either. Bounded memory. Thread-safe.
class LoginThrottle {
 public:
  // This many failures have no effect: a typing error, or a stored old password.
  static constexpr int kFreeFailures = 3;
  static constexpr double kFirstSeconds = 0.5;
  static constexpr double kMaxSeconds = 30;
  // Failures are forgotten after this long without a new one.
  static constexpr double kForgetSeconds = 300;
  static constexpr size_t kMaxKept = 10'000;
  // libpq (sslmode=prefer, allow) retries a refused login once, switching between TLS and plain:
  // within this time the two count as one attempt.
  static constexpr double kOtherWaySeconds = 5;

  // 28000: too early for another try. `address`: the caller's, without the port; "" is never
  // throttled.
  Status Admit(const std::string& address, const std::string& role, TimePoint now);
  // The outcome of a login that Admit has let through.
  void Failed(const std::string& address, const std::string& role, TimePoint now,
              LoginOver over = LoginOver::kPlain);
  void Succeeded(const std::string& address, const std::string& role);
  // The password was not what it failed for: no connections left, no such database.
  void Undecided(const std::string& address, const std::string& role);

 private:
  struct Failures {
    int count = 0;
    TimePoint last{0};
    TimePoint trying{0};  // by an attempt that had to wait
    // Of an address: the role of a failure that may still have its second try (other way).
    std::string role = {};  // "": none
    LoginOver over = LoginOver::kPlain;
  };
  static double SecondsLeft(const Failures& failures, TimePoint now);
  double SecondsLeft(const std::string& key, TimePoint now) const REQUIRES(mutex_);
  // Of the attempts that have to wait, one may try at a time: others at the same moment are too
  // early.
  void Take(const std::string& key, TimePoint now) REQUIRES(mutex_);
  void GiveBack(const std::string& key) REQUIRES(mutex_);
  void Count(const std::string& key, TimePoint now) REQUIRES(mutex_);
  void Forget(TimePoint now) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Failures> failures_ GUARDED_BY(mutex_);
};

}  // namespace sluice::server
