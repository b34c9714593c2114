#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

// Linear, DNN and wide and deep models have no graph stored with them: they are read as what they
// were when they were networks of layers, whose predictions were recorded here.
struct StoredCase {
  std::string name;
  ModelSpec spec;
  std::function<float(std::mt19937&)> label;
  size_t ids_per_row = 1;
  bool weighted = false;
  std::vector<double> predictions;  // of the first rows, after some steps
};

ModelSpec Bounded(ModelSpec spec) {
  spec.set_input_bound(3);
  return spec;
}

ModelSpec InParts() {
  ModelSpec spec = WithFeatures(DeepSpec({6, 4}, "DNNLinearCombinedClassifier"));
  FeaturePlan* plan = spec.mutable_features();
  plan->mutable_features(0)->set_part(Feature::WIDE);
  plan->mutable_features(1)->set_part(Feature::DEEP);
  plan->mutable_features(3)->set_part(Feature::WIDE);
  AddNumber(&spec, "f")->set_part(Feature::WIDE);
  AddCategory(&spec, "large", 70'000, 3);
  AddCategory(&spec, "g", 9, 3)->set_initializer("uniform");
  return Classes(Bounded(spec), 3);
}

ModelSpec WithCombiner(ModelSpec spec, const std::string& combiner) {
  SetText(&spec, "model.sparse_combiner", combiner);
  return spec;
}

ModelSpec OnlyIndicators() {
  ModelSpec spec = DeepSpec({6, 3});
  AddCategory(&spec, "c", 5, 0);
  AddCategory(&spec, "d", 80'000, 0);
  AddCategory(&spec, "e", 7, 0);
  return Classes(spec, 2);
}

std::vector<StoredCase> StoredCases() {
  const auto linear = [] { return WithFeatures(Spec("LinearClassifier")); };
  const auto activated = [](const std::string& name) { return Bounded(WithActivation(name)); };
  return {
      {"Linear",
       Classes(linear(), 2),
       ClassLabel(2),
       1,
       false,
       {0.664995313F, 0.443188131F, 0.436838537F, 0.574693263F}},
      {"LinearMean",
       WithCombiner(Classes(linear(), 3), "mean"),
       ClassLabel(3),
       3,
       true,
       {0.573217809F, 0.212422192F, 0.214359954F, 0.286391944F}},
      {"LinearRegressor",
       Numbers(WithFeatures(Spec("LinearRegressor"))),
       NumberLabel,
       2,
       false,
       {1.90173125F, 3.7881906F, 3.18061328F, 0.967943907F}},
      {"Deep",
       Classes(Bounded(WithFeatures(DeepSpec({8, 5}))), 3),
       ClassLabel(3),
       1,
       false,
       {0.311225891F, 0.182215512F, 0.506558597F, 0.345282376F}},
      {"DeepUnbounded",
       Numbers(WithFeatures(DeepSpec({7}, "DNNRegressor"), "sqrtn")),
       NumberLabel,
       3,
       true,
       {2.61854029F, 2.64332414F, 3.55621934F, 3.89031935F}},
      {"OnlyIndicators",
       OnlyIndicators(),
       ClassLabel(2),
       2,
       false,
       {0.654717028F, 0.102809682F, 0.461791396F, 0.324739665F}},
      {"WideAndDeep",
       Classes(Bounded(WithFeatures(DeepSpec({6, 4}, "DNNLinearCombinedClassifier"))), 2),
       ClassLabel(2),
       1,
       false,
       {0.474480152F, 0.645626545F, 0.286965102F, 0.672836781F}},
      {"InParts",
       InParts(),
       ClassLabel(3),
       3,
       true,
       {0.106622607F, 0.124793828F, 0.768583596F, 0.255701631F}},
      {"Gelu",
       activated("gelu"),
       ClassLabel(2),
       1,
       false,
       {0.23810333F, 0.512129664F, 0.216845512F, 0.699641824F}},
      {"Selu",
       activated("selu"),
       ClassLabel(2),
       1,
       false,
       {0.600000203F, 0.447739929F, 0.317127645F, 0.667819023F}},
      {"LeakyRelu",
       activated("leaky_relu"),
       ClassLabel(2),
       1,
       false,
       {0.30488959F, 0.521229446F, 0.313054532F, 0.744157374F}},
      {"Tanh",
       activated("tanh"),
       ClassLabel(2),
       1,
       false,
       {0.526887059F, 0.708477795F, 0.23680006F, 0.723881006F}},
      {"Elu",
       activated("elu"),
       ClassLabel(2),
       1,
       false,
       {0.372514963F, 0.464853883F, 0.283134282F, 0.773320079F}},
      {"Sigmoid",
       activated("sigmoid"),
       ClassLabel(2),
       1,
       false,
       {0.409480512F, 0.403739482F, 0.389218807F, 0.415201157F}},
  };
}

class StoredLayers : public testing::TestWithParam<StoredCase> {};

TEST_P(StoredLayers, LearnAndPredictAsTheyDid) {
  const StoredCase& of = GetParam();
  const auto network = MakeNetwork(of.spec);
  ASSERT_NE(network, nullptr);
  ParameterStore store(network.get(), 5, "Adam", 0.02);
  const FeatureBatch batch = RandomBatch(*network, 57, 3, of.ids_per_row, of.weighted, of.label);
  for (int64_t step = 1; step <= 20; ++step) {
    store.Train(batch, step);
  }
  std::vector<double> predictions;
  network->Predict(batch, store.View(batch), &predictions);
  for (size_t i = 0; i < of.predictions.size(); ++i) {
    EXPECT_NEAR(predictions[i], of.predictions[i], 2e-6F) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StoredLayers, testing::ValuesIn(StoredCases()),
                         [](const auto& test) { return test.param.name; });

// The form of stored weights: tensors and tables by position, and which rows are whose.
TEST(StoredLayers, ParametersKeepTheirOrder) {
  const auto network = MakeNetwork(InParts());
  ASSERT_NE(network, nullptr);
  std::vector<std::string> parameters;
  for (const DenseTensor& tensor : network->dense()) {
    parameters.push_back(tensor.name);
  }
  EXPECT_EQ(parameters, (std::vector<std::string>{"wide/kernel", "wide/bias", "deep/0/kernel",
                                                  "deep/0/bias", "deep/1/kernel", "deep/1/bias",
                                                  "deep/logits/kernel", "deep/logits/bias"}));
  std::vector<std::string> tables;
  for (const EmbeddingTable& table : network->tables()) {
    tables.push_back(fmt::format("{} {}x{} {}", table.name, table.rows, table.dimension,
                                 table.wide ? "wide" : "deep"));
  }
  EXPECT_EQ(tables,
            (std::vector<std::string>{"wide/d 19x3 wide", "wide/large 70000x3 wide",
                                      "embedding/c 5x3 deep", "embedding/e 6x2 deep",
                                      "embedding/large 70000x3 deep", "embedding/g 9x3 deep"}));
}

// A column may have any name, also that of a parameter, of an input, or of what a node makes.
TEST(StoredLayers, ColumnsAreCalledAsParametersAre) {
  for (const std::string type :
       {"LinearClassifier", "DNNClassifier", "DNNLinearCombinedClassifier"}) {
    for (const std::string name : {"kernel", "bias", "numbers", "product", "table_1", "ids/a",
                                   "0/kernel", "EmbeddingBag_1"}) {
      SCOPED_TRACE(type + " " + name);
      ModelSpec spec = DeepSpec({4, 3}, type);
      AddCategory(&spec, name, 5, 0);
      AddCategory(&spec, "other", 5, 3);
      AddNumber(&spec, "a");
      spec = Classes(spec, 2);
      const auto network = MakeNetwork(spec);
      ASSERT_NE(network, nullptr);
      if (type != "DNNClassifier") {
        EXPECT_EQ(network->tables()[0].name, "wide/" + name);
      }
      ParameterStore store(network.get(), 5, "Adam", 0.02);
      const FeatureBatch batch = RandomBatch(*network, 20, 3, 1, false, ClassLabel(2));
      const double first = store.Train(batch, 1).loss;
      for (int64_t step = 2; step <= 30; ++step) {
        store.Train(batch, step);
      }
      EXPECT_LT(store.Train(batch, 31).loss, first);
    }
  }
}

TEST(StoredLayers, FiveThousandEmbeddingsAreConcatenated) {
  ModelSpec spec = DeepSpec({2});
  for (int i = 0; i < 5'000; ++i) {
    AddCategory(&spec, fmt::format("c{}", i), 3, 1);
  }
  EXPECT_NE(MakeNetwork(Classes(spec, 2)), nullptr);
}

}  // namespace
}  // namespace sluice::models
