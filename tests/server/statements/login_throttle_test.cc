#include "server/statements/login_throttle.h"

#include <gtest/gtest.h>

namespace sluice::server {
namespace {

constexpr TimePoint At(double seconds) {
  return TimePoint(static_cast<int64_t>(seconds * 1e9)) + std::chrono::hours(1);
}

TEST(LoginThrottle, EachFailureTakesLongerThanTheOneBefore) {
  LoginThrottle throttle;
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    EXPECT_TRUE(throttle.Admit("a", "ann", At(0)).ok());
    throttle.Failed("a", "ann", At(0));
  }
  EXPECT_EQ(throttle.Admit("a", "ann", At(0.4)).sqlstate(), "28000");
  EXPECT_TRUE(throttle.Admit("a", "ann", At(0.5)).ok());
  throttle.Failed("a", "ann", At(0.5));
  EXPECT_FALSE(throttle.Admit("a", "ann", At(1.4)).ok());
  EXPECT_TRUE(throttle.Admit("a", "ann", At(1.5)).ok());
  for (int i = 0; i < 100; ++i) {
    throttle.Failed("a", "ann", At(2));
  }
  EXPECT_FALSE(throttle.Admit("a", "ann", At(2 + LoginThrottle::kMaxSeconds - 0.1)).ok());
  EXPECT_TRUE(throttle.Admit("a", "ann", At(2 + LoginThrottle::kMaxSeconds)).ok());
}

TEST(LoginThrottle, OneAtATimeOnceTheyHaveToWait) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(throttle.Admit("a", "ann", At(0)).ok()) << "whoever connects at once";
  }
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  const double later = LoginThrottle::kMaxSeconds;
  EXPECT_TRUE(throttle.Admit("a", "ann", At(later)).ok());
  EXPECT_FALSE(throttle.Admit("a", "ann", At(later)).ok());
  EXPECT_TRUE(throttle.Admit("a", "bob", At(later)).ok()) << "who has not failed";
}

TEST(LoginThrottle, ASecondTryTheOtherWayCountsWithTheFirst) {
  LoginThrottle throttle;
  // As libpq does with sslmode=prefer.
  for (int i = 0; i < LoginThrottle::kFreeFailures; ++i) {
    EXPECT_TRUE(throttle.Admit("a", "ann", At(0)).ok()) << i;
    throttle.Failed("a", "ann", At(0), LoginOver::kTls);
    throttle.Failed("a", "ann", At(0), LoginOver::kPlain);
  }
  EXPECT_FALSE(throttle.Admit("a", "ann", At(0)).ok());
  // A third try is another attempt, and so is one for another role, or a later one.
  LoginThrottle fresh;
  fresh.Failed("a", "ann", At(0), LoginOver::kTls);
  fresh.Failed("a", "ann", At(LoginThrottle::kOtherWaySeconds), LoginOver::kPlain);
  fresh.Failed("a", "bob", At(LoginThrottle::kOtherWaySeconds), LoginOver::kTls);
  EXPECT_TRUE(fresh.Admit("a", "ann", At(LoginThrottle::kOtherWaySeconds)).ok());
  fresh.Failed("a", "ann", At(LoginThrottle::kOtherWaySeconds), LoginOver::kTls);
  EXPECT_FALSE(fresh.Admit("a", "ann", At(LoginThrottle::kOtherWaySeconds)).ok());
  LoginThrottle often;
  for (const LoginOver over :
       {LoginOver::kTls, LoginOver::kPlain, LoginOver::kPlain, LoginOver::kPlain}) {
    often.Failed("a", "ann", At(0), over);
  }
  EXPECT_FALSE(often.Admit("a", "ann", At(0)).ok());
}

TEST(LoginThrottle, ByAddressAndByRole) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  EXPECT_TRUE(throttle.Admit("b", "ann", At(0)).ok()) << "nobody is locked out from elsewhere";
  throttle.Failed("b", "eve", At(0));
  EXPECT_TRUE(throttle.Admit("b", "ann", At(0)).ok()) << "whoever else fails there";
  throttle.Failed("b", "ann", At(0));
  EXPECT_FALSE(throttle.Admit("b", "ann", At(0)).ok()) << "the same role, by one who guesses, too";
  EXPECT_TRUE(throttle.Admit("b", "bob", At(0)).ok());
}

TEST(LoginThrottle, AddressesOfOneNetworkAreOne) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("2001:db8:1:2::" + std::to_string(i), "ann", At(0));
  }
  EXPECT_FALSE(throttle.Admit("2001:db8:1:2:ffff::1", "ann", At(0)).ok());
  EXPECT_TRUE(throttle.Admit("2001:db8:1:3::1", "ann", At(0)).ok());
  EXPECT_TRUE(throttle.Admit("::ffff:10.0.0.1", "ann", At(0)).ok());
}

// An office behind one address, and a stranger in it.
TEST(LoginThrottle, OthersAtTheAddressDoNotWait) {
  LoginThrottle throttle;
  throttle.Succeeded("a", "known");
  for (int round = 0; round < 25; ++round) {
    const TimePoint now = At(round);
    throttle.Failed("a", "eve", now);
    throttle.Failed("a", "root", now);
    const std::string other = "user" + std::to_string(round);
    EXPECT_TRUE(throttle.Admit("a", other, now).ok()) << round;
    throttle.Succeeded("a", other);
    EXPECT_TRUE(throttle.Admit("a", "known", now).ok()) << round;
  }
  EXPECT_FALSE(throttle.Admit("a", "eve", At(25)).ok());
}

TEST(LoginThrottle, WhoTriesManyRolesWaits) {
  LoginThrottle throttle;
  throttle.Succeeded("a", "known");
  for (int i = 0; i < LoginThrottle::kFreeRoles; ++i) {
    EXPECT_TRUE(throttle.Admit("a", "role" + std::to_string(i), At(0)).ok()) << i;
    throttle.Failed("a", "role" + std::to_string(i), At(0));
  }
  EXPECT_FALSE(throttle.Admit("a", "another", At(0.4)).ok());
  EXPECT_TRUE(throttle.Admit("a", "known", At(0.4)).ok());
  EXPECT_TRUE(throttle.Admit("b", "another", At(0.4)).ok());
  EXPECT_TRUE(throttle.Admit("a", "another", At(0.5)).ok());
  EXPECT_FALSE(throttle.Admit("a", "one more", At(0.5)).ok()) << "one at a time";
}

TEST(LoginThrottle, ALoginOfTheirOwnDoesNotClearAGuesser) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  throttle.Succeeded("a", "bob");
  EXPECT_FALSE(throttle.Admit("a", "ann", At(0)).ok());
  throttle.Succeeded("a", "ann");
  EXPECT_FALSE(throttle.Admit("a", "ann", At(0)).ok()) << "who guesses there waits still";
  EXPECT_TRUE(throttle.Admit("b", "ann", At(0)).ok());
}

TEST(LoginThrottle, ARightLoginMakesNobodyWait) {
  LoginThrottle throttle;
  for (int i = 0; i < 5; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(throttle.Admit("a", "bob", At(3)).ok()) << i;
    throttle.Succeeded("a", "bob");
  }
}

TEST(LoginThrottle, WhoWasQuietBeginsAnew) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  throttle.Failed("a", "ann", At(1 + LoginThrottle::kForgetSeconds));
  EXPECT_TRUE(throttle.Admit("a", "ann", At(1 + LoginThrottle::kForgetSeconds)).ok());
}

TEST(LoginThrottle, FailuresThatAreForgottenMakeNobodyWait) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  const TimePoint later = At(1 + LoginThrottle::kForgetSeconds);
  EXPECT_TRUE(throttle.Admit("a", "ann", later).ok());
  EXPECT_TRUE(throttle.Admit("a", "ann", later).ok()) << "a pool opens several at once";
}

TEST(LoginThrottle, ALoginThatFailsForAnotherReasonLetsTheNextOneTry) {
  LoginThrottle throttle;
  for (int i = 0; i < 10; ++i) {
    throttle.Failed("a", "ann", At(0));
  }
  EXPECT_TRUE(throttle.Admit("a", "ann", At(31)).ok());
  EXPECT_FALSE(throttle.Admit("a", "ann", At(31)).ok()) << "one at a time";
  throttle.Undecided("a", "ann");
  EXPECT_TRUE(throttle.Admit("a", "ann", At(31)).ok());
  EXPECT_FALSE(throttle.Admit("a", "ann", At(31)).ok()) << "still one at a time";
}

TEST(LoginThrottle, MadeUpNamesPushOutTheOldestOnly) {
  LoginThrottle throttle;
  for (size_t i = 0; i < 2 * LoginThrottle::kMaxKept; ++i) {
    throttle.Failed("a", "role" + std::to_string(i), At(static_cast<double>(i) / 1000));
  }
  EXPECT_FALSE(throttle.Admit("a", "x", At(20)).ok()) << "who guesses is known still";
}

}  // namespace
}  // namespace sluice::server
