#include "models/linear_optimum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>

#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

struct LinearCase {
  std::string name;
  ModelSpec spec;
  std::function<float(std::mt19937&)> label;
  size_t ids_per_row = 1;
  bool weighted = false;
};

std::vector<LinearCase> LinearCases() {
  const auto linear = [](const std::string& type) { return WithFeatures(Spec(type)); };
  return {
      {"binary", Classes(linear("LinearClassifier"), 2, "logistic"), ClassLabel(2)},
      {"classes", Classes(linear("LinearClassifier"), 4, "softmax"), ClassLabel(4)},
      {"number", Numbers(linear("LinearRegressor"), "squared"), NumberLabel},
      {"several ids", Numbers(linear("LinearRegressor"), "squared"), NumberLabel, 3, true},
      {"classes, several ids", Classes(linear("LinearClassifier"), 3, "softmax"), ClassLabel(3), 3,
       true},
  };
}

// Two batches of a network's rows, with weights; labels that depend on the rows.
std::vector<FeatureBatch> Rows(const Network& network, const LinearCase& one) {
  std::vector<FeatureBatch> batches;
  for (const uint32_t seed : {1U, 2U}) {
    FeatureBatch batch = RandomBatch(network, 300, seed, one.ids_per_row, one.weighted, one.label);
    std::mt19937 random(seed);
    for (size_t r = 0; r < batch.rows; ++r) {
      batch.weights.push_back(0.5F + static_cast<float>(random() % 3));
      if (batch.dense[r * batch.dense_width] > 0.5F) {
        batch.labels[r] = 1;
      }
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

// The sums of each batch as those of a shard. `kept`: what was found out about each.
LinearOptimum::Pass PassOf(const ModelSpec& spec, const std::vector<FeatureBatch>& batches,
                           int* passes, std::vector<LinearSums::Kept>* kept = nullptr) {
  const std::shared_ptr<LinearSums> sums = LinearSums::Make(spec).value();
  return [&batches, passes, sums, kept](const LinearPass& pass) -> Result<std::vector<double>> {
    ++*passes;
    ASSIGN_OR_RETURN(const LinearPass arrived, LinearPass::Parse(pass.Serialize()));
    std::vector<double> all, own;
    for (size_t i = 0; i < batches.size(); ++i) {
      LinearSums::Kept nothing;
      RETURN_IF_ERROR(
          sums->Sum(arrived, batches[i], kept == nullptr ? &nothing : &(*kept)[i], &own));
      all.resize(own.size());
      std::transform(own.begin(), own.end(), all.begin(), all.begin(), std::plus<>());
    }
    return all;
  };
}

// The largest component of the gradient, computed by the network itself: of the sum of all losses
// plus the ridge.
double LargestSlope(Network& network, const std::vector<FeatureBatch>& batches,
                    const NetworkWeights& weights, bool squared) {
  const double ridge = squared ? 0.01 : 1;
  std::vector<std::vector<double>> dense;
  std::vector<std::map<int64_t, std::vector<double>>> tables(weights.tables.size());
  const double scale = squared ? 0.5 : 1;  // the network does not halve squared errors
  for (const FeatureBatch& batch : batches) {
    ParameterView view;
    for (const std::vector<float>& tensor : weights.dense) {
      view.dense.push_back(tensor.data());
    }
    network.CollectIds(batch, &view);
    for (size_t t = 0; t < view.tables.size(); ++t) {
      const size_t n = network.tables()[t].dimension;
      RowSet& rows = view.tables[t];
      rows.values.assign(rows.ids.size() * n, 0);
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        const auto& ids = weights.tables[t].ids;
        const auto found = std::lower_bound(ids.begin(), ids.end(), rows.ids[i]);
        EXPECT_TRUE(found != ids.end() && *found == rows.ids[i]) << "an id that was in a row";
        std::copy_n(weights.tables[t].values.begin() + (found - ids.begin()) * static_cast<long>(n),
                    n, rows.values.begin() + static_cast<long>(i * n));
      }
    }
    Gradient gradient;
    const LossSum sum = network.Step(batch, view, 0, &gradient);
    dense.resize(gradient.dense.size());
    for (size_t i = 0; i < dense.size(); ++i) {
      dense[i].resize(gradient.dense[i].size());
      for (size_t j = 0; j < dense[i].size(); ++j) {
        dense[i][j] += scale * sum.weight * static_cast<double>(gradient.dense[i][j]);
      }
    }
    for (size_t t = 0; t < tables.size(); ++t) {
      const size_t n = network.tables()[t].dimension;
      for (size_t i = 0; i < view.tables[t].ids.size(); ++i) {
        std::vector<double>& row = tables[t][view.tables[t].ids[i]];
        row.resize(n);
        for (size_t o = 0; o < n; ++o) {
          row[o] += scale * sum.weight * static_cast<double>(gradient.tables[t][i * n + o]);
        }
      }
    }
  }
  double largest = 0;
  for (size_t i = 0; i < dense.size(); ++i) {
    const bool bias = i + 1 == dense.size();
    for (size_t j = 0; j < dense[i].size(); ++j) {
      const double pull = bias ? 0 : ridge * static_cast<double>(weights.dense[i][j]);
      largest = std::max(largest, std::fabs(dense[i][j] + pull));
    }
  }
  for (size_t t = 0; t < tables.size(); ++t) {
    size_t at = 0;
    for (const auto& [id, row] : tables[t]) {
      EXPECT_EQ(weights.tables[t].ids[at], id);
      for (size_t o = 0; o < row.size(); ++o) {
        const float weight = weights.tables[t].values[at * row.size() + o];
        largest = std::max(largest, std::fabs(row[o] + static_cast<double>(weight)));
      }
      ++at;
    }
  }
  return largest;
}

TEST(LinearOptimum, IsWhereTheLossHasNoSlope) {
  for (const LinearCase& one : LinearCases()) {
    SCOPED_TRACE(one.name);
    const auto network = MakeNetwork(one.spec);
    const std::vector<FeatureBatch> batches = Rows(*network, one);
    const auto search = LinearOptimum::Make(one.spec);
    ASSERT_TRUE(search.ok()) << search.status().ToString();
    int passes = 0;
    const auto found = (*search)->Solve(PassOf(one.spec, batches, &passes),
                                        [](const auto&) { return OkStatus(); });
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_EQ(found->rows, 600);
    EXPECT_EQ((*search)->one_pass(), passes == 1);
    EXPECT_TRUE(CheckShape(found->weights, *network).ok());
    // 600 rows with weights around 1.5.
    EXPECT_LT(LargestSlope(*network, batches, found->weights, one.spec.loss() == "squared"), 0.02);
  }
}

// A shard may be added up by a process that has seen it before, or by another.
TEST(LinearOptimum, TheSameRowsGiveTheSameBits) {
  for (const LinearCase& one : LinearCases()) {
    const auto network = MakeNetwork(one.spec);
    const std::vector<FeatureBatch> batches = Rows(*network, one);
    std::string weights;
    for (const bool keeps : {false, true}) {
      int passes = 0;
      std::vector<LinearSums::Kept> kept(batches.size());
      const auto found = LinearOptimum::Make(one.spec).value()->Solve(
          PassOf(one.spec, batches, &passes, keeps ? &kept : nullptr),
          [](const auto&) { return OkStatus(); });
      ASSERT_TRUE(found.ok()) << found.status().ToString();
      EXPECT_TRUE(weights.empty() || SaveWeights(found->weights) == weights) << one.name;
      weights = SaveWeights(found->weights);
    }
  }
}

TEST(LinearSums, ARowLessShardAddsNothing) {
  for (const LinearCase& one : LinearCases()) {
    const auto network = MakeNetwork(one.spec);
    std::vector<FeatureBatch> batches = Rows(*network, one);
    const auto weights = [&] {
      int passes = 0;
      const auto found = LinearOptimum::Make(one.spec).value()->Solve(
          PassOf(one.spec, batches, &passes), [](const auto&) { return OkStatus(); });
      return found.ok() ? SaveWeights(found->weights) : found.status().ToString();
    };
    const std::string without = weights();
    batches.insert(batches.begin() + 1, FeatureBatch());
    EXPECT_EQ(weights(), without) << one.name;
  }
}

TEST(LinearSums, RefuseAPassOverAnotherModel) {
  const LinearCase one = LinearCases().front();
  const auto network = MakeNetwork(one.spec);
  const FeatureBatch rows = Rows(*network, one).front();
  LinearPass pass;
  pass.kind = LinearPass::Kind::kSlopes;
  pass.at = {1, 2, 3};
  std::vector<double> sums;
  LinearSums::Kept kept;
  EXPECT_EQ(LinearSums::Make(one.spec).value()->Sum(pass, rows, &kept, &sums).code(),
            Code::kInvalidArgument);
  const std::string bytes = pass.Serialize();
  EXPECT_EQ(LinearPass::Parse(bytes).value().at, pass.at);
  for (const std::string& damaged : {bytes.substr(1), bytes + "12345678", std::string()}) {
    EXPECT_EQ(LinearPass::Parse(damaged).status().code(), Code::kInvalidArgument);
  }
}

TEST(LinearOptimum, FindsTheMeanLossItEndsAt) {
  ModelSpec spec = Numbers(Spec("LinearRegressor"), "squared");
  AddNumber(&spec, "a");
  const auto search = LinearOptimum::Make(spec).value();
  FeatureBatch batch;
  batch.rows = 4;
  batch.dense_width = 1;
  batch.dense = {-1, 1, -1, 1};
  batch.labels = {3, 5, 1, 7};  // 4 + 2a, with errors of 1
  int passes = 0;
  std::vector<FeatureBatch> batches(250, batch);
  const auto found =
      search->Solve(PassOf(spec, batches, &passes), [](const auto&) { return OkStatus(); });
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->weights.dense[0][0], 2, 1e-3);
  EXPECT_NEAR(found->weights.dense[1][0], 4, 1e-4);
  EXPECT_NEAR(found->loss, 1, 1e-4);
}

TEST(LinearOptimum, WhoeverHasNoTimeGetsOneStep) {
  const LinearCase one = LinearCases().front();
  const auto network = MakeNetwork(one.spec);
  const std::vector<FeatureBatch> batches = Rows(*network, one);
  std::stop_source finish;
  finish.request_stop();
  const auto search = LinearOptimum::Make(one.spec).value();
  search->FinishOn(finish.get_token());
  int passes = 0;
  std::vector<double> losses;
  const auto found = search->Solve(PassOf(one.spec, batches, &passes), [&losses](const auto& step) {
    losses.push_back(step.loss);
    return OkStatus();
  });
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(found->steps, 1);
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_NEAR(losses[0], std::log(2), 1e-6);  // of zero weights
  EXPECT_LT(found->loss, losses[0] - 0.01);
}

TEST(LinearOptimum, AnErrorEndsTheSearch) {
  const LinearCase one = LinearCases().front();
  const auto network = MakeNetwork(one.spec);
  const std::vector<FeatureBatch> batches = Rows(*network, one);
  int passes = 0;
  const auto stopped = LinearOptimum::Make(one.spec).value()->Solve(
      PassOf(one.spec, batches, &passes), [](const auto&) { return Cancelled("enough"); });
  EXPECT_EQ(stopped.status().code(), Code::kCancelled);
  EXPECT_EQ(passes, 1);
}

TEST(LinearOptimum, IsOnlyOfLinearModelsWithSmoothLosses) {
  EXPECT_TRUE(LinearOptimum::Finds(Numbers(WithFeatures(Spec("LinearRegressor")), "squared")));
  EXPECT_FALSE(LinearOptimum::Finds(Numbers(WithFeatures(Spec("LinearRegressor")), "Huber")));
  EXPECT_EQ(LinearOptimum::Make(Classes(WithFeatures(DeepSpec({4})), 2)).status().code(),
            Code::kUnimplemented);
}

}  // namespace
}  // namespace sluice::models
