#include "executor/management/model_description.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "catalog/model_store.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

std::string ValueOf(const std::vector<DescriptionLine>& lines, std::string_view section,
                    std::string_view name) {
  const auto line = std::find_if(lines.begin(), lines.end(), [&](const DescriptionLine& any) {
    return any.section == section && any.name == name;
  });
  return line == lines.end() ? "(none)" : line->value;
}

TEST(ModelDescription, TellsFeaturesAttributesMetricsAndLineage) {
  catalog::ModelVersion version;
  version.name = "m";
  version.version = 3;
  version.live = true;
  version.type = "DNNClassifier";
  version.statement = "SELECT 1";
  version.metrics = {{"auc", 0.91}};
  plan::TrainPlan plan;
  plan.set_parameter_count(1234);
  models::ModelSpec* model = plan.mutable_model();
  models::LabelPlan* label = model->mutable_features()->mutable_label();
  label->set_kind(models::LabelPlan::CLASS);
  label->set_column("income");
  label->add_classes("<=50K");
  label->add_classes(">50K");
  models::Feature* age = model->mutable_features()->add_features();
  age->set_name("age");
  age->set_null_indicator(true);
  models::Feature* job = model->mutable_features()->add_features();
  job->set_name("occupation");
  job->set_kind(models::Feature::CATEGORY);
  job->set_representation(models::Feature::EMBEDDING);
  job->set_dimension(8);
  job->set_part(models::Feature::DEEP);
  job->mutable_categorizer()->set_kind(models::Categorizer::HASH);
  job->mutable_categorizer()->set_buckets(100);
  models::Attribute* units = model->add_attributes();
  units->set_name("model.hidden_units");
  units->mutable_numbers()->add_values(64);
  units->mutable_numbers()->add_values(32);
  const auto lines = DescribeVersion(version, plan);
  EXPECT_EQ(ValueOf(lines, "model", "version"), "3 (live)");
  EXPECT_EQ(ValueOf(lines, "model", "label"), "income with 2 classes: <=50K, >50K");
  EXPECT_EQ(ValueOf(lines, "model", "parameters"), "1234");
  EXPECT_EQ(ValueOf(lines, "feature", "age"), "numeric, NULL indicator");
  EXPECT_EQ(ValueOf(lines, "feature", "occupation"),
            "category, hashed into 100, embedding of 8, deep part only");
  EXPECT_EQ(ValueOf(lines, "chosen", "model.hidden_units"), "[64, 32]");
  EXPECT_EQ(ValueOf(lines, "metric", "auc"), "0.91");
  EXPECT_EQ(ValueOf(lines, "lineage", "statement"), "SELECT 1");
}

}  // namespace
}  // namespace sluice::executor
