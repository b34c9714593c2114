#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server {

enum class LoginOver { kPlain, kTls };

// Slows down password guessing: after a few failed logins of a role from an address, each further
// one has to wait twice as long as the one before; failures of the role from elsewhere count, too,
// but only for addresses from which it has failed. So an attacker cannot lock a user out from
// elsewhere. Other roles at that address, which many may share (NAT, a Unix socket), do not wait,
// unless many different roles have failed there: then each role does that has not logged in from
// there before. The addresses of an IPv6 network (/64) are one. No thread waits: an attempt that
// comes too early is refused unchecked. A successful login forgets the role's failures elsewhere,
// but not those of its address. Bounded memory. Thread-safe.
class LoginThrottle {
 public:
  // This many failures have no effect: a typing error, or a stored old password.
  static constexpr int kFreeFailures = 3;
  // So many different roles of an address may fail.
  static constexpr int kFreeRoles = 10;
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
  double SecondsLeft(const std::string& key, int free, TimePoint now) const REQUIRES(mutex_);
  // Of the attempts that have to wait, one may try at a time: others at the same moment are too
  // early.
  void Take(const std::string& key, int free, TimePoint now) REQUIRES(mutex_);
  void GiveBack(const std::string& key) REQUIRES(mutex_);
  // Whether it is the first failure for a long time.
  bool Count(const std::string& key, TimePoint now) REQUIRES(mutex_);
  void Remember(const std::string& pair) REQUIRES(mutex_);
  void Forget(TimePoint now) REQUIRES(mutex_);

  mutable Mutex mutex_;
  // Of roles, of roles at an address, and of addresses, which count each role once.
  std::map<std::string, Failures> failures_ GUARDED_BY(mutex_);
  // Roles that have logged in from an address, in the order in which they did so first.
  std::map<std::string, uint64_t> known_ GUARDED_BY(mutex_);
  uint64_t logins_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::server
