#include "planner/number_centre.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace sluice::planner {
namespace {

std::vector<long double> From(long double first, long double step, int count) {
  std::vector<long double> numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(first + step * i);
  }
  return numbers;
}

TEST(NumberCentre, OrdinaryNumbersStayAsTheyAre) {
  EXPECT_FALSE(FindCentre({}, true).has_value());
  EXPECT_FALSE(FindCentre(From(5e9L, 0, 10), true).has_value());
  EXPECT_FALSE(FindCentre(From(0, 1, 30), true).has_value());
  EXPECT_FALSE(FindCentre(From(1.0e9L, 1e6L, 30), true).has_value());
  EXPECT_FALSE(FindCentre(From(1990, 0.1L, 300), false).has_value());
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform;
  std::vector<long double> numbers(1'000);
  for (long double& number : numbers) {
    number = static_cast<long double>(uniform(random));
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_FALSE(FindCentre(numbers, false).has_value());
}

TEST(NumberCentre, IsTheMedianOfNumbersThatFloatsDoNotTellApart) {
  const auto ids = FindCentre(From(16'777'216, 1, 31), true);
  ASSERT_TRUE(ids.has_value());
  EXPECT_EQ(ids->offset, 16'777'216 + 15);
  EXPECT_EQ(ids->scale, 1);
  EXPECT_TRUE(FindCentre(From(9'007'199'254'740'992, 1, 30), true).has_value());
  EXPECT_TRUE(FindCentre(From(-1e9L, 0.5L, 30), false).has_value());
  std::vector<long double> with_zeros = From(1e9L, 1, 30);  // zeros stand for missing
  with_zeros.insert(with_zeros.begin(), 5, 0);
  EXPECT_TRUE(FindCentre(with_zeros, true).has_value());
}

TEST(NumberCentre, WhatFloatsCannotHoldIsScaledByAPowerOfTwo) {
  for (const long double step : {1e-49L, 1e-300L, 1e100L, 1e306L}) {
    const auto centre = FindCentre(From(0, step, 30), false);
    ASSERT_TRUE(centre.has_value());
    int exponent = 0;
    EXPECT_EQ(std::frexp(centre->scale, &exponent), 0.5);
    EXPECT_LT(15 * step * centre->scale, 2);
    EXPECT_GT(15 * step * centre->scale, 0.5);
  }
}

TEST(NumberCentre, RoundingIsNoDifference) {
  std::vector<long double> numbers;
  for (int i = 0; i < 30; ++i) {
    const double number = 0.3 + i;
    numbers.push_back(static_cast<long double>(number));
    numbers.push_back(static_cast<long double>(std::nextafter(number, 100)));
  }
  EXPECT_FALSE(FindCentre(numbers, false).has_value());
}

}  // namespace
}  // namespace sluice::planner
