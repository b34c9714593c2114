#include "planner/leaks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sluice::planner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A table of numbers whose last column is the label.
class Leaks : public ::testing::Test {
 protected:
  void Column(const std::string& name, const std::vector<Value>& cells) {
    schema_.columns.push_back({name, DataType::kDouble, ""});
    statistics_.sample.resize(cells.size());
    for (size_t row = 0; row < cells.size(); ++row) {
      statistics_.sample[row].push_back(cells[row]);
    }
  }
  std::vector<double> Random(double most, double digits = 1e3) {
    std::uniform_real_distribution<double> numbers(0, most);
    std::vector<double> column;
    for (int row = 0; row < 500; ++row) {
      column.push_back(std::round(numbers(random_) * digits) / digits);
    }
    return column;
  }
  void Column(const std::string& name, const std::vector<double>& numbers) {
    Column(name, std::vector<Value>(numbers.begin(), numbers.end()));
  }
  std::vector<std::string> Find(bool classes) {
    std::vector<size_t> features(schema_.columns.size() - 1);
    std::iota(features.begin(), features.end(), size_t{0});
    return FindLeaks({schema_, statistics_, features.size(), classes, features});
  }

  std::mt19937_64 random_{1};
  Schema schema_;
  catalog::SelectStatistics statistics_;
};

TEST_F(Leaks, ASumOfThreeColumns) {
  const auto a = Random(10), b = Random(30), c = Random(20), other = Random(10);
  std::vector<double> total;
  for (size_t row = 0; row < a.size(); ++row) {
    total.push_back(std::round((a[row] + b[row] - c[row]) * 100) / 100);  // cents
  }
  Column("a", a);
  Column("b", b);
  Column("other", other);
  Column("c", c);
  Column("total", total);
  EXPECT_THAT(Find(false), ElementsAre("a + b - c is total in 100.0 % of the rows, up to rounding: "
                                       "are all known before total is? features.exclude=[a, b, c] "
                                       "leaves them out"));
}

TEST_F(Leaks, MissingTermsAreNone) {
  const auto a = Random(10), b = Random(30), c = Random(20);
  std::vector<Value> holes;
  std::vector<double> total;
  for (size_t row = 0; row < a.size(); ++row) {
    holes.push_back(row % 3 == 0 ? Value() : Value(b[row]));
    total.push_back(a[row] + c[row] + (row % 3 == 0 ? 0 : b[row]));
  }
  Column("a", a);
  Column("b", holes);
  Column("c", c);
  Column("total", total);
  EXPECT_THAT(Find(false), ElementsAre(HasSubstr("a + b + c is total")));
}

TEST_F(Leaks, NoSum) {
  const auto a = Random(10), b = Random(30), c = Random(20), noise = Random(1);
  std::vector<double> weighted, noisy;
  for (size_t row = 0; row < a.size(); ++row) {
    weighted.push_back(2 * a[row] + 0.7 * b[row] + c[row]);
    noisy.push_back(a[row] + b[row] + c[row] + noise[row]);
  }
  for (const auto& label : {weighted, noisy}) {
    schema_ = {};
    statistics_ = {};
    Column("a", a);
    Column("b", b);
    Column("c", c);
    Column("y", label);
    EXPECT_THAT(Find(false), IsEmpty());
  }
}

TEST_F(Leaks, ANumberThatIsFilledInWithTheEvent) {
  const auto a = Random(10), days = Random(300);
  std::vector<Value> closed_after, y;
  for (size_t row = 0; row < a.size(); ++row) {
    const bool closed = row % 4 == 0;
    y.emplace_back(int64_t{closed});
    closed_after.push_back(closed ? Value(days[row]) : Value());
  }
  Column("a", a);
  Column("closed_after", closed_after);
  Column("y", y);
  EXPECT_THAT(Find(true),
              ElementsAre("whether closed_after is NULL tells y (in 100.0 % of the rows): is it "
                          "known before y is? features.exclude=[closed_after] leaves it out"));
}

TEST_F(Leaks, OrdinaryNulls) {
  const auto a = Random(10);
  std::vector<Value> holes, y;
  for (size_t row = 0; row < a.size(); ++row) {
    y.emplace_back(int64_t{row % 2 == 0});
    holes.push_back(row % 2 == 0 && row % 5 > 0 ? Value() : Value(a[row]));
  }
  Column("holes", holes);
  Column("y", y);
  EXPECT_THAT(Find(true), IsEmpty());
}

}  // namespace
}  // namespace sluice::planner
