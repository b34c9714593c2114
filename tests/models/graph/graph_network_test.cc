#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "models/graph/graph_tables.h"
#include "tests/models/graph/graph_builder.h"
#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

using graph::GraphBuilder;

// Two numbers and two categories: wide, cross and deep with dropout and batch normalisation, as
// people write it in PyTorch; the tables are parameters until MakeTables.
ModelSpec WideNet(int classes) {
  ModelSpec spec = Classes(WithFeatures(Spec("my.WideNet")), classes);
  const int64_t outputs = classes == 2 ? 1 : classes;
  GraphBuilder b;
  const std::string numbers = b.Numbers("numbers", 2);
  const std::string c = b.Ids("c");
  const std::string e = b.Ids("e");
  const auto parameter = [&](const std::string& name, const graph::Shape& shape,
                             const std::string& initializer = "uniform:0.5",
                             GraphParameter::Group group = GraphParameter::DEEP) {
    b.Parameter(name, shape, group);
    b.graph.mutable_parameters()->rbegin()->set_initializer(initializer);
    b.graph.mutable_parameters()->rbegin()->set_momentum(0.9);
    return name;
  };
  const std::string embedded_c = b.Node("Gather", {parameter("embed/c", {5, 3}), c});
  const std::string embedded_e = b.Node("Gather", {parameter("embed/e", {6, 2}), e});
  const std::string x = b.Node("Concat", {numbers, embedded_c, embedded_e}, {{"axis", 1}});
  const std::string crossed = b.Node(
      "Add",
      {b.Node(
           "Mul",
           {x, b.Node("Gemm", {x, parameter("cross/w", {7, 7}), parameter("cross/b", {7}, "zeros")},
                      {{"transB", 1}})}),
       x});
  const std::string normal =
      b.Node("BatchNormalization",
             {x, parameter("bn/scale", {7}, "ones"), parameter("bn/bias", {7}, "zeros"),
              parameter("bn/mean", {7}, "zeros", GraphParameter::STATISTICS),
              parameter("bn/variance", {7}, "ones", GraphParameter::STATISTICS)},
             {{"epsilon", 1e-5}});
  const std::string hidden =
      b.Node("Dropout", {b.Node("Relu", {b.Node("MatMul", {normal, parameter("deep/w", {7, 6})})}),
                         b.Floats({0.2F}, {})});
  const std::string both = b.Node("Concat", {crossed, hidden}, {{"axis", -1}});
  const std::string deep =
      b.Node("Gemm", {both, parameter("out/w", {outputs, 13}), parameter("out/b", {outputs})},
             {{"transB", 1}});
  const std::string wide = b.Node("Gather", {parameter("wide/c", {5, outputs}, "zeros"), c});
  const std::string scaled =
      b.Node("Mul", {wide, parameter("frozen", {1}, "ones", GraphParameter::FROZEN)});
  *spec.mutable_graph() = b.Output(b.Node("Add", {deep, scaled}));
  spec.mutable_graph()->mutable_inputs(0)->add_features("a");
  spec.mutable_graph()->mutable_inputs(0)->add_features("b");
  EXPECT_TRUE(MakeTables(spec.mutable_graph()).empty());
  return spec;
}

TEST(MakeTablesTest, WhatOnlyIdsReadIsATable) {
  const ModelSpec spec = WideNet(2);
  std::set<std::string> tables;
  for (const GraphTable& table : spec.graph().tables()) {
    tables.insert(table.name() + " by " + table.inputs(0));
  }
  EXPECT_EQ(tables, (std::set<std::string>{"embed/c by c", "embed/e by e", "wide/c by c"}));
  for (const GraphParameter& parameter : spec.graph().parameters()) {
    EXPECT_FALSE(parameter.name().starts_with("embed/"));
  }
}

TEST(MakeTablesTest, WhatIsReadTwiceStaysWholeAndIsTold) {
  GraphBuilder b;
  const std::string w = b.Parameter("w", {8, 3});
  const std::string embedded = b.Node("Gather", {w, b.Ids("i")});
  NetworkGraph graph = b.Output(b.Node("Gemm", {embedded, w}, {{"transB", 1}}));
  const std::vector<std::string> notes = MakeTables(&graph);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0],
            "w (8 rows of 3) is pulled whole for every batch: it has other uses beside its "
            "feature's ids");
  EXPECT_EQ(graph.tables_size(), 0);
}

TEST(MakeTablesTest, WhatTheSameIdsReadTwiceIsATable) {
  for (const bool same : {true, false}) {
    GraphBuilder b;
    const std::string w = b.Parameter("w", {8, 3});
    const std::string ids = b.Ids("i");
    const std::string one = b.Node("Gather", {w, ids});
    const std::string other = b.Node("Gather", {w, same ? ids : b.Ids("j")});
    NetworkGraph graph = b.Output(b.Node("Mul", {one, other}));
    EXPECT_EQ(MakeTables(&graph).size(), same ? 0u : 1u);
    EXPECT_EQ(graph.tables_size(), same ? 1 : 0);
  }
}

TEST(GraphNetworkTest, SaysWhatItHas) {
  const auto network = MakeNetwork(WideNet(3));
  ASSERT_NE(network, nullptr);
  EXPECT_EQ(network->outputs(), 3u);
  ASSERT_EQ(network->tables().size(), 3u);
  EXPECT_EQ(network->tables()[0].rows, 5);
  EXPECT_EQ(network->tables()[0].dimension, 3u);
  EXPECT_EQ(network->parameter_count(), 15 + 12 + 15 + 49 + 7 + 4 * 7 + 42 + 39 + 3 + 1);
  EXPECT_GT(network->bytes_per_row(), 7 * sizeof(float));
  for (const DenseTensor& tensor : network->dense()) {
    using Group = DenseTensor::Group;
    const bool statistic = tensor.name == "bn/mean" || tensor.name == "bn/variance";
    EXPECT_EQ(tensor.group, statistic                 ? Group::kStatistics
                            : tensor.name == "frozen" ? Group::kFrozen
                                                      : Group::kDeep)
        << tensor.name;
  }
}

TEST(GraphNetworkTest, GradientIsTheSlopeOfTheLoss) {
  for (const int classes : {2, 3}) {
    const auto network = MakeNetwork(WideNet(classes));
    ASSERT_NE(network, nullptr);
    FeatureBatch batch =
        RandomBatch(*network, 23, 3, 1, false, ClassLabel(static_cast<uint32_t>(classes)));
    for (size_t r = 0; r < batch.rows; ++r) {
      batch.weights.push_back(static_cast<float>(r % 3) + 0.5F);
    }
    ParameterStore store(network.get(), 11);
    Gradient gradient;
    network->Step(batch, store.View(batch), 5, &gradient);
    const auto mean_loss = [&] {
      Gradient ignored;
      const LossSum sum = network->Step(batch, store.View(batch), 5, &ignored);
      return sum.loss / sum.weight;
    };
    const auto check = [&](float* value, float slope, const std::string& name) {
      const float before = *value;
      const auto central = [&](float width) {
        *value = before + width;
        const double above = mean_loss();
        *value = before - width;
        const double below = mean_loss();
        *value = before;
        return (above - below) / (2 * static_cast<double>(width));
      };
      const double wide = central(2e-3F);
      if (std::fabs(wide - central(1e-3F)) < 4e-4) {  // else a kink lies between
        EXPECT_NEAR(wide, static_cast<double>(slope), 5e-4) << name;
      }
    };
    for (size_t i = 0; i < network->dense().size(); ++i) {
      const DenseTensor& tensor = network->dense()[i];
      if (tensor.group == DenseTensor::Group::kDeep) {
        for (size_t k = 0; k < tensor.size(); k += 3) {
          check(&store.Dense(i)[k], gradient.dense[i][k], tensor.name);
        }
      }
      if (tensor.group == DenseTensor::Group::kFrozen) {
        EXPECT_EQ(gradient.dense[i], std::vector<float>{0});
      }
    }
    for (size_t t = 0; t < network->tables().size(); ++t) {
      const std::vector<int64_t> ids = store.View(batch).tables[t].ids;
      const size_t dimension = network->tables()[t].dimension;
      for (size_t r = 0; r < ids.size(); ++r) {
        check(&store.Row(t, ids[r])[0], gradient.tables[t][r * dimension],
              network->tables()[t].name);
      }
    }
  }
}

TEST(GraphNetworkTest, Learns) {
  const auto network = MakeNetwork(WideNet(2));
  ASSERT_NE(network, nullptr);
  ParameterStore store(network.get(), 11, "Adam", 0.02);
  double first = 0;
  double last = 0;
  for (int64_t step = 1; step <= 150; ++step) {
    FeatureBatch batch =
        RandomBatch(*network, 64, static_cast<uint32_t>(step), 1, false, ClassLabel(2));
    for (size_t r = 0; r < batch.rows; ++r) {
      const bool yes =
          batch.dense[2 * r] * batch.dense[2 * r + 1] > 0 || batch.slots[0].ids[r] == 3;
      batch.labels[r] = yes ? 1.0F : 0.0F;
    }
    const LossSum sum = store.Train(batch, step);
    (step == 1 ? first : last) = sum.loss / sum.weight;
  }
  EXPECT_LT(last, 0.5 * first);
}

TEST(GraphNetworkTest, PredictionsOfARowDoNotDependOnTheBatch) {
  const auto network = MakeNetwork(WideNet(3));
  ASSERT_NE(network, nullptr);
  ParameterStore store(network.get(), 11);
  const FeatureBatch batch = RandomBatch(*network, 9, 3, 1, false, ClassLabel(3));
  std::vector<double> all;
  network->Predict(batch, store.View(batch), &all);
  ASSERT_EQ(all.size(), 27u);
  for (size_t r = 0; r < batch.rows; ++r) {
    const FeatureBatch single = batch.Slice(r, r + 1);
    std::vector<double> one;
    network->Predict(single, store.View(single), &one);
    EXPECT_TRUE(
        std::equal(one.begin(), one.end(), all.begin() + static_cast<std::ptrdiff_t>(3 * r)));
  }
  FeatureBatch empty = batch.Slice(0, 0);
  network->Predict(empty, store.View(empty), &all);
  EXPECT_TRUE(all.empty());
}

// The ids of a batch may be collected before the batch ahead of it is computed.
TEST(GraphNetworkTest, IdsOfTheNextBatchChangeNothing) {
  const auto network = MakeNetwork(WideNet(2));
  ASSERT_NE(network, nullptr);
  ParameterStore store(network.get(), 11);
  const FeatureBatch batch = RandomBatch(*network, 6, 3, 1, false, ClassLabel(2));
  const FeatureBatch next = RandomBatch(*network, 4, 4, 1, false, ClassLabel(2));
  Gradient expected;
  Gradient gradient;
  network->Step(batch, store.View(batch), 1, &expected);
  const ParameterView view = store.View(batch);
  ParameterView other;
  network->CollectIds(next, &other);
  network->Step(batch, view, 1, &gradient);
  EXPECT_EQ(gradient.dense, expected.dense);
  EXPECT_EQ(gradient.tables, expected.tables);
}

// Sequences: as many ids as the input has places, with a mask; and as bags.
TEST(GraphNetworkTest, SeveralIdsPerRow) {
  ModelSpec spec = Classes(WithFeatures(Spec("my.Bags")), 2);
  GraphBuilder b;
  const std::string ids = b.Ids("c", 2);
  const std::string mask = b.Ids("c.mask", 2, GraphInput::MASK);
  const std::string bag = b.Ids("e", 0, GraphInput::BAG);
  b.graph.mutable_inputs(1)->set_features(0, "c");
  const std::string rows = b.Node("Gather", {b.Parameter("t", {5, 3}), ids});
  const std::string kept = b.Node("Mul", {rows, b.Node("Unsqueeze", {mask, b.Integers({2})})});
  const std::string sum =
      b.Node("ReduceSum", {kept}, {{"axes", std::vector<int64_t>{1, 2}}, {"keepdims", 0}});
  const std::string bags =
      b.Node("EmbeddingBag", {b.Parameter("u", {6, 1}), bag}, {{"combiner", "mean"}});
  *spec.mutable_graph() =
      b.Output(b.Node("Add", {sum, b.Node("Squeeze", {bags, b.Integers({1})})}));
  EXPECT_TRUE(MakeTables(spec.mutable_graph()).empty());
  spec.mutable_graph()->mutable_tables(0)->set_initializer("ones");
  spec.mutable_graph()->mutable_tables(1)->set_initializer("zeros");
  const auto network = MakeNetwork(spec);
  ASSERT_NE(network, nullptr);
  FeatureBatch batch = RandomBatch(*network, 3, 3, 1, false, ClassLabel(2));
  batch.labels.clear();
  batch.slots[0] = {{1, 2, 3, 4}, {3, 3, 4}, {}};  // three ids of which two count, none, one
  batch.slots[2] = {{5, 0, 1, 1}, {1, 2, 4}, {}};
  ParameterStore store(network.get(), 11);
  std::vector<double> predictions;
  network->Predict(batch, store.View(batch), &predictions);
  const auto probability = [](double logit) { return 1 / (1 + std::exp(-logit)); };
  ASSERT_EQ(predictions.size(), 3u);
  EXPECT_NEAR(predictions[0], probability(6), 1e-6);
  EXPECT_NEAR(predictions[1], probability(0), 1e-6);
  EXPECT_NEAR(predictions[2], probability(3), 1e-6);
}

struct BadSpecCase {
  std::string name;
  std::function<void(ModelSpec*)> change;
  std::string message;
};

void PrintTo(const BadSpecCase& bad, std::ostream* out) {
  *out << bad.name;
}

class BadGraphSpecTest : public ::testing::TestWithParam<BadSpecCase> {};

TEST_P(BadGraphSpecTest, IsRefused) {
  ModelSpec spec = WideNet(2);
  GetParam().change(&spec);
  const auto network = Network::Make(spec);
  ASSERT_FALSE(network.ok());
  EXPECT_NE(network.status().ToString().find(GetParam().message), std::string::npos)
      << network.status().ToString();
}

INSTANTIATE_TEST_SUITE_P(
    All, BadGraphSpecTest,
    ::testing::Values(
        BadSpecCase{"MissingFeature",
                    [](ModelSpec* spec) {
                      spec->mutable_graph()->mutable_inputs(1)->set_features(0, "cc");
                    },
                    "input 'c' of the model is feature 'cc', which the rows do not have"},
        BadSpecCase{
            "NumberAsCategory",
            [](ModelSpec* spec) { spec->mutable_graph()->mutable_inputs(1)->set_features(0, "a"); },
            "reads feature 'a' as a category, which it is not"},
        BadSpecCase{
            "Width",
            [](ModelSpec* spec) { spec->mutable_graph()->mutable_inputs(0)->add_features("a"); },
            "has 2 numbers per row, its features have 3"},
        BadSpecCase{"SmallTable",
                    [](ModelSpec* spec) { spec->mutable_graph()->mutable_tables(0)->set_rows(4); },
                    "table 'embed/c' has 4 rows, its feature 'c' has 5 values"},
        BadSpecCase{"Outputs",
                    [](ModelSpec* spec) {
                      spec->mutable_features()->mutable_label()->clear_classes();
                      SetClasses(spec, 3);
                    },
                    "the model's output has numbers of shape [1, 1] for 1 rows"},
        BadSpecCase{"Initializer",
                    [](ModelSpec* spec) {
                      spec->mutable_graph()->mutable_parameters(0)->set_initializer("gaus:1");
                    },
                    "no initializer 'gaus'"}),
    [](const auto& test) { return test.param.name; });

TEST(RunningMeanTest, FollowsAndFreezes) {
  std::vector<float> values = {1, 2};
  const std::vector<float> batch = {3, -2};
  MakeRunningMean(0.75F)->Update(values.data(), nullptr, batch.data(), 2, 1, 0.1F);
  EXPECT_EQ(values, (std::vector<float>{1.5F, 1}));
  MakeRunningMean(1)->Update(values.data(), nullptr, batch.data(), 2, 2, 1);
  EXPECT_EQ(values, (std::vector<float>{1.5F, 1}));
  EXPECT_EQ(MakeRunningMean(0.5F)->slot_count(), 0u);
}

}  // namespace
}  // namespace sluice::models
