#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/kernels/kernels.h"
#include "tests/models/families/family_specs.h"

namespace sluice::models {
namespace {

const ModelType& TypeNamed(const std::string& name) {
  const ModelType* type = FindModelType(name);
  EXPECT_NE(type, nullptr) << name;
  return *type;
}

// A number and a category of users, a category and a number of items.
ModelSpec TwoSides(const std::string& type, const std::string& loss, int classes = 2) {
  ModelSpec spec = Spec("");
  AddNumber(&spec, "age");
  AddNumber(&spec, "price");
  AddCategory(&spec, "city", 5, 3);
  AddCategory(&spec, "title", 6, 3);
  for (Feature& feature : *spec.mutable_features()->mutable_features()) {
    if (feature.kind() == Feature::CATEGORY) {  // one id per row, always
      feature.mutable_categorizer()->set_null_bucket(0);
      feature.mutable_categorizer()->set_oov_bucket(0);
    }
    feature.set_tower(feature.name() == "age" || feature.name() == "city" ? "user" : "item");
  }
  spec = OfType(TypeNamed(type), std::move(spec), classes);
  AttributeOf(&spec, "model.k")->set_integer(4);
  if (!loss.empty()) {
    spec.set_loss(loss);
    AttributeOf(&spec, "model.loss")->set_text(loss);
  }
  return spec;
}

TEST(TwoTowers, LearnClassesNumbersAndChoices) {
  for (const auto& [type, loss, classes] :
       {std::tuple("TwoTowerClassifier", "", 2), std::tuple("TwoTowerClassifier", "", 3),
        std::tuple("TwoTowerRegressor", "", 2),
        std::tuple("TwoTowerClassifier", "in_batch_softmax", 2)}) {
    SCOPED_TRACE(testing::Message() << type << " " << loss << " of " << classes);
    ModelSpec spec = TwoSides(type, loss, classes);
    Build(TypeNamed(type), &spec);
    const auto network = MakeNetwork(spec);
    ASSERT_NE(network, nullptr);
    const bool numbers = std::string(type) == "TwoTowerRegressor";
    const FeatureBatch batch =
        RandomBatch(*network, 40, 3, 1, false,
                    numbers ? NumberLabel : ClassLabel(static_cast<uint32_t>(classes)));
    ParameterStore store(network.get(), 5, "Adam", 0.02);
    const double first = store.Train(batch, 1).loss;
    double last = first;
    for (int64_t step = 2; step <= 60; ++step) {
      last = store.Train(batch, step).loss;
    }
    EXPECT_TRUE(std::isfinite(last));
    EXPECT_LT(last, 0.9 * first);
  }
}

// The features of one side do not change the vector of the other: the product of a pair is the sum
// of a rank of k, whatever the sides are made of.
TEST(TwoTowers, InBatchSoftmaxIsTheDefinition) {
  ModelSpec spec = TwoSides("TwoTowerClassifier", "in_batch_softmax");
  Build(TypeNamed("TwoTowerClassifier"), &spec);
  const auto network = MakeNetwork(spec);
  ASSERT_NE(network, nullptr);
  FeatureBatch batch = RandomBatch(*network, 6, 3, 1, false, ClassLabel(2));
  batch.slots[1].ids = {0, 1, 2, 0, 3, 4};  // rows 0 and 3 have the same item
  batch.labels = {1, 1, 0, 1, 0, 1};
  batch.weights = {1, 2, 1, 0.5F, 1, 1};
  ParameterStore store(network.get(), 5);
  // The product of each user with each item: the pair as a row of its own.
  std::vector<std::vector<double>> products(6, std::vector<double>(6));
  for (size_t u = 0; u < 6; ++u) {
    for (size_t i = 0; i < 6; ++i) {
      FeatureBatch pair = batch.Slice(u, u + 1);
      pair.dense[1] = batch.dense[2 * i + 1];
      pair.slots[1].ids = {batch.slots[1].ids[i]};
      std::vector<double> predictions;
      network->Predict(pair, store.View(pair), &predictions);
      const auto p = static_cast<double>(predictions[0]);
      products[u][i] = std::log(p / (1 - p));
    }
  }
  double expected = 0, weight = 0;
  for (size_t u = 0; u < 6; ++u) {
    double sum = std::exp(products[u][u]);
    for (size_t i = 0; i < 6; ++i) {
      sum += batch.slots[1].ids[i] == batch.slots[1].ids[u] ? 0 : std::exp(products[u][i]);
    }
    const auto own = static_cast<double>(batch.weights[u]);
    expected += own * static_cast<double>(batch.labels[u]) * (std::log(sum) - products[u][u]);
    weight += own;
  }
  Gradient gradient;
  const LossSum loss = network->Step(batch, store.View(batch), 1, &gradient);
  EXPECT_NEAR(loss.loss, expected, 1e-3);
  EXPECT_NEAR(loss.weight, weight, 1e-6);
}

TEST(TwoTowers, OneRowAndRowsOfOneItemStayFinite) {
  ModelSpec spec = TwoSides("TwoTowerClassifier", "in_batch_softmax");
  Build(TypeNamed("TwoTowerClassifier"), &spec);
  const auto network = MakeNetwork(spec);
  ASSERT_NE(network, nullptr);
  ParameterStore store(network.get(), 5, "Adam", 0.01);
  for (const size_t rows : {size_t{1}, size_t{5}}) {
    FeatureBatch batch = RandomBatch(*network, rows, 3, 1, false, ClassLabel(2));
    std::fill(batch.slots[1].ids.begin(), batch.slots[1].ids.end(), 2U);
    EXPECT_NEAR(store.Train(batch, 1).loss, 0, 1e-6) << rows;  // there is nothing to choose from
    std::vector<double> predictions;
    network->Predict(batch, store.View(batch), &predictions);
    EXPECT_TRUE(std::isfinite(predictions[0]));
  }
}

TEST(TwoTowers, ATowerWithoutFeaturesAndItemsWithoutCategoriesAreErrors) {
  const ModelType& type = TypeNamed("TwoTowerClassifier");
  ModelSpec spec = TwoSides("TwoTowerClassifier", "");
  for (Feature& feature : *spec.mutable_features()->mutable_features()) {
    feature.set_tower("user");
  }
  auto built = BuildGraph(type.build, &spec);
  ASSERT_FALSE(built.ok());
  EXPECT_NE(built.status().ToString().find("the tower of the items has no features"),
            std::string::npos);
  spec = TwoSides("TwoTowerClassifier", "in_batch_softmax");
  spec.mutable_features()->mutable_features(3)->set_tower("user");
  built = BuildGraph(type.build, &spec);
  ASSERT_FALSE(built.ok());
  EXPECT_NE(built.status().ToString().find("attribute model.loss says in_batch_softmax"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::models
