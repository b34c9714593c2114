#include "server/pgwire/role_bytes.h"

#include <gtest/gtest.h>

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(RoleBytes, ARoleHasNoMoreThanIsLeftForOthers) {
  RoleBytes all(100 * kMiB);
  RoleBytes::Charge ann(all, "ann");
  RoleBytes::Charge ann_too(all, "ann");
  RoleBytes::Charge bob(all, "bob");
  EXPECT_FALSE(ann.Set(51 * kMiB).ok());
  EXPECT_TRUE(ann.Set(30 * kMiB).ok());
  EXPECT_EQ(ann_too.Set(21 * kMiB).sqlstate(), "53200");
  EXPECT_TRUE(ann_too.Set(20 * kMiB).ok());
  EXPECT_FALSE(bob.Set(26 * kMiB).ok());
  EXPECT_TRUE(bob.Set(25 * kMiB).ok());
}

TEST(RoleBytes, WhatIsReadOrClosedCountsNoMore) {
  RoleBytes all(100 * kMiB);
  RoleBytes::Charge ann(all, "ann");
  {
    RoleBytes::Charge gone(all, "ann");
    EXPECT_TRUE(gone.Set(50 * kMiB).ok());
    EXPECT_FALSE(ann.Set(kMiB).ok());
    EXPECT_TRUE(gone.Set(0).ok());
    EXPECT_TRUE(ann.Set(50 * kMiB).ok());
    EXPECT_TRUE(ann.Set(10 * kMiB).ok());
    EXPECT_TRUE(gone.Set(40 * kMiB).ok());
  }
  EXPECT_TRUE(ann.Set(50 * kMiB).ok());
}

TEST(RoleBytes, SmallOnesAreNotCounted) {
  RoleBytes none(0);
  RoleBytes::Charge ann(none, "ann");
  EXPECT_TRUE(ann.Set(64 << 10).ok());
  EXPECT_FALSE(ann.Set((64 << 10) + 1).ok());
}

}  // namespace
}  // namespace sluice::server::pgwire
