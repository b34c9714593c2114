#include "models/registry/unknown_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/registry/registry.h"

namespace sluice::models {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using ::testing::StrEq;

TEST(UnknownType, OtherLibrariesNames) {
  const std::pair<const char*, const char*> known[] = {
      {"RandomForestClassifier", "XGBRFClassifier"},
      {"sklearn.ensemble.RandomForestRegressor", "XGBRFRegressor"},
      {"LGBMClassifier", "XGBClassifier"},
      {"LogisticRegression", "LinearClassifier"},
      {"Ridge", "LinearRegressor"},
      {"mlpclassifier", "DNNClassifier"},
      {"DNNClasifier", "DNNClassifier"},
      {"a/zoo:v0.1/DNNClassifier", "DNNClassifier"}};
  for (const auto& [name, ours] : known) {
    const MeantType meant = WhatTypeIsMeant(name, {});
    EXPECT_THAT(meant.name, Optional(StrEq(ours))) << name;
    EXPECT_THAT(meant.hint, HasSubstr(ours)) << name;
    EXPECT_NE(FindModelType(*meant.name), nullptr) << name;
  }
}

TEST(UnknownType, AnAlikePrefixIsNoNearMiss) {
  for (const char* name : {"sqlflow_models.OneClassSVM", "OneClassSVM",
                           "sqlflow_models.StackedBiLSTMClassifier", "KMeans", "nonsense"}) {
    const MeantType meant = WhatTypeIsMeant(name, {"my.Net"});
    EXPECT_EQ(meant.name, std::nullopt) << name << meant.hint;
    EXPECT_THAT(meant.hint, HasSubstr("SHOW MODEL TYPES")) << name;
  }
  EXPECT_THAT(WhatTypeIsMeant("my.Nett", {"my.Net"}).hint, StrEq("did you mean 'my.Net'?"));
}

}  // namespace
}  // namespace sluice::models
