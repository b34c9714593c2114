#include "models/registry/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/model.pb.h"
#include "models/networks/loss.h"

namespace sluice::models {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

const ModelType& Type(std::string_view name) {
  const ModelType* type = FindModelType(name);
  EXPECT_NE(type, nullptr) << name;
  return *type;
}

TEST(RegistryTest, FindsEveryTypeOfSqlflowInAnyCaseAndByAlias) {
  for (const char* name : {"LinearClassifier",
                           "LinearRegressor",
                           "DNNClassifier",
                           "DNNRegressor",
                           "DNNLinearCombinedClassifier",
                           "DNNLinearCombinedRegressor",
                           "xgboost.gbtree",
                           "xgboost.dart",
                           "xgboost.gblinear",
                           "XGBClassifier",
                           "XGBRegressor",
                           "XGBRFClassifier",
                           "XGBRFRegressor",
                           "XGBRanker",
                           "sqlflow_models.DNNClassifier",
                           "sqlflow_models.DNNRegressor",
                           "BoostedTreesClassifier",
                           "BoostedTreesRegressor",
                           "AutoClassifier",
                           "AutoRegressor",
                           "dnnclassifier_functional_model",
                           "RawDNNClassifier"}) {
    ASSERT_NE(FindModelType(name), nullptr) << name;
    EXPECT_EQ(FindModelType(name)->name, name);
  }
  EXPECT_EQ(Type("dnnclassifier").name, "DNNClassifier");
  EXPECT_EQ(Type("XGBOOST.GBTREE").name, "xgboost.gbtree");
  EXPECT_EQ(Type("xgboost.XGBRanker").name, "XGBRanker");
  EXPECT_EQ(Type("sqlflow_models.AutoClassifier").name, "AutoClassifier");
  EXPECT_EQ(FindModelType("xgboost.foo"), nullptr);
  EXPECT_EQ(FindModelType("DNNRegressora"), nullptr);
}

TEST(RegistryTest, NoNameOrAliasStandsTwice) {
  std::set<std::string> types;
  for (const ModelType& type : ModelTypes()) {
    EXPECT_TRUE(types.insert(type.name).second) << type.name;
    for (const std::string& alias : type.aliases) {
      EXPECT_TRUE(types.insert(alias).second) << alias;
    }
    std::set<std::string> names;
    for (const AttributeSpec& spec : type.attributes) {
      EXPECT_TRUE(names.insert(spec.name).second) << type.name << " " << spec.name;
      for (const std::string& alias : spec.aliases) {
        EXPECT_TRUE(names.insert(alias).second) << type.name << " " << alias;
      }
    }
  }
}

TEST(RegistryTest, EveryAttributeIsDocumentedInOneLineAndItsDefaultIsInRange) {
  std::vector<AttributeSpec> all;
  for (const ModelType& type : ModelTypes()) {
    EXPECT_FALSE(type.doc.empty()) << type.name;
    all.insert(all.end(), type.attributes.begin(), type.attributes.end());
  }
  for (const char* kind : {"auto", "tune", "predict", "evaluate", "explain"}) {
    const std::vector<AttributeSpec>& specs = StatementAttributes(kind);
    EXPECT_FALSE(specs.empty()) << kind;
    all.insert(all.end(), specs.begin(), specs.end());
  }
  for (const AttributeSpec& spec : all) {
    EXPECT_FALSE(spec.doc.empty()) << spec.name;
    EXPECT_EQ(spec.doc.find('\n'), std::string::npos) << spec.name;
    double number = 0;
    if (const auto* integer = std::get_if<int64_t>(&spec.default_value)) {
      EXPECT_EQ(spec.type, AttributeType::kInteger) << spec.name;
      number = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&spec.default_value)) {
      EXPECT_EQ(spec.type, AttributeType::kNumber) << spec.name;
      number = *real;
    } else {
      const auto* text = std::get_if<std::string>(&spec.default_value);
      if (text != nullptr && !spec.allowed.empty()) {
        EXPECT_THAT(spec.allowed, Contains(*text)) << spec.name;
      }
      continue;
    }
    EXPECT_GE(number, spec.min.value_or(number)) << spec.name;
    EXPECT_LE(number, spec.max.value_or(number)) << spec.name;
  }
}

TEST(RegistryTest, HiddenUnitsHaveADefault) {
  for (const auto& [type, name] : {std::pair("DNNClassifier", "model.hidden_units"),
                                   {"DNNLinearCombinedRegressor", "model.dnn_hidden_units"}}) {
    const AttributeSpec* hidden = FindAttribute(Type(type), name);
    EXPECT_FALSE(hidden->required);
    EXPECT_EQ(std::get<std::vector<double>>(hidden->default_value), (std::vector<double>{128, 64}));
  }
  const AttributeSpec* zoo =
      FindAttribute(Type("sqlflow_models.DNNClassifier"), "model.hidden_units");
  EXPECT_FALSE(zoo->required);
  EXPECT_EQ(std::get<std::vector<double>>(zoo->default_value), (std::vector<double>{100, 100}));
}

TEST(RegistryTest, RangesAreSqlflows) {
  const ModelType& trees = Type("xgboost.gbtree");
  EXPECT_EQ(FindAttribute(trees, "eta")->min, 0);
  EXPECT_EQ(FindAttribute(trees, "eta")->max, 1);
  EXPECT_EQ(std::get<double>(FindAttribute(trees, "eta")->default_value), 0.3);
  EXPECT_EQ(FindAttribute(trees, "num_class")->min, 2);
  EXPECT_GT(FindAttribute(trees, "huber_slope")->min, 0) << "it is a divisor";
  EXPECT_EQ(FindAttribute(trees, "train.num_boost_round")->min, 1);
  EXPECT_EQ(std::get<int64_t>(FindAttribute(trees, "train.num_boost_round")->default_value), 100);
  EXPECT_EQ(FindAttribute(trees, "train.batch_size")->min, -1);
  const ModelType& deep = Type("DNNClassifier");
  EXPECT_EQ(FindAttribute(deep, "train.batch_size")->min, 1);
  EXPECT_EQ(FindAttribute(deep, "train.epoch")->min, 1);
  EXPECT_EQ(FindAttribute(deep, "train.verbose")->max, 2);
  EXPECT_EQ(FindAttribute(deep, "train.save_checkpoints_steps")->min, 1);
  EXPECT_EQ(FindAttribute(deep, "model.n_classes")->type, AttributeType::kInteger);
}

TEST(RegistryTest, TakesWhatSqlflowDocumentsButRejects) {
  const ModelType& trees = Type("xgboost.gbtree");
  for (const char* name : {"tree_method", "lambda", "alpha", "num_parallel_tree", "grow_policy",
                           "max_leaves", "train.early_stopping_rounds", "train.num_workers"}) {
    EXPECT_NE(FindAttribute(trees, name), nullptr) << name;
  }
  EXPECT_NE(FindAttribute(Type("xgboost.dart"), "sample_type"), nullptr);
  EXPECT_NE(FindAttribute(Type("xgboost.gblinear"), "feature_selector"), nullptr);
  EXPECT_NE(FindAttribute(Type("DNNClassifier"), "train.num_workers"), nullptr);
  EXPECT_EQ(FindAttribute(trees, "n_estimators")->name, "train.num_boost_round");
  EXPECT_EQ(FindAttribute(trees, "learning_rate")->name, "eta");
  EXPECT_TRUE(CanonicalChoice(*FindAttribute(trees, "objective"), "count:poisson").has_value());
}

TEST(RegistryTest, ARandomForestIsAForest) {
  const ModelType& forest = Type("XGBRFClassifier");
  EXPECT_EQ(std::get<double>(FindAttribute(forest, "eta")->default_value), 1);
  EXPECT_EQ(std::get<double>(FindAttribute(forest, "subsample")->default_value), 0.8);
  EXPECT_EQ(std::get<double>(FindAttribute(forest, "colsample_bynode")->default_value), 0.8);
  EXPECT_EQ(std::get<int64_t>(FindAttribute(forest, "train.num_boost_round")->default_value), 100);
}

TEST(RegistryTest, OptimizersAreAClosedSetWithTheirArguments) {
  const ModelType& deep = Type("DNNClassifier");
  const AttributeSpec* optimizer = FindAttribute(deep, "model.optimizer");
  EXPECT_EQ(CanonicalChoice(*optimizer, "adam"), "Adam");
  EXPECT_EQ(CanonicalChoice(*optimizer, "rmsprop"), "RMSprop");
  EXPECT_EQ(CanonicalChoice(*optimizer, "__import__('os').system('id') or Adam"), std::nullopt);
  const AttributeSpec* rate = FindAttribute(deep, "optimizer.learning_rate");
  ASSERT_NE(rate, nullptr);
  EXPECT_THAT(rate->doc, HasSubstr("Adam 0.001"));
  EXPECT_THAT(rate->doc, HasSubstr("SGD 0.01"));
  EXPECT_EQ(FindAttribute(deep, "optimizer.nesterov")->type, AttributeType::kFlag);
  const ModelType& wide = Type("DNNLinearCombinedClassifier");
  EXPECT_NE(FindAttribute(wide, "dnn_optimizer.learning_rate"), nullptr);
  EXPECT_NE(FindAttribute(wide, "linear_optimizer.l1_regularization_strength"), nullptr);
  EXPECT_EQ(FindAttribute(wide, "optimizer.learning_rate"), nullptr);
}

TEST(RegistryTest, EveryLossThatMayBeAskedForExists) {
  for (const char* type : {"DNNClassifier", "LinearRegressor"}) {
    for (const std::string& loss : FindAttribute(Type(type), "model.loss")->allowed) {
      ModelSpec spec;
      spec.set_type(type);
      spec.set_loss(loss);
      Attribute* quantiles = spec.add_attributes();
      quantiles->set_name("model.quantiles");
      quantiles->mutable_numbers()->add_values(0.5);
      LabelPlan* label = spec.mutable_features()->mutable_label();
      const bool classes = Type(type).task == ModelTask::kClassification;
      label->set_kind(classes ? LabelPlan::CLASS : LabelPlan::NUMBER);
      label->set_mean(1);
      label->set_scale(1);
      label->add_classes("a");
      label->add_classes("b");
      const Status status = Loss::Make(spec).status();
      EXPECT_TRUE(status.ok()) << type << " " << loss << ": " << status.ToString();
    }
  }
}

TEST(RegistryTest, UnknownAttributesGetAHint) {
  const ModelType& deep = Type("DNNClassifier");
  EXPECT_EQ(UnknownAttributeHint(deep, "hidden_units"), "did you mean 'model.hidden_units'?");
  EXPECT_EQ(UnknownAttributeHint(deep, "train.epochs"), "did you mean 'train.epoch'?");
  EXPECT_THAT(UnknownAttributeHint(deep, "model.feature_columns"), HasSubstr("COLUMN"));
  EXPECT_EQ(UnknownAttributeHint(deep, "x.y"), "");
  const ModelType& trees = Type("xgboost.gbtree");
  EXPECT_THAT(UnknownAttributeHint(trees, "booster"), HasSubstr("xgboost.dart"));
  EXPECT_EQ(UnknownAttributeHint(trees, "num_boost_round"),
            "did you mean 'train.num_boost_round'?");
  EXPECT_EQ(UnknownAttributeHint(trees, "model.max_depth"), "did you mean 'max_depth'?");
  EXPECT_THAT(UnknownAttributeHint(Type("xgboost.gblinear"), "max_depth"),
              HasSubstr("grows no trees"));
}

TEST(RegistryTest, ChoicesKeepTheirNumber) {
  const AttributeSpec* metric = FindAttribute(Type("XGBRanker"), "eval_metric");
  EXPECT_EQ(CanonicalChoice(*metric, "NDCG@10"), "ndcg@10");
  EXPECT_EQ(CanonicalChoice(*metric, "ndcg@10-"), "ndcg@10-");
  EXPECT_EQ(CanonicalChoice(*metric, "error@0.7"), "error@0.7");
  EXPECT_EQ(CanonicalChoice(*metric, "auc"), "auc");
  EXPECT_EQ(CanonicalChoice(*metric, "ndcg@"), std::nullopt);
  EXPECT_EQ(CanonicalChoice(*metric, "ndcg@ten"), std::nullopt);
  EXPECT_EQ(CanonicalChoice(*metric, "accuracy_score"), std::nullopt);
}

TEST(RegistryTest, ObjectivesFitTheTask) {
  EXPECT_FALSE(
      CanonicalChoice(*FindAttribute(Type("XGBRanker"), "objective"), "reg:linear").has_value());
  EXPECT_FALSE(
      CanonicalChoice(*FindAttribute(Type("XGBClassifier"), "objective"), "rank:ndcg").has_value());
  const AttributeSpec* any = FindAttribute(Type("xgboost.gbtree"), "objective");
  for (const char* objective :
       {"binary:hinge", "binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob",
        "rank:map", "rank:ndcg", "rank:pairwise", "reg:gamma", "reg:linear", "reg:logistic",
        "reg:squarederror", "reg:squaredlogerror", "reg:tweedie", "survival:cox"}) {
    EXPECT_EQ(CanonicalChoice(*any, objective), objective);
  }
  EXPECT_EQ(CanonicalChoice(*any, "bad"), std::nullopt);
  EXPECT_EQ(Type("XGBRanker").default_objective, "rank:pairwise");
  EXPECT_EQ(Type("XGBRFClassifier").default_objective, "multi:softprob");
}

}  // namespace
}  // namespace sluice::models
