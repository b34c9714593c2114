#include "planner/odd_cells.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/features/cell_format.h"

namespace sluice::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

bool IsNumber(const std::string& text) {
  return models::ParseNumber(text).has_value();
}

std::vector<std::string> Numbers(size_t count) {
  std::vector<std::string> cells;
  for (size_t i = 0; i < count; ++i) {
    cells.push_back(std::to_string(i * 7919 % 10'007));
  }
  return cells;
}

std::vector<std::string> With(std::vector<std::string> cells, const std::string& odd,
                              size_t times) {
  for (size_t i = 0; i < times; ++i) {
    cells[(2 * i + 1) * cells.size() / (2 * times)] = odd;
  }
  return cells;
}

TEST(OddCells, AFewAreAccidents) {
  const auto one = FindOdd(With(Numbers(50'000), "abc", 1), IsNumber);
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->present, 50'000U);
  EXPECT_THAT(one->texts, ElementsAre(Pair("abc", 1U)));
  EXPECT_TRUE(FindOdd(With(Numbers(1'000), "abc", 20), IsNumber).has_value());
  EXPECT_TRUE(FindOdd(With(Numbers(1'000), "abc", 50), IsNumber).has_value());
}

TEST(OddCells, BlankCellsAndWordsForNoneAreNeitherOddNorPresent) {
  const auto odd = FindOdd(With(With(Numbers(100), "N/A", 30), "", 20), IsNumber);
  ASSERT_TRUE(odd.has_value());
  EXPECT_TRUE(odd->texts.empty());
  EXPECT_LE(odd->present, 80U);
}

TEST(OddCells, ManyMeanThatTheColumnIsOfAnotherKind) {
  std::vector<std::string> cells = Numbers(1'000);
  for (size_t i = 0; i < 100; ++i) {
    cells[10 * i] = "(" + cells[10 * i] + ")";
  }
  EXPECT_FALSE(FindOdd(cells, IsNumber).has_value());
  EXPECT_FALSE(FindOdd({"up", "down", "12"}, IsNumber).has_value());
}

TEST(OddCells, NamesOfDigitsAndLettersSayThatNumbersAreNamesToo) {
  EXPECT_FALSE(FindOdd(With(Numbers(1'000), "13a", 20), IsNumber).has_value());
  EXPECT_TRUE(FindOdd(With(Numbers(1'000), "13a", 1), IsNumber).has_value());
}

TEST(OddCells, FewDistinctNumbersAreCategories) {
  std::vector<std::string> cells;
  for (size_t i = 0; i < 1'000; ++i) {
    cells.push_back(std::to_string(i % 5));
  }
  EXPECT_FALSE(FindOdd(With(cells, "abc", 1), IsNumber).has_value());
}

TEST(OddCells, AFrequentWordIsMeant) {
  const auto odd = FindOdd(With(Numbers(1'000), "free", 250), IsNumber);
  ASSERT_TRUE(odd.has_value());
  EXPECT_THAT(FrequentOnes(*odd), ElementsAre("free"));
  EXPECT_THAT(FrequentOnes(*FindOdd(With(Numbers(1'000), "free", 2), IsNumber)), ElementsAre());
}

TEST(OddCells, ASampleMayLackWhatIsCommon) {
  EXPECT_FALSE(FindOdd(Numbers(1'000), IsNumber, {{"12", 0.5}, {"12 km", 0.5}}).has_value());
  EXPECT_TRUE(FindOdd(Numbers(1'000), IsNumber, {{"12", 0.9}, {"12 km", 0.01}}).has_value());
}

TEST(OddCells, ThreeAreShown) {
  std::vector<std::string> cells = Numbers(1'000);
  cells[10] = cells[20] = "a";
  cells[30] = "b";
  cells[40] = "c";
  cells[50] = "d";
  EXPECT_EQ(ShownOdd(*FindOdd(cells, IsNumber)), "'a', 'b', 'c' (5 of 1000 looked at)");
}

}  // namespace
}  // namespace sluice::planner
