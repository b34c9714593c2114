#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "server/statements/session.h"
#include "server/statements/statement.h"
#include "tests/support/postgres_server.h"
#include "tests/support/recording_sink.h"

// The SQL in a hint is run: put into the statement, it lets the statement through.
namespace sluice::server {
namespace {

constexpr char kBase[] =
    "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90)"
    " SELECT i AS x, 2 * i AS y, CASE WHEN i = 7 THEN NULL ELSE 2.5 * i END AS maybe,"
    " CASE WHEN i = 7 THEN NULL ELSE 2 END AS weight, CASE WHEN i = 7 THEN -1 ELSE 2 END AS amount,"
    " CASE WHEN i = 7 THEN 0 ELSE 2 END AS zero, CASE WHEN i = 7 THEN NULL ELSE '2' END AS "
    "text_weight,"
    " CASE WHEN i = 7 THEN 'it''s' ELSE '2' END AS dirty, CASE WHEN i = 7 THEN ' ' ELSE '2' END AS "
    "blank,"
    " CASE WHEN i = 7 THEN NULL ELSE i / 9 END AS query, i % 3 AS grade,"
    " CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END AS letter,"
    " CASE WHEN i = 7 THEN 'O''Hara' WHEN i % 2 = 0 THEN 'a' ELSE 'b' END AS odd_letter,"
    " CASE WHEN i = 7 THEN 5 ELSE i % 3 END AS odd_grade,"
    " '$4,0' || (9 + i) || '.93' AS dollars,"
    " '1.0' || (9 + i) || ',5' AS german, '1,0' || (9 + i) || '.5' AS english FROM n";

class HintsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string url = database_.url();
    if (std::string_view(GetParam()) == "sqlite") {
      std::string pattern = ::testing::TempDir() + "/sluice-hints-XXXXXX";
      folder_ = mkdtemp(pattern.data());
      url = "sqlite:" + (folder_ / "test.db").string();
    } else if (url.empty()) {
      GTEST_SKIP() << "no PostgreSQL server";
    }
    opened_ = catalog::OpenDatabase(url).value();
    ASSERT_TRUE(Run(kBase).ok());
  }
  void TearDown() override {
    opened_ = {};
    if (!folder_.empty()) {
      std::filesystem::remove_all(folder_);
    }
  }
  Status Run(const std::string& sql, RecordingSink* sink = nullptr) {
    Session session(*opened_.source, *opened_.catalog, "tester");
    RecordingSink own;
    return RunScript(sql, session, sink == nullptr ? own : *sink);
  }
  std::string HintOf(const std::string& sql) {
    const Status status = Run(sql);
    EXPECT_FALSE(status.ok()) << sql;
    return status.ok() ? "" : status.diagnostics().back().hint;
  }
  // The statement is the select with the rest of it.
  void ExpectRowsLeftOut(const std::string& select, const std::string& rest) {
    SCOPED_TRACE(select + rest);
    const std::string hint = HintOf(select + rest);
    static const std::regex kKept("leave such rows out: (SELECT .*? WHERE .*?)(; .*)?");
    static const std::regex kShown(".*; (SELECT .*) shows them");
    std::smatch kept;
    ASSERT_TRUE(std::regex_match(hint, kept, kKept)) << hint;
    const Status again = Run(kept[1].str() + rest);
    EXPECT_TRUE(again.ok()) << hint << "\n" << again.ToString();
    std::smatch shown;
    if (std::regex_match(hint, shown, kShown)) {
      RecordingSink rows;
      const Status shows = Run(shown[1].str(), &rows);
      EXPECT_TRUE(shows.ok()) << hint << "\n" << shows.ToString();
      EXPECT_EQ(rows.rows.size(), 1) << hint;
    }
  }
  // `column`: computed by the hint's expression instead.
  void ExpectComputed(const std::string& column, const std::string& rest) {
    SCOPED_TRACE(column + rest);
    const std::string hint = HintOf("SELECT x, " + column + rest);
    static const std::regex kExpression("(?:select )?((?:CAST|COALESCE)\\(.*\\))( gives .*)?");
    std::smatch expression;
    ASSERT_TRUE(std::regex_match(hint, expression, kExpression)) << hint;
    std::string others = column;
    others.replace(0, others.rfind(' ') + 1, "");
    const std::string before = column.substr(0, column.size() - others.size());
    const Status again = Run("SELECT x, " + before + expression[1].str() + " AS " + others + rest);
    EXPECT_TRUE(again.ok()) << hint << "\n" << again.ToString();
  }

  sluice::testing::PostgresTestDatabase database_;
  std::filesystem::path folder_;
  catalog::Database opened_;
};

TEST_P(HintsTest, RowsWithoutALabelAreLeftOut) {
  ExpectRowsLeftOut("SELECT x, maybe FROM t", " TO TRAIN LinearRegressor LABEL maybe INTO a");
  ExpectRowsLeftOut("SELECT x, maybe + 1 AS \"Other y\" FROM t -- computed\n",
                    " TO TRAIN LinearRegressor LABEL \"Other y\" INTO b");
  const std::string infinite =
      std::string_view(GetParam()) == "sqlite" ? "9e999" : "CAST('Infinity' AS double precision)";
  ExpectRowsLeftOut("SELECT x, CASE WHEN x = 7 THEN " + infinite + " ELSE y END AS y FROM t",
                    " TO TRAIN LinearRegressor LABEL y INTO c");
}

TEST_P(HintsTest, RowsOfAnEvaluationAreLeftOut) {
  ASSERT_TRUE(Run("SELECT x, y FROM t TO TRAIN LinearRegressor LABEL y INTO numbers;"
                  "SELECT x, letter FROM t TO TRAIN LinearClassifier LABEL letter INTO letters;"
                  "SELECT x, grade FROM t TO TRAIN LinearClassifier LABEL grade INTO grades")
                  .ok());
  ExpectRowsLeftOut("SELECT x, maybe AS y FROM t", " TO EVALUATE numbers LABEL y");
  ExpectRowsLeftOut("SELECT x, blank AS y FROM t", " TO EVALUATE numbers LABEL y");
  ExpectRowsLeftOut("SELECT x, odd_letter AS letter FROM t", " TO EVALUATE letters LABEL letter");
  ExpectRowsLeftOut("SELECT x, odd_grade AS grade FROM t", " TO EVALUATE grades LABEL grade");
}

TEST_P(HintsTest, RowsThatAModelCannotReadAreLeftOut) {
  ASSERT_TRUE(Run("SELECT x, zero, y FROM t TO TRAIN LinearRegressor LABEL y INTO numbers").ok());
  ExpectRowsLeftOut("SELECT x, dirty AS zero FROM t", " TO PREDICT p.y USING numbers");
}

TEST_P(HintsTest, WeightsAndExposuresAreCorrected) {
  const std::string weighted = " FROM t TO TRAIN LinearRegressor WITH model.weight_column=";
  ExpectRowsLeftOut("SELECT x, y, amount FROM t",
                    " TO TRAIN LinearRegressor WITH model.weight_column=amount LABEL y INTO a");
  ExpectComputed("y, weight", weighted + "weight LABEL y INTO c");
  ExpectComputed("y, text_weight", weighted + "text_weight LABEL y INTO d");
  for (const char* const exposure : {"amount", "zero", "weight"}) {
    ExpectRowsLeftOut(
        std::string("SELECT x, y, ") + exposure + " FROM t",
        std::string(" TO TRAIN DNNRegressor WITH model.hidden_units=[2], train.epoch=1, "
                    "model.loss='poisson', model.exposure_column='") +
            exposure + "' LABEL y INTO e_" + exposure);
  }
}

TEST_P(HintsTest, RowsWithoutAGroupAreLeftOut) {
  ExpectRowsLeftOut("SELECT x, query, grade FROM t",
                    " TO TRAIN xgboost.gbtree WITH objective='rank:pairwise', "
                    "group_column='query', train.num_boost_round=2 LABEL grade INTO m");
}

TEST_P(HintsTest, LabelsInASpellingOfTheirOwnAreCast) {
  for (const char* const column : {"dollars", "german", "english"}) {
    ExpectComputed(column, std::string(" FROM t TO TRAIN LinearRegressor LABEL ") + column +
                               " INTO m_" + column);
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, HintsTest, ::testing::Values("sqlite", "postgresql"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace sluice::server
