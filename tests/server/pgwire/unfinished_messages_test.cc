#include "server/pgwire/unfinished_messages.h"

#include <gtest/gtest.h>

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(UnfinishedMessages, ARoleHasNoMoreThanIsLeftForOthers) {
  UnfinishedMessages all(100 * kMiB);
  UnfinishedMessages::Charge ann(all, "ann");
  UnfinishedMessages::Charge ann_too(all, "ann");
  UnfinishedMessages::Charge bob(all, "bob");
  EXPECT_FALSE(ann.Set(51 * kMiB).ok());
  EXPECT_TRUE(ann.Set(30 * kMiB).ok());
  EXPECT_EQ(ann_too.Set(21 * kMiB).sqlstate(), "53200");
  EXPECT_TRUE(ann_too.Set(20 * kMiB).ok());
  EXPECT_FALSE(bob.Set(26 * kMiB).ok());
  EXPECT_TRUE(bob.Set(25 * kMiB).ok());
}

TEST(UnfinishedMessages, WhatIsReadOrClosedCountsNoMore) {
  UnfinishedMessages all(100 * kMiB);
  UnfinishedMessages::Charge ann(all, "ann");
  {
    UnfinishedMessages::Charge gone(all, "ann");
    EXPECT_TRUE(gone.Set(50 * kMiB).ok());
    EXPECT_FALSE(ann.Set(kMiB).ok());
    EXPECT_TRUE(gone.Set(0).ok());
    EXPECT_TRUE(ann.Set(50 * kMiB).ok());
    EXPECT_TRUE(ann.Set(10 * kMiB).ok());
    EXPECT_TRUE(gone.Set(40 * kMiB).ok());
  }
  EXPECT_TRUE(ann.Set(50 * kMiB).ok());
}

TEST(UnfinishedMessages, SmallOnesAreNotCounted) {
  UnfinishedMessages none(0);
  UnfinishedMessages::Charge ann(none, "ann");
  EXPECT_TRUE(ann.Set(64 << 10).ok());
  EXPECT_FALSE(ann.Set((64 << 10) + 1).ok());
}

}  // namespace
}  // namespace sluice::server::pgwire
