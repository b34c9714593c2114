#include "server/statements/login_throttle.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

namespace sluice::server {
namespace {

using Attempt = LoginThrottle::Attempt;

class LoginThrottleTest : public ::testing::Test {
 protected:
  class HandClock final : public Clock {
   public:
    TimePoint Now() const override { return now; }
    TimePoint now = std::chrono::hours(1);
  };

  void Pass(double seconds) { clock_.now += TimePoint(static_cast<int64_t>(seconds * 1e9)); }
  // "00000": it may be tried now, and nothing came of it.
  std::string Check(const std::string& address, const std::string& role) {
    return throttle_.AdmitAtOnce(address, role).status().sqlstate();
  }
  void Succeed(const std::string& address, const std::string& role) {
    auto attempt = throttle_.AdmitAtOnce(address, role);
    ASSERT_TRUE(attempt.ok()) << attempt.status().ToString();
    attempt->Succeeded();
  }
  bool Fail(const std::string& address, const std::string& role,
            LoginOver over = LoginOver::kPlain) {
    auto attempt = throttle_.AdmitAtOnce(address, role);
    if (attempt.ok()) {
      attempt->Failed(over);
    }
    return attempt.ok();
  }
  // Until each further one has to wait as long as any has to.
  void FailOften(const std::string& address, const std::string& role) {
    for (int i = 0; i < 10; ++i) {
      Pass(LoginThrottle::kMaxSeconds);
      ASSERT_TRUE(Fail(address, role));
    }
  }
  // What becomes of one that waits; nullopt: it still does.
  struct Heard {
    std::optional<Result<Attempt>> turn;
    uint64_t number = 0;
    bool waits() const { return !turn.has_value(); }
    bool ok() const { return turn.has_value() && turn->ok(); }
    bool refused() const { return turn.has_value() && turn->status().sqlstate() == "28000"; }
    void Fail() { (*turn)->Failed(); }
    void Succeed() { (*turn)->Succeeded(); }
    void Drop() { *turn = Attempt(); }
  };
  void Ask(Heard& heard, const std::string& address, const std::string& role) {
    heard.number = throttle_.Admit(
        address, role, [&heard](Result<Attempt> turn) { heard.turn.emplace(std::move(turn)); });
  }
  std::vector<Heard> AskForMany(size_t count, const std::string& address, const std::string& role) {
    std::vector<Heard> all(count);
    for (Heard& one : all) {
      Ask(one, address, role);
    }
    return all;
  }
  template <typename Is>
  static int Count(const std::vector<Heard>& all, Is is) {
    int count = 0;
    for (const Heard& one : all) {
      count += (one.*is)() ? 1 : 0;
    }
    return count;
  }

  HandClock clock_;
  LoginThrottle throttle_{clock_};
};

TEST_F(LoginThrottleTest, EachFailureTakesLongerThanTheOneBefore) {
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    EXPECT_TRUE(Fail("a", "ann"));
  }
  Pass(0.4);
  EXPECT_EQ(throttle_.Check("a", "ann").sqlstate(), "28000");
  EXPECT_EQ(Check("a", "ann"), "28000");
  Pass(0.1);
  EXPECT_TRUE(Fail("a", "ann"));
  Pass(0.9);
  EXPECT_EQ(Check("a", "ann"), "28000");
  Pass(0.1);
  EXPECT_EQ(Check("a", "ann"), "00000");
  FailOften("a", "ann");
  Pass(LoginThrottle::kMaxSeconds - 0.1);
  EXPECT_EQ(Check("a", "ann"), "28000");
  Pass(0.1);
  EXPECT_EQ(Check("a", "ann"), "00000");
}

TEST_F(LoginThrottleTest, GuessesBegunAtOnceAreNotAllChecked) {
  std::vector<Heard> guesses = AskForMany(100, "a", "ann");
  int checked = 0;
  for (Heard& guess : guesses) {
    if (guess.ok()) {
      ++checked;
      guess.Fail();
    }
  }
  EXPECT_EQ(checked, LoginThrottle::kFreeFailures);
  EXPECT_EQ(Count(guesses, &Heard::refused), 100 - LoginThrottle::kFreeFailures);
  Pass(LoginThrottle::kMaxSeconds);
  std::vector<Heard> later = AskForMany(2, "a", "ann");
  EXPECT_TRUE(later[0].ok());
  EXPECT_TRUE(later[1].waits()) << "one at a time, once they have to wait";
  EXPECT_EQ(Check("a", "bob"), "00000") << "who has not failed";
  later[0].Fail();
  EXPECT_TRUE(later[1].refused());
}

TEST_F(LoginThrottleTest, SoAreGuessesForManyRoles) {
  std::vector<Heard> guesses(100);
  int checked = 0;
  for (size_t i = 0; i < guesses.size(); ++i) {
    Ask(guesses[i], "a", "role" + std::to_string(i));
  }
  for (Heard& guess : guesses) {
    if (guess.ok()) {
      ++checked;
      guess.Fail();
    }
  }
  EXPECT_EQ(checked, LoginThrottle::kFreeRoles);
  EXPECT_EQ(Count(guesses, &Heard::refused), 100 - LoginThrottle::kFreeRoles);
}

TEST_F(LoginThrottleTest, GuessesFromAnAddressAreOneWhereTheRoleHasFailedElsewhere) {
  FailOften("a", "ann");
  std::vector<Heard> guesses = AskForMany(10, "b", "ann");
  EXPECT_EQ(Count(guesses, &Heard::ok), 1);
  guesses[0].Fail();
  EXPECT_EQ(Count(guesses, &Heard::refused), 9);
}

TEST_F(LoginThrottleTest, APoolThatOpensManyAtOnceGetsInWithAll) {
  std::vector<Heard> logins = AskForMany(100, "a", "ann");
  EXPECT_EQ(Count(logins, &Heard::ok), LoginThrottle::kFreeFailures);
  for (Heard& login : logins) {
    ASSERT_TRUE(login.ok());
    login.Succeed();
  }
}

TEST_F(LoginThrottleTest, WhereThePasswordIsRightOthersDoNotWaitForTheRest) {
  std::vector<Heard> logins = AskForMany(LoginThrottle::kFreeFailures + 1, "a", "ann");
  EXPECT_TRUE(logins.back().waits());
  (*logins[0].turn)->PasswordIsRight();
  EXPECT_TRUE(logins.back().ok());
  logins[0].Fail();
  EXPECT_TRUE(Fail("a", "ann"));
  EXPECT_TRUE(Fail("a", "ann"));
  EXPECT_EQ(Check("a", "ann"), "28000") << "it has counted";
}

TEST_F(LoginThrottleTest, WhoGivesUpWaitingIsNotAdmitted) {
  std::vector<Heard> logins = AskForMany(LoginThrottle::kFreeFailures + 2, "a", "ann");
  throttle_.LeaveQueue(logins[LoginThrottle::kFreeFailures].number);
  logins[0].Drop();
  EXPECT_TRUE(logins[LoginThrottle::kFreeFailures].waits());
  EXPECT_TRUE(logins.back().ok());
}

TEST_F(LoginThrottleTest, AThreadWaitsForTheOutcomeOfOthers) {
  for (const bool right : {true, false}) {
    std::vector<Heard> others = AskForMany(LoginThrottle::kFreeFailures, "a", "ann");
    std::string state = "none";
    std::jthread waits([&](const std::stop_token& stop) {
      state = throttle_.AwaitTurn("a", "ann", stop).status().sqlstate();
    });
    for (Heard& other : others) {
      right ? other.Succeed() : other.Fail();
    }
    waits.join();
    EXPECT_EQ(state, right ? "00000" : "28000");
  }
  FailOften("b", "ann");
  Pass(LoginThrottle::kMaxSeconds);
  const std::vector<Heard> other = AskForMany(1, "b", "ann");
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(throttle_.AwaitTurn("b", "ann", stop.get_token()).status().sqlstate(), "57014");
}

TEST_F(LoginThrottleTest, WhoHasNoAddressIsNotCounted) {
  std::vector<Heard> logins = AskForMany(100, "", "ann");
  EXPECT_EQ(Count(logins, &Heard::ok), 100);
  for (Heard& login : logins) {
    login.Fail();
  }
  EXPECT_EQ(Check("", "ann"), "00000");
}

TEST_F(LoginThrottleTest, ASecondTryTheOtherWayCountsWithTheFirst) {
  // As libpq does with sslmode=prefer, at any time.
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    EXPECT_TRUE(Fail("a", "ann", LoginOver::kTls)) << i;
    EXPECT_TRUE(i == LoginThrottle::kFreeFailures - 1 || Fail("a", "ann")) << i;
    Pass(2 * LoginThrottle::kOtherWaySeconds);
  }
  EXPECT_TRUE(Fail("a", "ann"));
  EXPECT_EQ(Check("a", "ann"), "28000");
  // A third try is another attempt, and so is one for another role, or a later one.
  Fail("b", "bob", LoginOver::kTls);
  Pass(LoginThrottle::kOtherWaySeconds);
  Fail("b", "bob", LoginOver::kPlain);
  Fail("b", "eve", LoginOver::kTls);
  EXPECT_EQ(Check("b", "bob"), "00000");
  Fail("b", "bob", LoginOver::kTls);
  EXPECT_EQ(Check("b", "bob"), "28000");
  for (const LoginOver over :
       {LoginOver::kTls, LoginOver::kPlain, LoginOver::kPlain, LoginOver::kPlain}) {
    EXPECT_TRUE(Fail("c", "cat", over));
  }
  EXPECT_EQ(Check("c", "cat"), "28000");
}

TEST_F(LoginThrottleTest, ByAddressAndByRole) {
  FailOften("a", "ann");
  EXPECT_EQ(Check("b", "ann"), "00000") << "nobody is locked out from elsewhere";
  Fail("b", "eve");
  EXPECT_EQ(Check("b", "ann"), "00000") << "whoever else fails there";
  Fail("b", "ann");
  EXPECT_EQ(Check("b", "ann"), "28000") << "the same role, by one who guesses, too";
  EXPECT_EQ(Check("b", "bob"), "00000");
}

TEST_F(LoginThrottleTest, AddressesOfOneNetworkAreOne) {
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    EXPECT_TRUE(Fail("2001:db8:1:2::" + std::to_string(i), "ann"));
  }
  EXPECT_EQ(Check("2001:db8:1:2:ffff::1", "ann"), "28000");
  EXPECT_EQ(Check("2001:db8:1:3::1", "ann"), "00000");
  EXPECT_EQ(Check("10.0.0.1", "ann"), "00000");
  for (const char* spelled : {"10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"}) {
    EXPECT_TRUE(Fail(spelled, "bob"));
  }
  EXPECT_EQ(Check("::ffff:10.0.0.1", "bob"), "28000");
}

// An office behind one address, and a stranger in it.
TEST_F(LoginThrottleTest, OthersAtTheAddressDoNotWait) {
  Succeed("a", "known");
  for (int round = 0; round < 25; ++round) {
    Pass(1);
    Fail("a", "eve");
    Fail("a", "root");
    Succeed("a", "user" + std::to_string(round));
    Succeed("a", "known");
  }
  EXPECT_EQ(Check("a", "eve"), "28000");
}

TEST_F(LoginThrottleTest, WhoTriesManyRolesWaits) {
  Succeed("a", "known");
  for (int i = 0; i < LoginThrottle::kFreeRoles; ++i) {
    EXPECT_TRUE(Fail("a", "role" + std::to_string(i))) << i;
  }
  Pass(0.4);
  EXPECT_EQ(Check("a", "another"), "28000");
  EXPECT_EQ(Check("a", "known"), "00000");
  EXPECT_EQ(Check("b", "another"), "00000");
  Pass(0.1);
  std::vector<Heard> more(2);
  Ask(more[0], "a", "another");
  Ask(more[1], "a", "one more");
  EXPECT_TRUE(more[0].ok());
  EXPECT_TRUE(more[1].waits()) << "one at a time";
}

TEST_F(LoginThrottleTest, ALoginOfTheirOwnDoesNotClearAGuesser) {
  FailOften("a", "ann");
  Succeed("a", "bob");
  EXPECT_EQ(Check("a", "ann"), "28000");
  Pass(LoginThrottle::kMaxSeconds);
  Succeed("a", "ann");
  Fail("a", "ann");
  EXPECT_EQ(Check("a", "ann"), "28000") << "who guesses there waits still";
  EXPECT_EQ(Check("b", "ann"), "00000");
}

TEST_F(LoginThrottleTest, ARightLoginMakesNobodyWait) {
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    Fail("a", "ann");
  }
  for (int i = 0; i < 5; ++i) {
    Succeed("a", "bob");
  }
}

TEST_F(LoginThrottleTest, WhoWasQuietBeginsAnew) {
  FailOften("a", "ann");
  Pass(LoginThrottle::kForgetSeconds + 1);
  Fail("a", "ann");
  EXPECT_EQ(Check("a", "ann"), "00000");
}

TEST_F(LoginThrottleTest, FailuresThatAreForgottenMakeNobodyWait) {
  FailOften("a", "ann");
  Pass(LoginThrottle::kForgetSeconds + 1);
  const std::vector<Heard> two = AskForMany(2, "a", "ann");
  EXPECT_EQ(Count(two, &Heard::ok), 2) << "a pool opens several at once";
}

TEST_F(LoginThrottleTest, ALoginThatFailsForAnotherReasonLetsTheNextOneTry) {
  FailOften("a", "ann");
  Pass(LoginThrottle::kMaxSeconds);
  std::vector<Heard> logins = AskForMany(3, "a", "ann");
  EXPECT_EQ(Count(logins, &Heard::ok), 1);
  logins[0].Drop();
  EXPECT_TRUE(logins[1].ok());
  EXPECT_TRUE(logins[2].waits()) << "still one at a time";
}

TEST_F(LoginThrottleTest, MadeUpNamesPushOutTheOldestOnly) {
  for (size_t i = 0; i < LoginThrottle::kMaxKept; ++i) {
    Pass(0.001);
    Fail("address" + std::to_string(i), "role" + std::to_string(i));
  }
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    Fail("a", "ann");
  }
  EXPECT_EQ(Check("a", "ann"), "28000") << "who guesses is known still";
}

}  // namespace
}  // namespace sluice::server
