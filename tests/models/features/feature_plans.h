#pragma once

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/features/feature_transform.h"
#include "models/model.pb.h"

// Builders of feature plans and row batches for the tests of the feature transform.
namespace sluice::models {

inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A batch column with these cells; nullopt is NULL. Texts must be literals.
inline RowBatch::Column Texts(std::vector<std::optional<std::string_view>> cells) {
  RowBatch::Column column;
  column.type = DataType::kText;
  for (const auto& cell : cells) {
    column.null.push_back(cell.has_value() ? 0 : 1);
    column.texts.push_back(cell.value_or("stale"));
  }
  return column;
}
inline RowBatch::Column Integers(std::vector<std::optional<int64_t>> cells,
                                 DataType type = DataType::kInt64) {
  RowBatch::Column column;
  column.type = type;
  for (const auto& cell : cells) {
    column.null.push_back(cell.has_value() ? 0 : 1);
    column.int64s.push_back(cell.value_or(-77));
  }
  return column;
}
inline RowBatch::Column Doubles(std::vector<std::optional<double>> cells) {
  RowBatch::Column column;
  column.type = DataType::kDouble;
  for (const auto& cell : cells) {
    column.null.push_back(cell.has_value() ? 0 : 1);
    column.doubles.push_back(cell.value_or(-77));
  }
  return column;
}
inline RowBatch Batch(std::vector<RowBatch::Column> columns) {
  RowBatch batch;
  batch.rows = columns.empty() ? 0 : columns.front().null.size();
  batch.columns = std::move(columns);
  return batch;
}

inline void AddInput(const std::string& name, FeaturePlan* plan) {
  plan->add_inputs()->set_name(name);
}
inline FeaturePlan PlanOf(std::initializer_list<const char*> inputs) {
  FeaturePlan plan;
  for (const char* input : inputs) {
    AddInput(input, &plan);
  }
  return plan;
}
inline Feature* Numeric(FeaturePlan* plan, uint32_t input = 0) {
  Feature* feature = plan->add_features();
  feature->set_name("f");
  feature->add_inputs(input);
  feature->set_kind(Feature::NUMERIC);
  feature->set_scale(1);
  return feature;
}
inline Feature* Category(FeaturePlan* plan, Categorizer::Kind kind, uint32_t buckets) {
  Feature* feature = plan->add_features();
  feature->set_name("f");
  feature->add_inputs(0);
  feature->set_kind(Feature::CATEGORY);
  feature->set_representation(Feature::INDICATOR);
  feature->mutable_categorizer()->set_kind(kind);
  feature->mutable_categorizer()->set_buckets(buckets);
  feature->mutable_categorizer()->set_null_bucket(-1);
  feature->mutable_categorizer()->set_oov_bucket(-1);
  return feature;
}

inline std::unique_ptr<FeatureTransform> Make(
    const FeaturePlan& plan, FeatureTransform::Target target = FeatureTransform::Target::kNetwork) {
  Result<std::unique_ptr<FeatureTransform>> made = FeatureTransform::Make(plan, target);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return std::move(made).value();
}
inline Status MakeStatus(const FeaturePlan& plan) {
  return FeatureTransform::Make(plan, FeatureTransform::Target::kNetwork).status();
}
inline FeatureBatch Apply(const FeaturePlan& plan, const RowBatch& batch,
                          FeatureTransform::Target target = FeatureTransform::Target::kNetwork,
                          bool with_label = false) {
  FeatureBatch out;
  const Status status = Make(plan, target)->Apply(batch, with_label, &out);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return out;
}
inline Status ApplyStatus(const FeaturePlan& plan, const RowBatch& batch, bool with_label = false) {
  FeatureBatch out;
  return Make(plan)->Apply(batch, with_label, &out);
}
inline IdSlot ApplySlot(const FeaturePlan& plan, const RowBatch& batch) {
  return Apply(plan, batch).slots.at(0);
}

}  // namespace sluice::models
