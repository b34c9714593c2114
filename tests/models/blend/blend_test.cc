#include "models/blend/blend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "models/blend/joined_transform.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

// Labels 0 and 1 and the predictions of three models: two that are wrong in different rows, and one
// that knows nothing.
struct Said {
  std::vector<double> labels;
  std::vector<double> one, other, nothing;

  explicit Said(size_t rows, float noise) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < rows; ++i) {
      const float label = random() % 2 == 0 ? 0.0F : 1.0F;
      const float sign = label > 0 ? 1.0F : -1.0F;
      const auto probability = [](float z) { return 1 / (1 + std::exp(-z)); };
      labels.push_back(label);
      one.push_back(probability(sign + noise * normal(random)));
      other.push_back(probability(sign + noise * normal(random)));
      nothing.push_back(0.5F);
    }
  }
  BlendRows Rows() const { return {Task::kBinary, 1, {one, other, nothing}, labels, {}, {}}; }
};

TEST(Blend, OfModelsThatErrApartIsBetterThanEither) {
  const Said said(2'000, 1.5F);
  const Blend blend = FitBlend(said.Rows(), 0);
  EXPECT_TRUE(blend.better);
  EXPECT_GT(blend.weights[0], 0.25);
  EXPECT_GT(blend.weights[1], 0.25);
  EXPECT_NEAR(std::accumulate(blend.weights.begin(), blend.weights.end(), 0.0), 1, 1e-9);
}

TEST(Blend, OfAModelWithItselfIsNoBetter) {
  const Said said(2'000, 1.5F);
  const BlendRows twice{Task::kBinary, 1, {said.one, said.one}, said.labels, {}, {}};
  EXPECT_FALSE(FitBlend(twice, 0).better);
}

// Rows that repeat each other, as those of one town: they are as many observations as towns. The
// other model is the first one with noise, so a blend of them is better by chance alone.
TEST(Blend, OfNeighboursThatAreAlikeIsJudgedByRuns) {
  constexpr uint32_t kRuns = 24, kTimes = 40;
  int by_rows = 0, by_runs = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<double> labels, one, other;
    std::vector<uint32_t> runs;
    for (uint32_t run = 0; run < kRuns; ++run) {
      const float off = normal(random);
      const float other_off = off + normal(random);
      for (uint32_t i = 0; i < kTimes; ++i) {
        labels.push_back(0);
        one.push_back(off);
        other.push_back(other_off);
        runs.push_back(run);
      }
    }
    BlendRows rows{Task::kRegression, 1, {one, other}, labels, {}, {}};
    by_rows += FitBlend(rows, 0).better ? 1 : 0;
    rows.runs = runs;
    by_runs += FitBlend(rows, 0).better ? 1 : 0;
  }
  EXPECT_GE(by_rows, 10);
  EXPECT_LE(by_runs, by_rows / 2);
}

// A blend of the two is a little better, which 120 rows hardly show: reason enough on rows of the
// same time, not for the time to come.
TEST(Blend, OfForecastsHasToWinByMore) {
  int among_themselves = 0, later = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<double> labels, one, other;
    for (int i = 0; i < 120; ++i) {
      const float known = normal(random);
      labels.push_back(known + normal(random));
      one.push_back(0.5F * known);
      other.push_back(known + normal(random));
    }
    BlendRows rows{Task::kRegression, 1, {one, other}, labels, {}, {}};
    among_themselves += FitBlend(rows, 0).better ? 1 : 0;
    rows.forecast = true;
    later += FitBlend(rows, 0).better ? 1 : 0;
  }
  EXPECT_GE(among_themselves, 16);
  EXPECT_LE(later, among_themselves / 2);
}

TEST(Blend, OfTwentyRowsProvesNothing) {
  EXPECT_FALSE(FitBlend(Said(20, 0.3F).Rows(), 0).better);
}

TEST(Blend, OfNumbersFindsTheMeanOfTwoOppositeErrors) {
  std::vector<double> labels, above, below;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 500; ++i) {
    const float error = normal(random);
    labels.push_back(static_cast<float>(i));
    above.push_back(labels.back() + error);
    below.push_back(labels.back() - error);
  }
  const BlendRows rows{Task::kRegression, 1, {above, below}, labels, {}, {}};
  const Blend blend = FitBlend(rows, 0);
  EXPECT_TRUE(blend.better);
  EXPECT_NEAR(blend.weights[0], 0.5, 1e-9);
  EXPECT_NEAR(BlendPredictions(rows, blend.weights)[17], 17, 1e-3);
}

// Prices: one of them is far from both models' predictions, and a little farther from their mean.
TEST(Blend, OfNumbersIsNotDecidedByOneRowFarOut) {
  std::vector<double> labels, one, other;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 4'000; ++i) {
    labels.push_back(0);
    one.push_back(normal(random));
    other.push_back(normal(random));
  }
  one[8] = 300;
  other[8] = 305;
  EXPECT_TRUE(FitBlend({Task::kRegression, 1, {one, other}, labels, {}, {}}, 0).better);
}

TEST(Blend, WeightsComeBackFromTheirBytes) {
  const std::string bytes = PackBlend({"first", "", "third"});
  const auto parts = UnpackBlend(bytes, 3);
  ASSERT_TRUE(parts.ok());
  EXPECT_EQ((*parts)[0], "first");
  EXPECT_EQ((*parts)[1], "");
  EXPECT_EQ((*parts)[2], "third");
}

TEST(Blend, BytesThatAreNotItsOwnAreRefused) {
  const std::string bytes = PackBlend({"first", "second"});
  EXPECT_FALSE(UnpackBlend(bytes, 3).ok());
  EXPECT_FALSE(UnpackBlend(bytes, 1).ok());
  EXPECT_FALSE(UnpackBlend("", 1).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(UnpackBlend(std::string_view(bytes).substr(0, size), 2).ok()) << size;
  }
  std::string huge = bytes;
  huge[11] = '\x7f';  // the last byte of the first size
  EXPECT_FALSE(UnpackBlend(huge, 2).ok());
}

ModelSpec NumbersOf(const std::vector<std::string>& columns) {
  ModelSpec spec;
  for (const std::string& column : columns) {
    InputColumn* input = spec.mutable_features()->add_inputs();
    input->set_name(column);
    input->set_type(static_cast<int32_t>(DataType::kDouble));
    Feature* feature = spec.mutable_features()->add_features();
    feature->set_name(column);
    feature->set_kind(Feature::NUMERIC);
    feature->set_scale(1);
    feature->add_inputs(static_cast<uint32_t>(spec.features().inputs_size() - 1));
  }
  return spec;
}

TEST(Blend, MembersReadOneListOfInputsAndSeeTheirOwn) {
  const ModelSpec first = NumbersOf({"a", "b"});
  const ModelSpec second = NumbersOf({"c", "b"});
  const ModelSpec blend = JoinModels({{&first, 0.6}, {&second, 0.4}});
  ASSERT_EQ(blend.features().inputs_size(), 3);
  std::vector<std::unique_ptr<FeatureTransform>> transforms;
  std::vector<const FeatureTransform*> members;
  for (const BlendMember& member : blend.members()) {
    auto made = FeatureTransform::Make(member.model().features(), FeatureTransform::Target::kTrees);
    ASSERT_TRUE(made.ok()) << made.status().ToString();
    transforms.push_back(*std::move(made));
    members.push_back(transforms.back().get());
  }
  const JoinedTransform joined(members);
  EXPECT_EQ(joined.ColumnNames(false), (std::vector<std::string>{"a", "b", "c"}));
  RowBatch rows;
  rows.Reset(Schema{{{"a", DataType::kDouble, ""},
                     {"b", DataType::kDouble, ""},
                     {"c", DataType::kDouble, ""}}},
             2);
  rows.rows = 2;
  for (size_t c = 0; c < 3; ++c) {
    rows.columns[c].null.assign(2, 0);
    rows.columns[c].doubles = {static_cast<double>(10 * c), static_cast<double>(10 * c + 1)};
  }
  FeatureBatch batch, part;
  ASSERT_TRUE(joined.Apply(rows, false, &batch).ok());
  joined.Part(batch, 0, &part);
  EXPECT_EQ(part.dense, (std::vector<float>{0, 10, 1, 11}));
  joined.Part(batch, 1, &part);
  EXPECT_EQ(part.dense, (std::vector<float>{20, 10, 21, 11}));
}

// Each member reads the same cells.
TEST(JoinedTransform, CountsUnknownValuesOnce) {
  FeaturePlan plan;
  InputColumn* town = plan.add_inputs();
  town->set_name("town");
  town->set_type(static_cast<uint32_t>(DataType::kText));
  Feature* feature = plan.add_features();
  feature->set_name("town");
  feature->set_kind(Feature::CATEGORY);
  feature->add_inputs(0);
  feature->mutable_categorizer()->set_kind(Categorizer::VOCABULARY);
  feature->mutable_categorizer()->add_vocabulary("Rome");
  feature->mutable_categorizer()->set_oov_bucket(1);
  feature->mutable_categorizer()->set_null_bucket(2);
  feature->mutable_categorizer()->set_buckets(3);
  const auto trees = FeatureTransform::Make(plan, FeatureTransform::Target::kTrees);
  const auto network = FeatureTransform::Make(plan, FeatureTransform::Target::kNetwork);
  ASSERT_TRUE(trees.ok() && network.ok()) << trees.status().ToString();
  const JoinedTransform joined({trees->get(), network->get()});
  RowBatch rows;
  rows.Reset(Schema{{{"town", DataType::kText, ""}}}, 4);
  rows.rows = 4;
  rows.columns[0].null = {0, 1, 0, 0};
  rows.columns[0].texts = {"Rome", "", "Lima", "Oslo"};
  FeatureBatch batch;
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(joined.Apply(rows, false, &batch).ok());
    ASSERT_EQ(batch.unknown.size(), 1U);
    EXPECT_EQ(batch.unknown[0].column, "town");
    EXPECT_EQ(batch.unknown[0].cells, 2U);
    EXPECT_EQ(batch.unknown[0].first, "Lima");
  }
}

}  // namespace
}  // namespace sluice::models
