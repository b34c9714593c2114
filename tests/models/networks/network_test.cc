#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

TEST(CollectIdsTest, DistinctIdsInOrderOfFirstOccurrence) {
  ModelSpec spec = Spec("LinearClassifier");
  AddCategory(&spec, "c", 10, 0);
  AddCategory(&spec, "d", 5, 0);
  SetClasses(&spec, 2);
  const auto network = MakeNetwork(spec);
  ASSERT_EQ(network->tables().size(), 1u) << "small features share a table";
  EXPECT_EQ(network->tables()[0].rows, 15);
  FeatureBatch batch;
  batch.rows = 4;
  batch.slots.resize(2);
  batch.slots[0].ids = {7, 2, 7, 9};
  batch.slots[1].ids = {0, 0, 4, 0};
  ParameterView view;
  for (int round = 0; round < 3; ++round) {  // no state is left from the previous round
    network->CollectIds(batch, &view);
    EXPECT_EQ(view.tables[0].ids, (std::vector<int64_t>{7, 2, 9, 10, 14}));
    EXPECT_EQ(view.tables[0].positions, (std::vector<uint32_t>{0, 1, 0, 2, 3, 3, 4, 3}));
  }
}

TEST(CollectIdsTest, HashedTableOfTwoBillionRows) {
  ModelSpec spec = Spec("LinearClassifier");
  AddCategory(&spec, "small", 10, 0);
  AddCategory(&spec, "huge", 1u << 31, 0);
  SetClasses(&spec, 2);
  const auto network = MakeNetwork(spec);
  ASSERT_EQ(network->tables().size(), 2u);
  EXPECT_EQ(network->tables()[1].rows, int64_t{1} << 31);
  std::mt19937 random(4);
  ParameterView view;
  for (const size_t rows : {10u, 5000u, 100u}) {
    FeatureBatch batch;
    batch.rows = rows;
    batch.slots.resize(2);
    batch.slots[0].ids.assign(rows, 3);
    for (size_t r = 0; r < rows; ++r) {
      // Some ids far apart, some adjacent, some repeated.
      batch.slots[1].ids.push_back(r % 3 == 0
                                       ? (1u << 31) - 1 - static_cast<uint32_t>(random() % 50)
                                       : static_cast<uint32_t>(random() >> 1));
    }
    network->CollectIds(batch, &view);
    const RowSet& set = view.tables[1];
    EXPECT_EQ(std::set<int64_t>(set.ids.begin(), set.ids.end()).size(), set.ids.size());
    ASSERT_EQ(set.positions.size(), rows);
    for (size_t r = 0; r < rows; ++r) {
      ASSERT_EQ(set.ids[set.positions[r]], batch.slots[1].ids[r]);
    }
  }
}

TEST(NetworkTest, StepIsAFunctionOfItsArguments) {
  ModelSpec spec = Classes(WithFeatures(DeepSpec({16, 8}, "DNNLinearCombinedClassifier")), 3);
  SetNumber(&spec, "model.dnn_dropout", 0.5);
  const auto one = MakeNetwork(spec);
  const auto other = MakeNetwork(spec);
  ParameterStore store(one.get(), 1);
  const FeatureBatch batch = RandomBatch(*one, 200, 1, 2, false, ClassLabel(3));
  const FeatureBatch larger = RandomBatch(*one, 300, 2, 3, true, ClassLabel(3));
  const ParameterView view = store.View(batch);
  Gradient a, b, c, scratch;
  one->Step(batch, view, 7, &a);
  ParameterView larger_view;
  larger_view.dense = view.dense;
  other->CollectIds(larger, &larger_view);  // independent of earlier computations
  for (size_t t = 0; t < larger_view.tables.size(); ++t) {
    larger_view.tables[t].values.assign(
        larger_view.tables[t].ids.size() * other->tables()[t].dimension, 1);
  }
  other->Step(larger, larger_view, 3, &b);
  other->Step(batch, view, 7, &b);
  EXPECT_EQ(a.dense, b.dense);
  EXPECT_EQ(a.tables, b.tables);
  one->Step(batch, view, 8, &c);
  EXPECT_NE(a.dense, c.dense) << "another step drops other units";
}

TEST(NetworkTest, PredictionOfARowDoesNotDependOnItsBatch) {
  const auto network = MakeNetwork(Classes(WithFeatures(DeepSpec({20, 7})), 2));
  ParameterStore store(network.get(), 1);
  const FeatureBatch batch = RandomBatch(*network, 101, 1, 1, false, ClassLabel(2));
  std::vector<double> all, one;
  network->Predict(batch, store.View(batch), &all);
  for (const size_t row : {0u, 50u, 100u}) {
    FeatureBatch single;
    single.rows = 1;
    single.dense_width = batch.dense_width;
    single.dense.assign(
        batch.dense.begin() + static_cast<std::ptrdiff_t>(row * batch.dense_width),
        batch.dense.begin() + static_cast<std::ptrdiff_t>((row + 1) * batch.dense_width));
    for (const IdSlot& slot : batch.slots) {
      single.slots.emplace_back().ids = {slot.ids[row]};
    }
    network->Predict(single, store.View(single), &one);
    EXPECT_EQ(one[0], all[row]);
  }
}

TEST(NetworkTest, PredictsProbabilities) {
  const auto network = MakeNetwork(Classes(WithFeatures(DeepSpec({8})), 4));
  EXPECT_EQ(network->outputs(), 4u);
  ParameterStore store(network.get(), 1);
  FeatureBatch batch = RandomBatch(*network, 30, 1, 1, false, ClassLabel(4));
  std::vector<double> predictions;
  const LossSum loss = network->Predict(batch, store.View(batch), &predictions);
  ASSERT_EQ(predictions.size(), 120u);
  double expected = 0;
  for (size_t r = 0; r < 30; ++r) {
    double sum = 0;
    for (size_t o = 0; o < 4; ++o) {
      sum += predictions[r * 4 + o];
    }
    EXPECT_NEAR(sum, 1, 1e-6);
    expected -=
        std::log(static_cast<double>(predictions[r * 4 + static_cast<size_t>(batch.labels[r])]));
  }
  EXPECT_NEAR(loss.loss, expected, 1e-4);
  EXPECT_EQ(loss.weight, 30);
  batch.labels.clear();
  EXPECT_EQ(network->Predict(batch, store.View(batch), &predictions).weight, 0);
}

TEST(NetworkTest, DropoutIsForTrainingOnly) {
  ModelSpec with = Classes(WithFeatures(DeepSpec({30})), 2);
  const auto without_dropout = MakeNetwork(with);
  SetNumber(&with, "model.dropout", 0.5);
  const auto with_dropout = MakeNetwork(with);
  ParameterStore store(without_dropout.get(), 1);
  const FeatureBatch batch = RandomBatch(*without_dropout, 40, 1, 1, false, ClassLabel(2));
  const ParameterView view = store.View(batch);
  std::vector<double> a, b;
  without_dropout->Predict(batch, view, &a);
  with_dropout->Predict(batch, view, &b);
  EXPECT_EQ(a, b);
  Gradient gradient;
  EXPECT_NE(without_dropout->Step(batch, view, 1, &gradient).loss,
            with_dropout->Step(batch, view, 1, &gradient).loss);
}

TEST(NetworkMakeTest, VectorLabelHasAnOutputEach) {
  ModelSpec spec = DeepSpec({4}, "DNNRegressor");
  AddNumber(&spec, "a");
  LabelPlan* label = spec.mutable_features()->mutable_label();
  label->set_kind(LabelPlan::VECTOR);
  label->set_column("y");
  label->set_type(static_cast<int>(DataType::kText));
  label->set_width(3);
  const auto network = MakeNetwork(spec);
  ASSERT_NE(network, nullptr);
  EXPECT_EQ(network->outputs(), 3u);
  EXPECT_EQ(network->parameter_count(), 1 * 4 + 4 + 4 * 3 + 3);
}

TEST(NetworkMakeTest, PartsHaveTheirOwnOptimizer) {
  const auto network =
      MakeNetwork(Classes(WithFeatures(DeepSpec({4}, "DNNLinearCombinedClassifier")), 2));
  std::set<std::string> wide;
  for (const DenseTensor& tensor : network->dense()) {
    if (tensor.group == DenseTensor::Group::kWide) {
      wide.insert(tensor.name);
    }
  }
  EXPECT_EQ(wide, (std::set<std::string>{"wide/kernel", "wide/bias"}));
  for (const EmbeddingTable& table : network->tables()) {
    EXPECT_EQ(table.wide, table.name.starts_with("wide/")) << table.name;
  }
}

struct BadSpec {
  std::string name;
  std::function<ModelSpec()> spec;
  std::string message;
  std::string sqlstate;
};

class BadSpecTest : public testing::TestWithParam<BadSpec> {};

TEST_P(BadSpecTest, IsRefusedWithAReason) {
  const auto made = Network::Make(GetParam().spec());
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().message().find(GetParam().message), std::string::npos)
      << made.status().ToString();
  EXPECT_EQ(made.status().sqlstate(), GetParam().sqlstate);
  EXPECT_FALSE(made.status().diagnostics()[0].hint.empty()) << made.status().ToString();
}

std::vector<BadSpec> BadSpecs() {
  const auto deep = [] { return Classes(WithFeatures(DeepSpec({4})), 2); };
  return {
      {"NoSuchType", [] { return Classes(WithFeatures(Spec("Transformer")), 2); },
       "no network of type 'Transformer'", "42704"},
      {"NoHiddenUnits", [] { return Classes(WithFeatures(Spec("DNNClassifier")), 2); },
       "needs model.hidden_units", "22023"},
      {"NoSuchActivation",
       [=] {
         ModelSpec spec = deep();
         SetText(&spec, "model.activation_fn", "rellu");
         return spec;
       },
       "no activation 'rellu'", "42704"},
      {"NoSuchCombiner", [] { return Classes(WithFeatures(DeepSpec({4}), "max"), 2); },
       "no combiner 'max'", "42704"},
      {"NoSuchLoss", [] { return Classes(WithFeatures(DeepSpec({4})), 2, "logistik"); },
       "no loss 'logistik'", "42704"},
      {"LogisticForThreeClasses",
       [] { return Classes(WithFeatures(DeepSpec({4})), 3, "logistic"); },
       "loss logistic does not fit label 'y', which has 3 classes", "22023"},
      {"SquaredForClasses", [] { return Classes(WithFeatures(DeepSpec({4})), 2, "squared"); },
       "does not fit label 'y', which holds classes", "22023"},
      {"SoftmaxForNumbers",
       [] { return Numbers(WithFeatures(DeepSpec({4}, "DNNRegressor")), "softmax"); },
       "does not fit label 'y', which holds numbers", "22023"},
      {"NoLabel", [] { return WithFeatures(DeepSpec({4})); }, "needs a label", "22023"},
      {"NoSuchInitializer",
       [] {
         ModelSpec spec = DeepSpec({4});
         AddCategory(&spec, "c", 4, 2)->set_initializer("nromal");
         return Classes(spec, 2);
       },
       "no initializer 'nromal'", "42704"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, BadSpecTest, testing::ValuesIn(BadSpecs()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace sluice::models
