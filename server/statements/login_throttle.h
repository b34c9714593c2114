#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server {

enum class LoginOver { kPlain, kTls };

// Slows down who guesses passwords: after a few failed logins, each next one from the same address,
// or for the same role from any address that has failed itself, has to wait for twice as long as
// the one before. Who has not failed does not wait: nobody can lock a user out from elsewhere.
// Nobody's thread waits: who comes too early is refused unheard. A right login clears its role and
// not the address, so that a guesser cannot clear himself by a login of his own; but it makes
// nobody wait. Bounded. Thread-safe.
class LoginThrottle {
 public:
  // So many are for nothing: a typing error, or an old password in a notebook.
  static constexpr int kFreeFailures = 3;
  static constexpr double kFirstSeconds = 0.5;
  static constexpr double kMostSeconds = 30;
  // Who has been quiet for so long begins anew.
  static constexpr double kForgetSeconds = 300;
  static constexpr size_t kMostKept = 10'000;
  // libpq (sslmode=prefer, allow) tries a refused login once more the other way, with TLS or
  // without: within so long that is the same attempt, and counts once.
  static constexpr double kOtherWaySeconds = 5;

  // 28000 when it is too early for another try. `address`: who calls, without the port; "" counts
  // for nobody.
  Status Admit(const std::string& address, const std::string& role, TimePoint now);
  // How the login ended that Admit let through.
  void Failed(const std::string& address, const std::string& role, TimePoint now,
              LoginOver over = LoginOver::kPlain);
  void Succeeded(const std::string& address, const std::string& role);

 private:
  struct Failures {
    int count = 0;
    TimePoint last{0};
    TimePoint trying{0};  // somebody who had waited
    // Of an address: the failure that a second one, the other way, may belong to.
    std::string role = {};  // "": none
    LoginOver over = LoginOver::kPlain;
  };
  static double SecondsLeft(const Failures& failures, TimePoint now);
  double SecondsLeft(const std::string& key, TimePoint now) const REQUIRES(mutex_);
  // Of those who have to wait, one at a time may try: others at the same moment come too early.
  void Take(const std::string& key, TimePoint now) REQUIRES(mutex_);
  void Count(const std::string& key, TimePoint now) REQUIRES(mutex_);
  void Forget(TimePoint now) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Failures> failures_ GUARDED_BY(mutex_);
};

}  // namespace sluice::server
