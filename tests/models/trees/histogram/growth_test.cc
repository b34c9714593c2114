// Trees over rows that are spread in several ways, through the passes that a fleet would make.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/tree_growth.h"
#include "tests/models/trees/boosting.h"

namespace sluice::models::histogram {
namespace {

constexpr size_t kColumns = 3;

struct Made {
  ModelSpec spec;
  std::unique_ptr<FeatureTransform> transform;
  std::unique_ptr<ColumnLayout> layout;
};

Made ThreeNumbers() {
  Made made{TreeSpec("xgboost.gbtree"), nullptr, nullptr};
  for (const char* name : {"a", "b", "c"}) {
    AddNumber(&made.spec, name);
  }
  SetClasses(&made.spec, 2);
  made.transform =
      std::move(FeatureTransform::Make(made.spec.features(), FeatureTransform::Target::kTrees))
          .value();
  const BoostingParameters parameters = ParametersOf(made.spec).value();
  made.layout = std::make_unique<ColumnLayout>(
      ColumnLayout::Make(made.spec, *made.transform, parameters).value());
  return made;
}

FeatureBatch Rows(size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  FeatureBatch batch;
  batch.rows = count;
  batch.dense_width = kColumns;
  for (size_t r = 0; r < count; ++r) {
    const float a = normal(random);
    const auto b = static_cast<float>(random() % 12);  // a category
    const float c = r % 7 == 0 ? NAN : normal(random);
    batch.dense.insert(batch.dense.end(), {a, b, c});
    batch.labels.push_back(a * std::sin(b) + (std::isnan(c) ? 1 : c) > 0 ? 1 : 0);
    batch.weights.push_back(static_cast<float>(1 + r % 5) / 3);
  }
  return batch;
}

struct Grown {
  std::vector<Tree> trees;
  std::vector<float> margins;  // of the rows in their order
};

// Three rounds over rows that are cut at `cuts` and held by as many shares, which are asked in the
// order of `asked`.
Grown Grow(const FeatureBatch& rows, const std::vector<size_t>& ends, bool backwards,
           const TreeRules& rules, size_t threads_count) {
  const Made made = ThreeNumbers();
  Threads threads(threads_count);
  const std::unique_ptr<Objective> objective = Objective::Make({.name = "binary:logistic"});
  std::vector<RowMatrix> parts;
  std::vector<ValueCounts> counts(kColumns);
  for (size_t i = 0; i < ends.size(); ++i) {
    parts.emplace_back(made.layout.get());
    EXPECT_TRUE(parts.back().Fill(rows.Slice(i == 0 ? 0 : ends[i - 1], ends[i])).ok());
  }
  std::vector<size_t> asked(ends.size());
  std::iota(asked.begin(), asked.end(), 0);
  if (backwards) {
    std::reverse(asked.begin(), asked.end());
  }
  for (const size_t i : asked) {
    std::vector<ValueCounts> own(kColumns);
    for (size_t v = 0; v < parts[i].values().size(); ++v) {
      if (!std::isnan(parts[i].values()[v])) {
        own[v % kColumns].Add(parts[i].values()[v]);
      }
    }
    for (size_t c = 0; c < kColumns; ++c) {
      counts[c].Merge(own[c]);
    }
  }
  const CutPoints cuts(counts, 60, std::vector<size_t>{1});
  std::vector<RowShare> shares;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t begin = i == 0 ? 0 : ends[i - 1], size = ends[i] - begin;
    shares.emplace_back(&cuts, false, objective.get(), &threads, begin);
    shares.back().Append(parts[i], std::span(rows.labels).subspan(begin, size),
                         std::span(rows.weights).subspan(begin, size), {});
    shares.back().StartFrom(0.1F);
  }
  Grown grown;
  for (uint64_t round = 0; round < 3; ++round) {
    GradientRange range;
    for (const size_t i : asked) {
      range.Merge(shares[i].MeasureRange()[0]);
    }
    const GradientScale scale(range);
    TreeGrowth growth(cuts, false, rules, scale, ColumnSample(rules, round, kColumns), &threads);
    GradientSum total;
    for (const size_t i : asked) {
      shares[i].BeginRound(std::span(&scale, 1));
      total.Add(shares[i].BeginTree(0, RowSample(rules, round)));
    }
    growth.Begin(total, rows.rows);
    while (true) {
      std::vector<Histogram> sums(growth.NodesToSum().size(), Histogram(cuts.all_bins()));
      for (const size_t i : asked) {
        std::vector<Histogram> own(sums.size(), Histogram(cuts.all_bins()));
        std::vector<Histogram*> to;
        for (Histogram& one : own) {
          to.push_back(&one);
        }
        shares[i].AddHistograms(growth.NodesToSum(), to);
        for (size_t n = 0; n < sums.size(); ++n) {
          AddTo(own[n], &sums[n]);
        }
      }
      growth.Take(std::move(sums));
      const std::vector<RowShare::NodeSplit> splits = growth.NextSplits();
      if (splits.empty()) {
        break;
      }
      for (RowShare& share : shares) {
        share.Split(splits);
      }
    }
    grown.trees.push_back(growth.Finish());
    for (RowShare& share : shares) {
      share.EndTree(grown.trees.back());
    }
  }
  for (const RowShare& share : shares) {
    grown.margins.insert(grown.margins.end(), share.margins().begin(), share.margins().end());
  }
  return grown;
}

void ExpectSame(const Grown& a, const Grown& b) {
  ASSERT_EQ(a.trees.size(), b.trees.size());
  for (size_t t = 0; t < a.trees.size(); ++t) {
    ASSERT_EQ(a.trees[t].nodes.size(), b.trees[t].nodes.size());
    for (size_t n = 0; n < a.trees[t].nodes.size(); ++n) {
      const Tree::Node &x = a.trees[t].nodes[n], &y = b.trees[t].nodes[n];
      EXPECT_EQ(x.left, y.left);
      EXPECT_EQ(x.split.column, y.split.column);
      EXPECT_EQ(x.split.bin, y.split.bin);
      EXPECT_EQ(x.split.missing_left, y.split.missing_left);
      EXPECT_EQ(x.split.right_bins, y.split.right_bins);
      EXPECT_EQ(x.gain, y.gain);
      EXPECT_EQ(x.value, y.value);
      EXPECT_EQ(x.hessian, y.hessian);
    }
  }
  EXPECT_EQ(a.margins, b.margins);
}

class SpreadRowsTest : public testing::TestWithParam<TreeRules> {};

TEST_P(SpreadRowsTest, TreesDoNotDependOnShares) {
  const FeatureBatch rows = Rows(20'000);
  const Grown whole = Grow(rows, {20'000}, false, GetParam(), 1);
  ASSERT_GT(whole.trees[2].nodes.size(), 10u);
  ExpectSame(Grow(rows, {20'000}, false, GetParam(), 3), whole);
  ExpectSame(Grow(rows, {1, 5'000, 13'333, 20'000}, false, GetParam(), 1), whole);
  ExpectSame(Grow(rows, {9'000, 9'000, 20'000}, true, GetParam(), 2), whole);
}

INSTANTIATE_TEST_SUITE_P(
    All, SpreadRowsTest,
    testing::Values(TreeRules{}, TreeRules{.subsample = 0.5, .seed = 4},
                    TreeRules{.max_depth = 0, .max_leaves = 40, .best_first = true},
                    TreeRules{.alpha = 0.1, .max_delta_step = 0.5, .colsample_bynode = 0.5}),
    [](const auto& test) { return "Rules" + std::to_string(test.index); });

size_t LeavesOf(const Tree& tree) {
  return static_cast<size_t>(std::count_if(tree.nodes.begin(), tree.nodes.end(),
                                           [](const auto& node) { return node.left < 0; }));
}

int DepthOf(const Tree& tree, int32_t node = 0) {
  const int32_t left = tree.nodes[static_cast<size_t>(node)].left;
  return left < 0 ? 0 : 1 + std::max(DepthOf(tree, left), DepthOf(tree, left + 1));
}

TEST(TreeGrowthTest, KeepsToItsRules) {
  const FeatureBatch rows = Rows(5'000);
  const auto tree_of = [&](const TreeRules& rules) {
    return Grow(rows, {5'000}, false, rules, 1).trees[0];
  };
  EXPECT_EQ(DepthOf(tree_of({.max_depth = 3})), 3);
  EXPECT_EQ(LeavesOf(tree_of({.max_depth = 0, .max_leaves = 17})), 17u);
  EXPECT_EQ(LeavesOf(tree_of({.max_depth = 0, .max_leaves = 17, .best_first = true})), 17u);
  EXPECT_GT(DepthOf(tree_of({.max_depth = 0, .max_leaves = 40, .best_first = true})),
            DepthOf(tree_of({.max_depth = 0, .max_leaves = 40})));
  for (const Tree::Node& node : tree_of({.min_child_weight = 60}).nodes) {
    EXPECT_GE(node.hessian, 60);
  }
  for (const Tree::Node& node : tree_of({.gamma = 30}).nodes) {
    EXPECT_TRUE(node.left < 0 || node.gain > 30);
  }
  for (const Tree::Node& node : tree_of({.eta = 0.5, .max_delta_step = 0.2}).nodes) {
    EXPECT_LE(std::fabs(node.value), 0.1F);
  }
  EXPECT_EQ(LeavesOf(tree_of({.alpha = 1e9})), 1u);
}

TEST(SamplesTest, DependOnNamesOnly) {
  const TreeRules rules{.subsample = 0.3, .colsample_bytree = 0.5, .colsample_bynode = 0.5};
  const RowSample sample(rules, 7), other(rules, 8);
  size_t chosen = 0, both = 0;
  for (uint64_t row = 0; row < 100'000; ++row) {
    chosen += sample.Has(row) ? 1 : 0;
    both += sample.Has(row) && other.Has(row) ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(chosen), 30'000, 700);
  EXPECT_NEAR(static_cast<double>(both), 9'000, 500) << "trees choose independently";
  const ColumnSample columns(rules, 7, 40);
  EXPECT_EQ(columns.OfNode(0, 0).size(), 10u);
  EXPECT_EQ(columns.OfNode(2, 5), columns.OfNode(2, 5));
  EXPECT_NE(columns.OfNode(2, 5), columns.OfNode(2, 6));
  EXPECT_EQ(ColumnSample({.colsample_bytree = 0.01}, 0, 3).OfNode(0, 0).size(), 1u);
}

}  // namespace
}  // namespace sluice::models::histogram
