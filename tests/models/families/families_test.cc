#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tests/models/families/family_specs.h"

namespace sluice::models {
namespace {

ModelSpec NumbersOnly() {
  ModelSpec spec = Spec("");
  AddNumber(&spec, "a");
  AddNumber(&spec, "b");
  return spec;
}

ModelSpec CategoriesOnly() {
  ModelSpec spec = Spec("");
  AddCategory(&spec, "c", 5, 3);
  AddCategory(&spec, "d", 4, 0);
  return spec;
}

// Labels that follow from the first number, or else from the first category. classes 0: numbers.
FeatureBatch LearnableBatch(const Network& network, int classes) {
  FeatureBatch batch = RandomBatch(network, 60, 3, 1, false, NumberLabel);
  for (size_t r = 0; r < batch.rows; ++r) {
    const float cause = batch.dense_width > 0 ? batch.dense[r * batch.dense_width]
                                              : static_cast<float>(batch.slots[0].ids[r]) - 1.5F;
    const float last = static_cast<float>(classes - 1);
    batch.labels[r] = classes == 0 ? cause : std::clamp(std::floor(cause + 1), 0.0F, last);
  }
  return batch;
}

// Whatever columns there are, the network learns: its loss on one batch falls by a tenth.
TEST(Families, EveryOneLearnsFromNumbersCategoriesAndBoth) {
  ASSERT_GE(BuiltTypes().size(), 6U);
  for (const ModelType* type : BuiltTypes()) {
    for (const ModelSpec& features : {NumbersOnly(), CategoriesOnly(), WithFeatures(Spec(""))}) {
      for (const int classes : {2, 3}) {
        SCOPED_TRACE(testing::Message() << type->name << " of " << classes << " classes, "
                                        << features.features().features_size() << " features");
        ModelSpec spec = OfType(*type, features, classes);
        Build(*type, &spec);
        const auto network = MakeNetwork(spec);
        ASSERT_NE(network, nullptr);
        const FeatureBatch batch =
            LearnableBatch(*network, type->task == ModelTask::kClassification ? classes : 0);
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
  }
}

TEST(Families, RowsWithoutIdsWithSeveralAndASingleRow) {
  for (const ModelType* type : BuiltTypes()) {
    SCOPED_TRACE(type->name);
    ModelSpec spec = OfType(*type, WithFeatures(Spec("")));
    Build(*type, &spec);
    const auto network = MakeNetwork(spec);
    ASSERT_NE(network, nullptr);
    ParameterStore store(network.get(), 5, "Adam", 0.01);
    for (const size_t rows : {size_t{1}, size_t{9}}) {
      const FeatureBatch batch = RandomBatch(*network, rows, 3, 3, true, ClassLabel(2));
      EXPECT_TRUE(std::isfinite(store.Train(batch, 1).loss)) << rows;
      std::vector<double> predictions;
      network->Predict(batch, store.View(batch), &predictions);
      ASSERT_EQ(predictions.size(), rows);
      EXPECT_TRUE(std::isfinite(predictions[0]));
    }
  }
}

TEST(Families, ColumnsAreCalledAsParametersAre) {
  for (const ModelType& type : ModelTypes()) {
    if (!type.build || type.name.starts_with("MatrixFactorization")) {
      continue;
    }
    for (const std::string name : {"numbers", "kernel", "bias", "vectors", "input", "0/kernel"}) {
      SCOPED_TRACE(type.name + " " + name);
      ModelSpec features = Spec("");
      AddNumber(&features, "a");
      AddCategory(&features, name, 5, 3);
      AddCategory(&features, "b", 4, 0);
      for (size_t tower = 0; Feature & own : *features.mutable_features()->mutable_features()) {
        own.set_tower(type.towers.empty() ? "" : type.towers[tower++ % type.towers.size()]);
      }
      ModelSpec spec = OfType(type, std::move(features));
      Build(type, &spec);
      EXPECT_NE(MakeNetwork(spec), nullptr);
    }
  }
}

TEST(Families, NoFeatureIsAnError) {
  for (const ModelType* type : BuiltTypes()) {
    ModelSpec spec = OfType(*type, Spec(""));
    const Status status =
        type->build ? BuildGraph(type->build, &spec).status() : Network::Make(spec).status();
    ASSERT_FALSE(status.ok()) << type->name;
    EXPECT_NE(status.ToString().find("feature"), std::string::npos) << status.ToString();
  }
}

// Position of a parameter or table.
template <typename List>
size_t Place(const List& list, const std::string& name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) {
      return i;
    }
  }
  ADD_FAILURE() << "nothing is called " << name;
  return 0;
}

// A linear model and the sum over all pairs of features, written down as the definition has it.
TEST(FactorizationMachine, IsTheSumOverPairs) {
  const ModelType* type = FindModelType("FMRegressor");
  ASSERT_NE(type, nullptr);
  ModelSpec spec = OfType(*type, Spec(""));
  AddNumber(&spec, "a");
  AddCategory(&spec, "c", 5, 3);
  AddCategory(&spec, "d", 4, 0);
  SetNumberLabel(&spec, 0, 1);
  AttributeOf(&spec, "model.k")->set_integer(3);
  Build(*type, &spec);
  const auto network = MakeNetwork(spec);
  ASSERT_NE(network, nullptr);
  const FeatureBatch batch = RandomBatch(*network, 6, 3, 1, false, NumberLabel);
  ParameterStore store(network.get(), 5, "SGD", 0.5);
  for (int64_t step = 1; step < 20; ++step) {
    store.Train(batch, step);  // away from small initial values
  }
  std::vector<double> predictions;
  network->Predict(batch, store.View(batch), &predictions);
  const auto& dense = network->dense();
  const float weight = store.Dense(Place(dense, "linear/kernel"))[0];
  const float bias = store.Dense(Place(dense, "linear/bias"))[0];
  const std::vector<float>& own = store.Dense(Place(dense, "numbers/vectors"));
  for (size_t r = 0; r < batch.rows; ++r) {
    const double x = static_cast<double>(batch.dense[r]);
    const double bounded = x / std::sqrt(1 + x * x / 9);
    const std::vector<float>& c =
        store.Row(Place(network->tables(), "embedding/c"), batch.slots[0].ids[r]);
    const std::vector<float>& d =
        store.Row(Place(network->tables(), "embedding/d"), batch.slots[1].ids[r]);
    double expected = static_cast<double>(weight) * x + static_cast<double>(bias) +
                      static_cast<double>(c[0]) + static_cast<double>(d[0]);
    for (size_t k = 0; k < 3; ++k) {
      const double v = bounded * static_cast<double>(own[k]);
      const double vc = static_cast<double>(c[1 + k]);
      const double vd = static_cast<double>(d[1 + k]);
      expected += v * vc + v * vd + vc * vd;
    }
    EXPECT_NEAR(static_cast<double>(predictions[r]), expected, 1e-4);
  }
}

// Without hidden layers and with logits that add everything up: x0 * (W x0 + b) + x0.
TEST(DeepAndCross, ACrossLayerMultipliesTheInputByAProduct) {
  const ModelType* type = FindModelType("DCNRegressor");
  ASSERT_NE(type, nullptr);
  for (const int64_t rank : {0, 1}) {
    ModelSpec spec = OfType(*type, NumbersOnly());
    SetNumberLabel(&spec, 0, 1);
    AttributeOf(&spec, "model.cross_layers")->set_integer(1);
    AttributeOf(&spec, "model.cross_rank")->set_integer(rank);
    Build(*type, &spec);
    const auto network = MakeNetwork(spec);
    ASSERT_NE(network, nullptr);
    const FeatureBatch batch = RandomBatch(*network, 5, 3, 1, false, NumberLabel);
    ParameterStore store(network.get(), 5);
    const auto& dense = network->dense();
    std::vector<float>& logits = store.Dense(Place(dense, "logits/kernel"));
    std::fill(logits.begin(), logits.end(), 0.0F);
    std::fill_n(logits.begin(), 2, 1.0F);  // the two numbers that the cross leaves
    std::vector<double> predictions;
    network->Predict(batch, store.View(batch), &predictions);
    std::vector<float> kernel = store.Dense(Place(dense, "cross/0/kernel"));
    if (rank == 1) {
      const std::vector<float>& down = store.Dense(Place(dense, "cross/0/down/kernel"));
      kernel = {down[0] * kernel[0], down[0] * kernel[1], down[1] * kernel[0], down[1] * kernel[1]};
    }
    for (size_t r = 0; r < batch.rows; ++r) {
      double expected = 0;
      std::array<double, 2> x{};
      for (size_t i = 0; i < 2; ++i) {
        const double raw = static_cast<double>(batch.dense[2 * r + i]);
        x[i] = raw / std::sqrt(1 + raw * raw / 9);
      }
      for (size_t i = 0; i < 2; ++i) {
        expected += x[i] * (x[0] * static_cast<double>(kernel[i]) +
                            x[1] * static_cast<double>(kernel[2 + i])) +
                    x[i];
      }
      EXPECT_NEAR(static_cast<double>(predictions[r]), expected, 1e-4) << "rank " << rank;
    }
  }
}

// The penalty is what it says: half of l2 x the squares, per row.
TEST(FactorizationMachine, L2PullsVectorsTowardsZero) {
  const ModelType* type = FindModelType("FMClassifier");
  ASSERT_NE(type, nullptr);
  std::vector<float> gradients;
  for (const double l2 : {0.0, 0.5}) {
    ModelSpec spec = OfType(*type, CategoriesOnly());
    AttributeOf(&spec, "model.l2")->set_number(l2);
    Build(*type, &spec);
    const auto network = MakeNetwork(spec);
    ASSERT_NE(network, nullptr);
    FeatureBatch batch = RandomBatch(*network, 4, 3, 1, false, ClassLabel(2));
    batch.slots[0].ids = {2, 2, 2, 1};
    ParameterStore store(network.get(), 5);
    Gradient gradient;
    const ParameterView& view = store.View(batch);
    network->Step(batch, view, 1, &gradient);
    const size_t table = Place(network->tables(), "embedding/c");
    gradients.push_back(gradient.tables[table][1]);
    if (l2 > 0) {  // three of four rows have the value 2, which comes first
      EXPECT_NEAR(gradients[1] - gradients[0], 0.75F * 0.5F * store.Row(table, 2)[1], 1e-7F);
    }
  }
}

}  // namespace
}  // namespace sluice::models
