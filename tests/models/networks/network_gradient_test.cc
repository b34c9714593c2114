#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/models/families/family_specs.h"
#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

struct GradientCase {
  std::string name;
  std::function<ModelSpec()> spec;
  std::function<float(std::mt19937&)> label;
  size_t ids_per_row = 1;
  bool weighted_ids = false;
  bool row_weights = false;
};

// Two numbers, an embedding, an indicator, and an embedding of other width.

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
  for (const ModelType* type : BuiltTypes()) {
    if (!type->build || type->task != ModelTask::kClassification) {
      continue;  // batch normalisation's statistics have no slope
    }
    for (const int classes : {2, 3}) {
      cases.push_back({fmt::format("{}Of{}", type->name, classes),
                       [type, classes] {
                         ModelSpec spec = DeepSpec({6, 4}, type->name);
                         SetText(&spec, "model.activation_fn", "tanh");  // without kinks
                         spec = OfType(*type, WithFeatures(spec), classes);
                         Build(*type, &spec);
                         return spec;
                       },
                       ClassLabel(classes), classes == 2 ? 1U : 2U});
    }
  }
  return cases;
}

class GradientTest : public testing::TestWithParam<GradientCase> {
 protected:
  // The derivative of the mean loss by one parameter, by central differences; nothing if two step
  // widths disagree: then a kink of relu or of |x| lies between them.
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
  // Away from zero, where a wide model begins and the hinge or |x| may have a kink.
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

}  // namespace
}  // namespace sluice::models
