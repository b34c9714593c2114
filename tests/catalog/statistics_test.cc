#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "tests/catalog/both_databases.h"

namespace sluice::catalog {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

class StatisticsTest : public BothDatabases {
 protected:
  SelectStatistics Statistics(DataSource& from, std::string_view select,
                              const StatisticsOptions& options = {}) {
    const auto schema = from.Describe(select);
    EXPECT_TRUE(schema.ok()) << schema.status().ToString();
    auto statistics = from.Statistics(select, *schema, options);
    EXPECT_TRUE(statistics.ok()) << statistics.status().ToString();
    return statistics.ok() ? *statistics : SelectStatistics{};
  }
};

TEST_P(StatisticsTest, SmallTablesAreExact) {
  MakeNumbers(10);
  const SelectStatistics all = Statistics(source(), "SELECT id, even, third, half FROM t");
  EXPECT_EQ(all.rows, 10);
  EXPECT_TRUE(all.exact_rows);
  ASSERT_THAT(all.columns, SizeIs(4));
  const ColumnStatistics& id = all.columns[0];
  EXPECT_TRUE(id.exact);
  EXPECT_EQ(id.distinct, 10);
  EXPECT_EQ(id.min, 1);
  EXPECT_EQ(id.max, 10);
  EXPECT_DOUBLE_EQ(id.mean, 5.5);
  EXPECT_DOUBLE_EQ(id.standard_deviation, std::sqrt(8.25));
  EXPECT_TRUE(id.has_range);
  const ColumnStatistics& third = all.columns[2];
  EXPECT_FALSE(third.has_range);
  EXPECT_DOUBLE_EQ(third.null_fraction, 0.3);
  EXPECT_EQ(third.average_length, 2);
  EXPECT_TRUE(third.all_values);
  EXPECT_THAT(third.common_values, ElementsAre(Pair("v1", 0.4), Pair("v2", 0.3)));
  EXPECT_THAT(all.columns[1].common_values, ElementsAre(Pair("f", 0.5), Pair("t", 0.5)));
  EXPECT_EQ(all.columns[3].common_values[0].first, "0.5");
  ASSERT_THAT(all.sample, SizeIs(10));
  EXPECT_EQ(all.sample[9][0], Value(int64_t{10}));
}

// Otherwise 20,000 rows with a document each would not fit into memory.
TEST_P(StatisticsTest, DocumentsAreCountedAndNotKept) {
  const std::string_view select =
      postgres() ? "SELECT i % 40 AS i, (i % 40) || repeat('x', 1048576) AS t, 'k' || (i % 2) AS k "
                   "FROM generate_series(1, 80) i"
                 : "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 80) "
                   "SELECT i % 40 AS i, (i % 40) || printf('%.1048576c', 'x') AS t, "
                   "'k' || (i % 2) AS k FROM n";
  const SelectStatistics all = Statistics(source(), select);
  EXPECT_EQ(all.rows, 80);
  ASSERT_THAT(all.columns, SizeIs(3));
  EXPECT_EQ(all.columns[1].distinct, 40);
  EXPECT_THAT(all.columns[1].common_values, SizeIs(0));
  EXPECT_FALSE(all.columns[1].all_values);
  EXPECT_GT(all.columns[1].average_length, 1'048'576);
  EXPECT_THAT(all.columns[2].common_values, ElementsAre(Pair("k0", 0.5), Pair("k1", 0.5)));
  EXPECT_GE(all.sample.size(), 10U);
  EXPECT_LE(all.sample.size(), 34U);
  EXPECT_EQ(std::get<std::string>(all.sample[0][1]).size(), size_t{1} << 20);
}

TEST_P(StatisticsTest, LimitsAreKept) {
  MakeNumbers(3000);
  StatisticsOptions options;
  options.sample_rows = 100;
  options.common_values = 5;
  const SelectStatistics all = Statistics(source(), "SELECT id FROM t", options);
  EXPECT_TRUE(all.exact_rows);
  EXPECT_LE(all.sample.size(), 100U);
  EXPECT_GE(all.sample.size(), 50U);
  // Spread over the whole table, not only its beginning.
  EXPECT_GT(std::get<int64_t>(all.sample.back()[0]), 1500);
  EXPECT_THAT(all.columns[0].common_values, SizeIs(5));
  EXPECT_FALSE(all.columns[0].all_values);
}

// Rows that alternate, with whatever period, are sampled in the shares that they have.
TEST_P(StatisticsTest, AlternatingRowsAreSampledAlike) {
  MakeNumbers(12'000);
  for (const int64_t period : {2, 3, 8, 64}) {
    const SelectStatistics all =
        Statistics(source(), "SELECT id % " + std::to_string(period) + " FROM t");
    const auto first =
        std::count_if(all.sample.begin(), all.sample.end(),
                      [](const std::vector<Value>& row) { return row[0] == Value(int64_t{1}); });
    const double share = 1.0 / static_cast<double>(period);
    const auto rows = static_cast<double>(all.sample.size());
    EXPECT_NEAR(static_cast<double>(first) / rows, share, 5 * std::sqrt(share / rows)) << period;
  }
}

// One row in twenty has a value of its own, the others share one: few of the rare values are
// sampled.
TEST_P(StatisticsTest, ThereMayBeManyRareValues) {
  MakeNumbers(60000);
  StatisticsOptions options;
  options.exact_below_rows = 20'000;
  const SelectStatistics all =
      Statistics(source(), "SELECT CASE WHEN id % 20 = 0 THEN id ELSE 0 END AS x FROM t", options);
  EXPECT_FALSE(all.columns[0].exact);
  EXPECT_GE(all.columns[0].distinct_at_most, all.columns[0].distinct);
  EXPECT_GT(all.columns[0].distinct_at_most, 600);
  EXPECT_LE(all.columns[0].distinct_at_most, 60000);
  const SelectStatistics few = Statistics(source(), "SELECT id % 7 AS x FROM t", options);
  EXPECT_EQ(few.columns[0].distinct_at_most, 7);
}

TEST_P(StatisticsTest, LargeTablesAreSampled) {
  MakeNumbers(60000);
  StatisticsOptions options;
  options.exact_below_rows = 20'000;
  const SelectStatistics all = Statistics(source(), "SELECT * FROM t", options);
  EXPECT_FALSE(all.exact_rows);
  EXPECT_NEAR(static_cast<double>(all.rows), 60000, 3000);
  const ColumnStatistics& id = all.columns[0];
  EXPECT_FALSE(id.exact);
  EXPECT_NEAR(id.mean, 30000, 1500);
  EXPECT_NEAR(id.standard_deviation, 17320, 900);
  EXPECT_NEAR(id.distinct, 60000, 3000);
  EXPECT_LT(id.min, 1000);
  EXPECT_GT(id.max, 59000);
  const ColumnStatistics& third = all.columns[2];
  EXPECT_NEAR(third.null_fraction, 1 / 3.0, 0.02);
  EXPECT_EQ(third.distinct, 2);
  EXPECT_FALSE(third.all_values);
  EXPECT_THAT(all.sample, SizeIs(::testing::Gt(500)));
}

TEST_P(StatisticsTest, ValuesThatOnlyAnalyzeSawAreAdded) {
  if (!postgres()) {
    GTEST_SKIP() << "SQLite keeps no values";
  }
  // 400 values, sorted, so that a sample of blocks hits only some of them.
  Run("CREATE TABLE sorted AS SELECT 'value ' || (i / 250) AS v, i FROM generate_series(0, 99999) "
      "i");
  Run("ALTER TABLE sorted ALTER v SET STATISTICS 1000");
  StatisticsOptions options;
  options.exact_below_rows = 20'000;
  const SelectStatistics before = Statistics(source(), "SELECT v, i FROM sorted", options);
  Run("ANALYZE sorted");
  const SelectStatistics after = Statistics(source(), "SELECT v, i FROM sorted", options);
  EXPECT_LT(before.columns[0].common_values.size(), 380U);
  EXPECT_GT(after.columns[0].common_values.size(), 390U);
  EXPECT_GE(after.columns[0].distinct, 390);
  EXPECT_EQ(before.rows, after.rows);
  EXPECT_EQ(before.columns[1].mean, after.columns[1].mean);
}

TEST_P(StatisticsTest, AConditionCountsInTheEstimate) {
  MakeNumbers(100000);
  StatisticsOptions options;
  options.exact_below_rows = 20'000;
  const SelectStatistics some = Statistics(source(), "SELECT * FROM t WHERE even", options);
  EXPECT_NEAR(static_cast<double>(some.rows), 50000, 3000);
  EXPECT_EQ(some.columns[1].distinct, 1);
}

TEST_P(StatisticsTest, WhatCannotBeCutIsLookedAtFromTheFront) {
  MakeNumbers(1000);
  const SelectStatistics all =
      Statistics(source(), "SELECT a.id FROM t a JOIN t b ON a.id = b.id WHERE b.even");
  EXPECT_TRUE(all.exact_rows);
  EXPECT_EQ(all.rows, 500);
  StatisticsOptions options;
  options.exact_below_rows = 100;
  const SelectStatistics some =
      Statistics(source(), "SELECT a.id FROM t a JOIN t b ON a.id = b.id ORDER BY a.id", options);
  EXPECT_FALSE(some.exact_rows);
  EXPECT_GT(some.rows, 100);
}

TEST_P(StatisticsTest, NotANumberAndInfinityDoNotSpoilTheRange) {
  Run("CREATE TABLE odd (x double precision)");
  Run(postgres() ? "INSERT INTO odd VALUES (1), ('NaN'), ('Infinity'), (3), (NULL), (-0.0), (0)"
                 : "INSERT INTO odd VALUES (1), (NULL), (9e999), (3), (NULL), (-0.0), (0)");
  const SelectStatistics all = Statistics(source(), "SELECT x FROM odd");
  EXPECT_EQ(all.columns[0].max, 3);
  EXPECT_EQ(all.columns[0].min, 0);
  EXPECT_DOUBLE_EQ(all.columns[0].mean, 1);
  EXPECT_EQ(all.columns[0].distinct, postgres() ? 5 : 4);  // one zero only
}

TEST_P(StatisticsTest, AnEmptyTableHasNoStatistics) {
  Run("CREATE TABLE none (x integer, y text)");
  const SelectStatistics all = Statistics(source(), "SELECT * FROM none");
  EXPECT_EQ(all.rows, 0);
  EXPECT_TRUE(all.exact_rows);
  EXPECT_THAT(all.columns, SizeIs(2));
  EXPECT_FALSE(all.columns[0].has_range);
}

TEST_P(StatisticsTest, BothDatabasesGiveTheSameNumbers) {
  MakeNumbers(2000);
  const SelectStatistics here = Statistics(source(), "SELECT * FROM t");
  const auto memory = OpenDataSource("sqlite::memory:");
  ASSERT_TRUE(memory.ok()) << memory.status().ToString();
  for (const std::string sql :
       {"CREATE TABLE t (id integer PRIMARY KEY, even boolean, third text, half double precision)",
        "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 2000) SELECT i, i % 2 = 0, CASE WHEN i % 3 = 0 THEN NULL ELSE 'v' || (i % 3)"
        " END, i / 2.0 FROM n"}) {
    ASSERT_TRUE((*memory)->Execute(sql, nullptr, {}).ok());
  }
  const SelectStatistics there = Statistics(**memory, "SELECT * FROM t");
  EXPECT_EQ(here.rows, there.rows);
  EXPECT_EQ(here.sample, there.sample);
  for (size_t i = 0; i < here.columns.size(); ++i) {
    EXPECT_EQ(here.columns[i].mean, there.columns[i].mean);
    EXPECT_EQ(here.columns[i].standard_deviation, there.columns[i].standard_deviation);
    EXPECT_EQ(here.columns[i].distinct, there.columns[i].distinct);
    EXPECT_EQ(here.columns[i].common_values, there.columns[i].common_values);
  }
}

ON_BOTH_DATABASES(StatisticsTest);

}  // namespace
}  // namespace sluice::catalog
