#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/models/network_specs.h"

namespace sluice::models {
namespace {

// Ids for one slot: `most` per row at most, one each when 1.
IdSlot RandomSlot(size_t rows, uint32_t buckets, size_t most, bool weighted, std::mt19937* random) {
  IdSlot slot;
  for (size_t r = 0; r < rows; ++r) {
    const size_t count = most == 1 ? 1 : (*random)() % (most + 1);
    for (size_t i = 0; i < count; ++i) {
      slot.ids.push_back(static_cast<uint32_t>((*random)() % buckets));
      if (weighted) {
        slot.weights.push_back(0.5f + static_cast<float>((*random)() % 100) / 100.0f);
      }
    }
    if (most != 1) {
      slot.ends.push_back(static_cast<uint32_t>(slot.ids.size()));
    }
  }
  return slot;
}

// Rows that fit the network's transform; labels by `label`.
FeatureBatch RandomBatch(const Network& network, size_t rows, uint32_t seed, size_t ids_per_row,
                         bool weighted_ids, const std::function<float(std::mt19937&)>& label) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  FeatureBatch batch;
  batch.rows = rows;
  batch.dense_width = network.transform().dense_width();
  batch.dense.resize(rows * batch.dense_width);
  for (float& value : batch.dense) {
    value = normal(random);
  }
  for (const SlotColumn& column : network.transform().slots()) {
    batch.slots.push_back(RandomSlot(rows, column.buckets, ids_per_row, weighted_ids, &random));
  }
  batch.labels.resize(rows * network.transform().label_width());
  for (float& value : batch.labels) {
    value = label(random);
  }
  return batch;
}

std::function<float(std::mt19937&)> ClassLabel(uint32_t classes) {
  return [classes](std::mt19937& random) { return static_cast<float>(random() % classes); };
}
float NumberLabel(std::mt19937& random) {
  return std::normal_distribution<float>()(random);
}

struct GradientCase {
  std::string name;
  std::function<ModelSpec()> spec;
  std::function<float(std::mt19937&)> label;
  size_t ids_per_row = 1;
  bool weighted_ids = false;
  bool row_weights = false;
};

// Two numbers, an embedding, an indicator, and an embedding of other width.
ModelSpec WithFeatures(ModelSpec spec, const std::string& combiner = "sum") {
  AddNumber(&spec, "a");
  AddCategory(&spec, "c", 5, 3)->set_combiner(combiner);
  AddNumber(&spec, "b");
  AddCategory(&spec, "d", 4, 0);
  AddCategory(&spec, "e", 6, 2)->set_combiner(combiner);
  return spec;
}
ModelSpec Classes(ModelSpec spec, int classes, const std::string& loss = "") {
  SetClasses(&spec, classes);
  spec.set_loss(loss);
  return spec;
}
ModelSpec Numbers(ModelSpec spec, const std::string& loss = "") {
  SetNumberLabel(&spec, 3, 2);
  spec.set_loss(loss);
  return spec;
}
ModelSpec WithActivation(const std::string& activation) {
  ModelSpec spec = WithFeatures(DeepSpec({6, 5}));
  SetText(&spec, "model.activation_fn", activation);
  return Classes(spec, 2);
}

std::vector<GradientCase> GradientCases() {
  const auto linear = [] { return WithFeatures(Spec("LinearClassifier")); };
  const auto regressor = [] { return WithFeatures(Spec("LinearRegressor")); };
  const auto wide_deep = [] {
    return WithFeatures(DeepSpec({6, 4}, "DNNLinearCombinedClassifier"));
  };
  std::vector<GradientCase> cases = {
      {"LinearBinary", [=] { return Classes(linear(), 2); }, ClassLabel(2)},
      {"LinearThreeClasses", [=] { return Classes(linear(), 3); }, ClassLabel(3)},
      {"LinearHinge", [=] { return Classes(linear(), 2, "Hinge"); }, ClassLabel(2)},
      {"LinearSquaredHinge", [=] { return Classes(linear(), 2, "SquaredHinge"); }, ClassLabel(2)},
      {"LinearRegression", [=] { return Numbers(regressor()); }, NumberLabel},
      {"Absolute", [=] { return Numbers(regressor(), "MeanAbsoluteError"); }, NumberLabel},
      {"Huber", [=] { return Numbers(regressor(), "huber"); }, NumberLabel},
      {"LogCosh", [=] { return Numbers(regressor(), "LogCosh"); }, NumberLabel},
      {"Poisson", [=] { return Numbers(regressor(), "Poisson"); },
       [](std::mt19937& random) { return static_cast<float>(random() % 9) / 2 - 1.5f; }},
      {"WeightedRows", [=] { return Classes(linear(), 2); }, ClassLabel(2), 1, false, true},
      {"ManyIds", [=] { return Classes(linear(), 2); }, ClassLabel(2), 3},
      {"ManyWeightedIdsMean",
       [=] {
         ModelSpec spec = linear();
         SetText(&spec, "model.sparse_combiner", "mean");
         return Classes(spec, 3);
       },
       ClassLabel(3), 3, true},
      {"DeepThreeClasses",
       [] {
         return Classes(WithFeatures(DeepSpec({6, 5})), 3);
       },
       ClassLabel(3)},
      {"DeepRegression", [] { return Numbers(WithFeatures(DeepSpec({7}, "DNNRegressor"))); },
       NumberLabel},
      {"DeepMean", [] { return Classes(WithFeatures(DeepSpec({6}), "mean"), 2); }, ClassLabel(2),
       3},
      {"DeepSqrtnWeighted", [] { return Classes(WithFeatures(DeepSpec({6}), "sqrtn"), 2); },
       ClassLabel(2), 3, true},
      {"DeepSumWeighted", [] { return Classes(WithFeatures(DeepSpec({6})), 2); }, ClassLabel(2), 3,
       true, true},
      {"OnlyIndicators",
       [] {
         ModelSpec spec = DeepSpec({6, 3});
         AddCategory(&spec, "c", 5, 0);
         return Classes(spec, 2);
       },
       ClassLabel(2), 2},
      {"WideAndDeep", [=] { return Classes(wide_deep(), 2); }, ClassLabel(2)},
      {"WideAndDeepThreeClasses", [=] { return Classes(wide_deep(), 3); }, ClassLabel(3), 2, true},
      {"WideAndDeepParts",
       [=] {
         ModelSpec spec = wide_deep();
         FeaturePlan* plan = spec.mutable_features();
         plan->mutable_features(0)->set_part(Feature::WIDE);
         plan->mutable_features(1)->set_part(Feature::DEEP);
         plan->mutable_features(3)->set_part(Feature::WIDE);
         AddNumber(&spec, "f")->set_part(Feature::WIDE);
         return Classes(spec, 2);
       },
       ClassLabel(2)},
      {"Dropout",
       [] {
         ModelSpec spec = WithFeatures(DeepSpec({8, 6}));
         SetNumber(&spec, "model.dropout", 0.3);
         SetText(&spec, "model.activation_fn", "tanh");
         return Classes(spec, 2);
       },
       ClassLabel(2)},
  };
  for (const char* activation : {"relu", "tanh", "sigmoid", "elu", "leaky_relu", "selu", "gelu"}) {
    cases.push_back({std::string("Activation_") + activation,
                     [activation] { return WithActivation(activation); }, ClassLabel(2)});
  }
  return cases;
}

class GradientTest : public testing::TestWithParam<GradientCase> {
 protected:
  // The slope of the mean loss along one parameter, by central differences; nothing where those of
  // two widths disagree: a kink of relu or of |x| lies between them.
  std::optional<double> Slope(Network* network, ParameterStore* store, const FeatureBatch& batch,
                              float* value) {
    constexpr double kKink = 4e-4;
    const float before = *value;
    const auto mean_loss = [&](float at) {
      *value = at;
      Gradient ignored;
      const LossSum sum = network->Step(batch, store->View(batch), 5, &ignored);
      return sum.loss / sum.weight;
    };
    const auto central = [&](float step) {
      const double slope =
          (mean_loss(before + step) - mean_loss(before - step)) / (2 * static_cast<double>(step));
      *value = before;
      return slope;
    };
    const double wide = central(2.5e-3f);
    const double narrow = central(1e-3f);
    return std::fabs(wide - narrow) > kKink ? std::nullopt : std::optional(wide);
  }
  static double Norm(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) {
      sum += value * value;
    }
    return std::sqrt(sum);
  }
};

TEST_P(GradientTest, IsTheSlopeOfTheLoss) {
  const GradientCase& test = GetParam();
  const auto network = MakeNetwork(test.spec());
  ASSERT_NE(network, nullptr);
  FeatureBatch batch =
      RandomBatch(*network, 23, 3, test.ids_per_row, test.weighted_ids, test.label);
  for (size_t r = 0; test.row_weights && r < batch.rows; ++r) {
    batch.weights.push_back(static_cast<float>(r % 4) * 0.7f);
  }
  ParameterStore store(network.get(), 1);
  // Away from zero: a wide model begins there, and a kink of the hinge or of |x| might too.
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < network->dense().size(); ++i) {
    for (float& value : store.Dense(i)) {
      value += 0.2f * normal(random);
    }
  }
  Gradient gradient;
  const ParameterView view = store.View(batch);
  network->Step(batch, view, 5, &gradient);
  for (size_t t = 0; t < view.tables.size(); ++t) {
    for (const int64_t id : view.tables[t].ids) {
      for (float& value : store.Row(t, id)) {
        value += 0.2f * normal(random);
      }
    }
  }
  network->Step(batch, store.View(batch), 5, &gradient);

  const auto compare = [&](const std::string& name, const std::vector<float>& analytic,
                           const std::vector<float*>& values) {
    std::vector<double> slopes, errors;
    for (size_t i = 0; i < values.size(); ++i) {
      if (const auto slope = Slope(network.get(), &store, batch, values[i])) {
        slopes.push_back(*slope);
        errors.push_back(*slope - static_cast<double>(analytic[i]));
      }
    }
    EXPECT_GE(2 * slopes.size(), values.size()) << name << " is mostly kinks";
    EXPECT_LE(Norm(errors), 0.02 * Norm(slopes) + 2e-4) << name;
    EXPECT_GT(Norm(slopes), 1e-3) << name << " plays no part";
  };
  for (size_t i = 0; i < network->dense().size(); ++i) {
    std::vector<float*> values;
    for (float& value : store.Dense(i)) {
      values.push_back(&value);
    }
    compare(network->dense()[i].name, gradient.dense[i], values);
  }
  for (size_t t = 0; t < network->tables().size(); ++t) {
    const size_t dimension = network->tables()[t].dimension;
    std::vector<float*> values;
    for (const int64_t id : view.tables[t].ids) {
      for (size_t d = 0; d < dimension; ++d) {
        values.push_back(&store.Row(t, id)[d]);
      }
    }
    ASSERT_EQ(gradient.tables[t].size(), values.size());
    compare(network->tables()[t].name, gradient.tables[t], values);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, GradientTest, testing::ValuesIn(GradientCases()),
                         [](const auto& test) { return test.param.name; });

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
  for (int round = 0; round < 3; ++round) {  // nothing is left over from the round before
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
      // Some ids far apart, some neighbours, some repeated.
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
  other->CollectIds(larger, &larger_view);  // whatever was computed before
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
  std::vector<float> all, one;
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
  std::vector<float> predictions;
  const LossSum loss = network->Predict(batch, store.View(batch), &predictions);
  ASSERT_EQ(predictions.size(), 120u);
  double expected = 0;
  for (size_t r = 0; r < 30; ++r) {
    float sum = 0;
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
  std::vector<float> a, b;
  without_dropout->Predict(batch, view, &a);
  with_dropout->Predict(batch, view, &b);
  EXPECT_EQ(a, b);
  Gradient gradient;
  EXPECT_NE(without_dropout->Step(batch, view, 1, &gradient).loss,
            with_dropout->Step(batch, view, 1, &gradient).loss);
}

// 0 0 -> 0, 0 1 -> 1, 1 0 -> 1, 1 1 -> 0, with noise in the numbers.
FeatureBatch XorRows(size_t rows, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise(0, 0.1f);
  FeatureBatch batch;
  batch.rows = rows;
  batch.dense_width = 2;
  for (size_t r = 0; r < rows; ++r) {
    const bool a = random() % 2 == 0;
    const bool b = random() % 2 == 0;
    batch.dense.push_back((a ? 1.0f : 0.0f) + noise(random));
    batch.dense.push_back((b ? 1.0f : 0.0f) + noise(random));
    batch.labels.push_back(a != b ? 1 : 0);
  }
  return batch;
}

double Accuracy(Network* network, ParameterStore* store, const FeatureBatch& batch) {
  std::vector<float> predictions;
  network->Predict(batch, store->View(batch), &predictions);
  size_t right = 0;
  for (size_t r = 0; r < batch.rows; ++r) {
    right += (predictions[r] > 0.5f) == (batch.labels[r] > 0.5f) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(batch.rows);
}

TEST(TrainingTest, DeepLearnsExclusiveOrAndLinearCannot) {
  ModelSpec deep = DeepSpec({16, 8});
  ModelSpec linear = Spec("LinearClassifier");
  for (ModelSpec* spec : {&deep, &linear}) {
    AddNumber(spec, "a");
    AddNumber(spec, "b");
    SetClasses(spec, 2);
  }
  const FeatureBatch test = XorRows(1000, 77);
  const auto accuracy = [&](const ModelSpec& spec) {
    const auto network = MakeNetwork(spec);
    ParameterStore store(network.get(), 5, "Adam", 0.01);
    for (int step = 1; step <= 300; ++step) {
      store.Train(XorRows(64, static_cast<uint32_t>(step)), step);
    }
    return Accuracy(network.get(), &store, test);
  };
  EXPECT_GT(accuracy(deep), 0.98);
  EXPECT_LT(accuracy(linear), 0.8);
}

TEST(TrainingTest, EmbeddingsLearnAPairwiseRule) {
  // The label depends on two categories together: neither alone tells anything.
  ModelSpec spec = DeepSpec({16});
  AddCategory(&spec, "c", 8, 4);
  AddCategory(&spec, "d", 8, 4);
  SetClasses(&spec, 2);
  const auto rows = [](size_t n, uint32_t seed) {
    std::mt19937 random(seed);
    FeatureBatch batch;
    batch.rows = n;
    batch.slots.resize(2);
    for (size_t r = 0; r < n; ++r) {
      const auto c = static_cast<uint32_t>(random() % 8);
      const auto d = static_cast<uint32_t>(random() % 8);
      batch.slots[0].ids.push_back(c);
      batch.slots[1].ids.push_back(d);
      batch.labels.push_back((c ^ d) % 2 == 0 ? 1 : 0);
    }
    return batch;
  };
  const auto network = MakeNetwork(spec);
  ParameterStore store(network.get(), 5, "Adam", 0.01);
  for (int step = 1; step <= 400; ++step) {
    store.Train(rows(64, static_cast<uint32_t>(step)), step);
  }
  EXPECT_GT(Accuracy(network.get(), &store, rows(1000, 999)), 0.98);
}

TEST(TrainingTest, LinearFindsTheTrueWeightsInTheLabelsOwnScale) {
  ModelSpec spec = Spec("LinearRegressor");
  AddNumber(&spec, "a");
  AddNumber(&spec, "b");
  SetNumberLabel(&spec, 100, 10);  // y = 100 + 10 (2 a - 3 b)
  const auto network = MakeNetwork(spec);
  ParameterStore store(network.get(), 1, "SGD", 0.1);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int step = 1; step <= 300; ++step) {
    FeatureBatch batch;
    batch.rows = 32;
    batch.dense_width = 2;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float a = normal(random);
      const float b = normal(random);
      batch.dense.insert(batch.dense.end(), {a, b});
      batch.labels.push_back(2 * a - 3 * b);
    }
    store.Train(batch, step);
  }
  FeatureBatch probe;
  probe.rows = 1;
  probe.dense_width = 2;
  probe.dense = {1, 1};
  std::vector<float> prediction;
  network->Predict(probe, store.View(probe), &prediction);
  EXPECT_NEAR(prediction[0], 90, 0.01);
}

TEST(TrainingTest, PoissonPredictsRatesInTheLabelsOwnScale) {
  ModelSpec spec = Numbers(Spec("LinearRegressor"), "Poisson");
  SetNumberLabel(&spec, 50, 7);
  AddNumber(&spec, "a");
  const auto network = MakeNetwork(spec);
  ParameterStore store(network.get(), 1, "Adam", 0.02);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int step = 1; step <= 600; ++step) {
    FeatureBatch batch;
    batch.rows = 64;
    batch.dense_width = 1;
    for (size_t r = 0; r < batch.rows; ++r) {
      const float a = normal(random);
      const float y = static_cast<float>(
          std::poisson_distribution<int>(std::exp(3.5 + 0.4 * static_cast<double>(a)))(random));
      batch.dense.push_back(a);
      batch.labels.push_back((y - 50) / 7);
    }
    store.Train(batch, step);
  }
  FeatureBatch probe;
  probe.rows = 1;
  probe.dense_width = 1;
  probe.dense = {1};
  std::vector<float> prediction;
  network->Predict(probe, store.View(probe), &prediction);
  EXPECT_NEAR(prediction[0], std::exp(3.9), 2.5);
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
    if (tensor.wide) {
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
      {"BatchNorm",
       [=] {
         ModelSpec spec = deep();
         Attribute* attribute = spec.add_attributes();
         attribute->set_name("model.batch_norm");
         attribute->set_flag(true);
         return spec;
       },
       "model.batch_norm is not supported", "0A000"},
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
