#include "planner/column_spec.h"

#include <gtest/gtest.h>

#include <string>

#include "parser/parser.h"

namespace sluice::planner {
namespace {

using Kind = ColumnSpec::Kind;

Result<ColumnSpec> Read(const std::string& column) {
  auto parsed =
      parser::Parse("SELECT * FROM t TO TRAIN DNNClassifier COLUMN " + column + " LABEL c INTO m");
  if (!parsed.ok()) {
    return parsed.status();
  }
  return ReadColumn(std::get<parser::TrainStatement>(parsed->at(0)).columns.at(0).columns.at(0));
}

TEST(ColumnSpec, NamesKeepTheirCaseAndPatternsAreQuoted) {
  EXPECT_EQ(Read("MiXed")->name, "MiXed");
  EXPECT_FALSE(Read("MiXed")->pattern);
  EXPECT_TRUE(Read("INDICATOR('f1|f2')")->inner[0].pattern);
}

TEST(ColumnSpec, BucketsByBoundariesQuantilesByNumber) {
  EXPECT_EQ(Read("BUCKET(c, [-1.5, 0, 2])")->boundaries, (std::vector<double>{-1.5, 0, 2}));
  EXPECT_EQ(Read("BUCKET(c, 100)")->boundaries, (std::vector<double>{100}));  // SQLFlow's meaning
  EXPECT_EQ(Read("BUCKET(c, -0.5)")->boundaries, (std::vector<double>{-0.5}));
  EXPECT_EQ(Read("BUCKET(NUMERIC(c, 1), [1, 2])")->boundaries, (std::vector<double>{1, 2}));
  EXPECT_EQ(InnermostColumn(*Read("BUCKET(NUMERIC(c, 1), [1, 2])")).name, "c");
  EXPECT_EQ(Read("QUANTILE(c, 10)")->buckets, 10);
  EXPECT_TRUE(Read("QUANTILE(c, 10)")->boundaries.empty());
  EXPECT_FALSE(Read("QUANTILE(c, 1)").ok());
  EXPECT_FALSE(Read("QUANTILE(c, [1, 2])").ok());
  EXPECT_FALSE(Read("BUCKET(c, [])").ok());
  EXPECT_FALSE(Read("BUCKET(c, [1, 1])").ok());
}

TEST(ColumnSpec, EmbeddingsOfTensorsGetTheirCategory) {
  const auto sparse = Read("EMBEDDING(SPARSE(f, 10, ',', 'int', ':', 'float'), 8, mean, ones)");
  ASSERT_TRUE(sparse.ok()) << sparse.status().ToString();
  EXPECT_EQ(sparse->combiner, "mean");
  EXPECT_EQ(sparse->initializer, "ones");
  EXPECT_EQ(sparse->inner[0].kind, Kind::kWeighted);
  EXPECT_EQ(sparse->inner[0].inner[0].kind, Kind::kCategoryId);
  EXPECT_EQ(InnermostColumn(*sparse).name, "f");
}

TEST(ColumnSpec, OursBeyondSqlflow) {
  EXPECT_EQ(Read("NORMALIZE(c)")->kind, Kind::kNormalize);
  EXPECT_EQ(Read("STANDARDIZE(LOG(c))")->inner[0].kind, Kind::kLogarithm);
  EXPECT_EQ(Read("VOCABULARY(c, 100)")->buckets, 100);
  EXPECT_EQ(Read("vocabulary(c)")->buckets, 0);
}

TEST(ColumnSpec, CategoriesMayNameADelimiterAsInSqlflow) {
  for (const char* function : {"CATEGORY_ID", "SEQ_CATEGORY_ID", "CATEGORY_HASH"}) {
    EXPECT_TRUE(Read(std::string(function) + "(c, 512, COMMA)").ok()) << function;
    EXPECT_TRUE(Read(std::string(function) + "(DENSE(c, 1, \",\", string), 512, \"|\")").ok());
    EXPECT_FALSE(Read(std::string(function) + "(c, 512, 3)").ok()) << function;
  }
}

TEST(ColumnSpec, ErrorsQuoteTheCallAndSayWhatIsAllowed) {
  const auto wrong = Read("EMBEDDING(c, 0)");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().message(),
            "EMBEDDING(c, 0): the dimension must be an integer from 1 to 4096, not 0");
  EXPECT_EQ(wrong.status().diagnostics()[0].hint,
            "write EMBEDDING(category | column, dimension [, combiner [, initializer]])");
  EXPECT_EQ(Read("NUMERICAL(c)").status().diagnostics()[0].hint, "did you mean NUMERIC?");
  EXPECT_FALSE(Read("EMBEDDING(c, 8, max)").ok());
  EXPECT_FALSE(Read("EMBEDDING(c, 8, sum, random)").ok());
  EXPECT_FALSE(Read("CROSS([c], 8)").ok());
  EXPECT_FALSE(Read("WEIGHTED_CATEGORY(CATEGORY_ID(c, 8))").ok());
  EXPECT_FALSE(Read("DENSE(c, [0])").ok());
  EXPECT_FALSE(Read("DENSE(c, [1000, 1000, 1000])").ok());
}

}  // namespace
}  // namespace sluice::planner
