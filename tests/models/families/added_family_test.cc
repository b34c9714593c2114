#include <gtest/gtest.h>

#include "tests/models/families/family_specs.h"

// tests/models/families/added holds one family in one file, which the build finds as it finds those
// of models/families (cmake/families.cmake).
namespace sluice::models {
namespace families {
std::vector<ModelType> AddedTypes();
}

namespace {

TEST(AddedFamily, OneFileIsAClassifierAndARegressorWithAllAttributes) {
  const std::vector<ModelType> types = families::AddedTypes();
  ASSERT_EQ(types.size(), 2U);
  EXPECT_EQ(types[0].name, "TwoMeansClassifier");
  EXPECT_EQ(types[1].name, "TwoMeansRegressor");
  for (const char* name : {"model.factor", "model.loss", "optimizer.learning_rate", "train.epoch",
                           "engine.num_workers", "model.weight_column"}) {
    EXPECT_NE(FindAttribute(types[0], name), nullptr) << name;
  }
  ModelSpec spec = OfType(types[0], WithFeatures(Spec("")));
  Build(types[0], &spec);
  const auto network = MakeNetwork(spec);
  ASSERT_NE(network, nullptr);
  EXPECT_EQ(network->parameter_count(), 3);
}

TEST(AddedFamily, IsNoneOfThoseThatShip) {
  EXPECT_EQ(FindModelType("TwoMeansClassifier"), nullptr);
}

}  // namespace
}  // namespace sluice::models
