#include "planner/number_style.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

namespace sluice::planner {
namespace {

TEST(NumberStyle, OneCellThatCanOnlyBeReadOneWayDecides) {
  EXPECT_EQ(ThousandsOf({"1.234,50", "3,25"}), ".");
  EXPECT_EQ(ThousandsOf({"0,05", "3,25", ""}), ".");
  EXPECT_EQ(ThousandsOf({"1,234.50", "950.25"}), ",");
  EXPECT_EQ(ThousandsOf({"1,050", "2,900", "1,000,000"}), ",");
}

TEST(NumberStyle, WhatMayBeAListStaysOne) {
  EXPECT_EQ(ThousandsOf({"1,5", "2,7", "3,9"}), "");
  EXPECT_EQ(ThousandsOf({"1,2,3", "4,5,6"}), "");
  EXPECT_EQ(ThousandsOf({"255,255,254", "128,128,127"}), "");
  EXPECT_EQ(ThousandsOf({"3", "1,5", "2,7,11"}), "");
  EXPECT_EQ(ThousandsOf({"1.5", "2.5"}), "");
  EXPECT_EQ(ThousandsOf({"1.234", "2.345"}), "");
  EXPECT_EQ(ThousandsOf({"a", "1.234,5"}), "");
  EXPECT_EQ(ThousandsOf({"", " "}), "");
}

TEST(NumberStyle, ManyCellsDecideTogether) {
  std::vector<std::string> prices, pairs, tags;
  for (int i = 0; i < 200; ++i) {
    prices.push_back(fmt::format("{},{}", i % 37, i * 7 % 10));
    pairs.push_back(fmt::format("{},{}", i % 37, i % 3));
    tags.push_back(i % 4 == 0 ? fmt::format("{}", i) : fmt::format("{},{}", i, i * 7 % 200));
  }
  EXPECT_EQ(ThousandsOf(prices), ".");
  EXPECT_EQ(ThousandsOf(pairs), "");
  EXPECT_EQ(ThousandsOf(tags), "");
  for (int i = 0; i < 200; ++i) {
    prices[static_cast<size_t>(i)] =
        i % 10 == 0 ? fmt::format("{}", i) : fmt::format("{},{}", i, i % 10);
  }
  EXPECT_EQ(ThousandsOf(prices), ".");
}

}  // namespace
}  // namespace sluice::planner
