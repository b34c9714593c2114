#include "server/sample/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace sluice::server {
namespace {

struct SampleRows {
  RowBatch batch;
  std::vector<double> probabilities;
};

SampleRows Make(const SampleGenerator& generator, int64_t first, size_t rows) {
  SampleRows made;
  generator.Fill(first, rows, &made.batch, &made.probabilities);
  return made;
}

std::vector<Value> RowOf(const RowBatch& batch, size_t row) {
  std::vector<Value> values;
  for (const RowBatch::Column& column : batch.columns) {
    values.push_back(column.ValueAt(row));
  }
  return values;
}

class SampleOf : public ::testing::TestWithParam<const char*> {};

TEST_P(SampleOf, RowDependsOnSeedAndNumberAlone) {
  const auto generator = MakeSample(GetParam(), 7);
  ASSERT_TRUE(generator.ok());
  const SampleRows whole = Make(**generator, 0, 300);
  const SampleRows part = Make(**generator, 250, 50);
  for (size_t r = 0; r < 50; ++r) {
    EXPECT_EQ(RowOf(part.batch, r), RowOf(whole.batch, 250 + r));
  }
  const auto other = MakeSample(GetParam(), 8);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(RowOf(Make(**other, 0, 1).batch, 0), RowOf(whole.batch, 0));
}

// The printed AUC is what the true probabilities actually reach on the drawn labels.
TEST_P(SampleOf, BayesAucIsThatOfTheTrueProbabilities) {
  constexpr size_t kRows = 40'000;
  const auto generator = MakeSample(GetParam(), 1);
  ASSERT_TRUE(generator.ok());
  const SampleRows made = Make(**generator, 0, kRows);
  const std::string label = std::string(GetParam()) == "census" ? "income" : "label";
  const size_t column = (*generator)->schema().Find(label).value();
  std::vector<std::pair<double, bool>> scored;
  BayesAuc bayes;
  for (size_t r = 0; r < kRows; ++r) {
    const Value value = made.batch.columns[column].ValueAt(r);
    scored.emplace_back(made.probabilities[r],
                        value == Value(std::string(">50K")) || value == Value(int64_t{1}));
    bayes.Add(made.probabilities[r]);
  }
  std::sort(scored.begin(), scored.end());
  double ranks = 0;
  double positives = 0;
  for (size_t i = 0; i < scored.size(); ++i) {
    if (scored[i].second) {
      ranks += static_cast<double>(i) + 1;
      positives += 1;
    }
  }
  const double auc = (ranks - positives * (positives + 1) / 2) / (positives * (kRows - positives));
  EXPECT_NEAR(bayes.Value(), auc, 0.01);
  EXPECT_GT(bayes.Value(), 0.75);
  EXPECT_LT(bayes.Value(), 0.97) << "a task that can be learnt perfectly tells nothing";
  EXPECT_GT(positives / kRows, 0.1);
  EXPECT_LT(positives / kRows, 0.4);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SampleOf, ::testing::Values("census", "clicks"));

TEST(Sample, CensusLooksLikeAdult) {
  const auto generator = MakeCensusSample(1);
  constexpr size_t kRows = 20'000;
  const SampleRows made = Make(*generator, 0, kRows);
  const Schema& schema = generator->schema();
  ASSERT_EQ(schema.columns.size(), 15U);
  std::map<std::string, double> nulls;
  std::map<std::string, std::set<std::string>> values;
  for (size_t c = 0; c < schema.columns.size(); ++c) {
    for (size_t r = 0; r < kRows; ++r) {
      nulls[schema.columns[c].name] += made.batch.columns[c].null[r];
      if (schema.columns[c].type == DataType::kText && made.batch.columns[c].null[r] == 0) {
        values[schema.columns[c].name].emplace(made.batch.columns[c].texts[r]);
      }
    }
  }
  EXPECT_EQ(values["education"].size(), 16U);
  EXPECT_EQ(values["occupation"].size(), 14U);
  EXPECT_EQ(values["income"], (std::set<std::string>{"<=50K", ">50K"}));
  EXPECT_NEAR(nulls["workclass"] / kRows, 0.056, 0.01);
  EXPECT_EQ(nulls["workclass"], nulls["occupation"]) << "who has no known class has no known job";
  EXPECT_EQ(nulls["age"], 0);
  EXPECT_EQ(nulls["income"], 0);
}

TEST(Sample, UnknownKindIsTold) {
  EXPECT_EQ(MakeSample("iris", 1).status().message(), "no sample 'iris'");
}

TEST(BayesAuc, IsAHalfWhenNothingIsKnown) {
  BayesAuc auc;
  EXPECT_DOUBLE_EQ(auc.Value(), 0.5);
  for (int i = 0; i < 10; ++i) {
    auc.Add(0.3);
  }
  EXPECT_DOUBLE_EQ(auc.Value(), 0.5);
  BayesAuc certain;
  certain.Add(0.0);
  certain.Add(1.0);
  EXPECT_NEAR(certain.Value(), 1.0, 1e-9);
}

}  // namespace
}  // namespace sluice::server
