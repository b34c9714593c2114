#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

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
// there before. The addresses of an IPv6 network (/64) are one. An attempt that comes too early is
// refused unchecked. One that is under way counts as a failure until its outcome is known; who
// would come too early only because of such ones waits for their outcome, so that the sessions that
// a pool opens at once get in, and as many guesses do not. A successful login forgets the role's
// failures elsewhere, but not those of its address. Bounded memory. Thread-safe.
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

  // A login that may be tried. It is under way until one of its functions is called, or it is
  // destroyed: then the password was not what it failed for (no connections left, no such
  // database). One without an address is never counted. Must not outlive the throttle.
  class Attempt {
   public:
    Attempt() = default;
    Attempt(Attempt&& other) noexcept { *this = std::move(other); }
    Attempt& operator=(Attempt&& other) noexcept;
    ~Attempt() { Release(); }

    void Failed(LoginOver over = LoginOver::kPlain);
    void Succeeded();
    // The password is right, so that others need not wait for what is left to do: it may still fail
    // or succeed.
    void PasswordIsRight() { Release(); }

   private:
    friend class LoginThrottle;
    void Release();

    LoginThrottle* throttle_ = nullptr;
    std::string address_;
    std::string role_;
    std::vector<std::string> under_way_;  // the keys that it counts for
  };
  using Then = std::function<void(Result<Attempt> attempt)>;

  explicit LoginThrottle(const Clock& clock) : clock_(clock) {}

  // 28000: too early for another try. `address`: the caller's, without the port; "" is never
  // throttled.
  Status Check(const std::string& address, const std::string& role) EXCLUDES(mutex_);
  // Calls `then` when those under way leave room, possibly before this returns, or from the thread
  // that ends one of them, and never with a lock held. Returns the number of who waits, or 0.
  uint64_t Admit(const std::string& address, const std::string& role, Then then) EXCLUDES(mutex_);
  // Who waits does so no longer. Unknown numbers have no effect.
  void LeaveQueue(uint64_t number) EXCLUDES(mutex_);
  // The same for a thread that may wait. 57014: `stop`; 53300: those under way take too long.
  Result<Attempt> AwaitTurn(const std::string& address, const std::string& role,
                            const std::stop_token& stop) EXCLUDES(mutex_);
  // For a password that is checked at once: nobody waits for others.
  Result<Attempt> AdmitAtOnce(const std::string& address, const std::string& role) EXCLUDES(mutex_);

 private:
  struct Failures {
    int count = 0;
    TimePoint last{0};
    int under_way = 0;
    // Of an address: the role of a failure that may still have its second try (other way).
    std::string role = {};  // "": none
    LoginOver over = LoginOver::kPlain;
    TimePoint other_way_since{0};
  };
  struct Waiter {
    uint64_t number = 0;
    std::string address;
    std::string role;
    Then then;
  };
  struct Told {
    Then then;
    Result<Attempt> attempt;
  };
  enum class Turn { kNow, kLater, kTooEarly };

  Turn TurnOf(const std::string& address, const std::string& role, double* seconds_left) const
      REQUIRES(mutex_);
  const Failures* Find(const std::string& key) const REQUIRES(mutex_);
  double SecondsLeft(const std::string& key, int free) const REQUIRES(mutex_);
  // Whether those under way would take the next one's turn if they failed.
  bool AreInTheWay(const std::string& key, int free) const REQUIRES(mutex_);
  Attempt Begin(const std::string& address, const std::string& role) REQUIRES(mutex_);
  // Whether it is the first failure for a long time.
  bool Count(const std::string& key, TimePoint now) REQUIRES(mutex_);
  void CountFailure(const Attempt& attempt, LoginOver over) REQUIRES(mutex_);
  void EndIn(Attempt* attempt) REQUIRES(mutex_);
  void EraseIfNothing(std::map<std::string, Failures>::iterator entry) REQUIRES(mutex_);
  // Those who waited for `ended` and need not any longer.
  std::vector<Told> TakeReady(const Attempt& ended) REQUIRES(mutex_);
  void Tell(std::vector<Told> ready) EXCLUDES(mutex_);
  void Remember(const std::string& pair) REQUIRES(mutex_);
  void Forget(TimePoint now) REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  // Of roles, of roles at an address, and of addresses, which count each role once.
  std::map<std::string, Failures> failures_ GUARDED_BY(mutex_);
  // Roles that have logged in from an address, in the order in which they did so first.
  std::map<std::string, uint64_t> known_ GUARDED_BY(mutex_);
  uint64_t logins_ GUARDED_BY(mutex_) = 0;
  std::list<Waiter> waiting_ GUARDED_BY(mutex_);  // the first who came first
  uint64_t last_waiter_ GUARDED_BY(mutex_) = 0;
  std::condition_variable_any ended_;
};

}  // namespace sluice::server
