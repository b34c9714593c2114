#include "server/pgwire/embedded/fair_turns.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::server::pgwire {
namespace {

// Whose work gets a thread, in order.
std::string Started(FairTurns& turns) {
  std::string users;
  while (const auto turn = turns.Next()) {
    users += turn->user;
  }
  return users;
}

void Send(FairTurns& turns, const std::string& user, int times) {
  for (int i = 0; i < times; ++i) {
    turns.Wait(user, [](const std::string&) {});
  }
}

TEST(FairTurns, AUserHasHalfOfTheThreadsAtMost) {
  FairTurns turns(8);
  Send(turns, "a", 100);
  EXPECT_EQ(Started(turns), "aaaa");
  Send(turns, "b", 100);
  EXPECT_EQ(Started(turns), "bb");
  Send(turns, "c", 100);
  EXPECT_EQ(Started(turns), "c");
  Send(turns, "d", 1);
  EXPECT_EQ(Started(turns), "d");
  Send(turns, "e", 1);
  EXPECT_EQ(Started(turns), "");
  turns.End("a");  // one is free: for him who has none
  EXPECT_EQ(Started(turns), "e");
}

TEST(FairTurns, ThoseWhoWaitTakeTurns) {
  FairTurns turns(2);
  Send(turns, "a", 3);
  Send(turns, "b", 2);
  EXPECT_EQ(Started(turns), "ab");
  std::string order;
  for (std::string ends = "ab"; !ends.empty();) {
    turns.End(ends.substr(0, 1));
    ends.erase(0, 1);
    const std::string next = Started(turns);
    order += next;
    ends += next;
  }
  EXPECT_EQ(order, "aba");
  EXPECT_FALSE(turns.Next().has_value());
}

TEST(FairTurns, WorkOfAUserRunsInOrder) {
  FairTurns turns(2);
  std::string ran;
  for (const char c : std::string("123")) {
    turns.Wait("a", [&ran, c](const std::string&) { ran += c; });
  }
  while (const auto turn = turns.Next()) {
    turn->work(turn->user);
    turns.End("a");
  }
  EXPECT_EQ(ran, "123");
}

TEST(FairTurns, WhatWaitsMayWaitAsAnothers) {
  FairTurns turns(2);
  Send(turns, "a", 2);
  const FairTurns::Ticket last = turns.Wait("a", [](const std::string&) {});
  EXPECT_EQ(Started(turns), "a");
  EXPECT_TRUE(turns.Move("a", last, "b"));
  EXPECT_FALSE(turns.Move("a", last, "b"));
  EXPECT_EQ(Started(turns), "b");
  EXPECT_FALSE(turns.Move("b", last, "a"));
  EXPECT_FALSE(turns.Move("c", last, "a"));
  turns.End("b");
  turns.End("a");
  EXPECT_EQ(Started(turns), "a");
  const FairTurns::Ticket only = turns.Wait("d", [](const std::string&) {});
  EXPECT_TRUE(turns.Move("d", only, "a"));
  turns.End("a");
  EXPECT_EQ(Started(turns), "a");
}

}  // namespace
}  // namespace sluice::server::pgwire
