#include "models/features/feature_transform.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/features/category_feature_internal.h"
#include "models/features/dense_feature_internal.h"
#include "models/features/label_reader_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

// Limit of floats per row; batches of wider rows would not fit a worker.
constexpr size_t kWidestRow = 1U << 22;

class PlanTransform final : public FeatureTransform {
 public:
  Status Build(const FeaturePlan& plan, Target target);

  std::vector<std::string> ColumnNames(bool with_label) const override;
  Status Apply(const RowBatch& batch, bool with_label, FeatureBatch* out) const override;
  const std::vector<DenseColumn>& dense_columns() const override { return dense_columns_; }
  const std::vector<SlotColumn>& slots() const override { return slot_columns_; }
  size_t dense_width() const override { return dense_width_; }
  size_t label_width() const override { return label_.width(); }

 private:
  Status Add(const FeaturePlan& plan, int position, Target target);
  Status AddDense(const FeaturePlan& plan, int position, Target target);
  Status AddCategory(const FeaturePlan& plan, int position);
  void CheckColumns(const RowBatch& batch, bool with_label) const;
  Status ApplyTargets(const RowBatch& batch, FeatureBatch* out) const;

  std::vector<std::string> inputs_;
  std::vector<DenseFeature> dense_;
  std::vector<DenseColumn> dense_columns_;
  size_t dense_width_ = 0;
  std::vector<CategoryFeature> categories_;
  std::vector<SlotColumn> slot_columns_;
  size_t scratch_slots_ = 0;
  LabelReader label_;
  std::string label_column_;          // "" if there is none
  std::vector<float> class_weights_;  // empty: all classes weigh 1
  std::string exposure_column_;
  double exposure_unit_ = 1;
  std::string weight_column_;
  std::string group_column_;
};

Status PlanTransform::Build(const FeaturePlan& plan, Target target) {
  for (const InputColumn& input : plan.inputs()) {
    inputs_.push_back(input.name());
  }
  for (int i = 0; i < plan.features_size(); ++i) {
    Status status = Add(plan, i, target);
    if (!status.ok()) {
      return std::move(status).Because(fmt::format("feature '{}'", plan.features(i).name()));
    }
  }
  ASSIGN_OR_RETURN(label_, LabelReader::Make(plan.label()));
  label_column_ = label_.width() == 0 ? "" : plan.label().column();
  weight_column_ = plan.weight_column();
  exposure_column_ = plan.exposure_column();
  if (plan.exposure_unit() != 0) {
    exposure_unit_ = plan.exposure_unit();
  }
  if (!(exposure_unit_ > 0) || !std::isfinite(exposure_unit_)) {
    return InvalidArgument(fmt::format("the unit of an exposure cannot be {}", exposure_unit_));
  }
  const LabelPlan& label = plan.label();
  if (label.class_weights_size() > 0 && label.class_weights_size() != label.classes_size()) {
    return InvalidArgument(
        fmt::format("{} weights for {} classes", label.class_weights_size(), label.classes_size()));
  }
  for (const double weight : label.class_weights()) {
    if (!(weight > 0) || !std::isfinite(weight)) {
      return InvalidArgument(fmt::format("a class cannot weigh {}", weight));
    }
    class_weights_.push_back(static_cast<float>(weight));
  }
  group_column_ = plan.group_column();
  return OkStatus();
}

Status PlanTransform::Add(const FeaturePlan& plan, int position, Target target) {
  const Feature& feature = plan.features(position);
  for (const uint32_t input : feature.inputs()) {
    if (input >= static_cast<uint32_t>(plan.inputs_size())) {
      return InvalidArgument(
          fmt::format("input {} is not one of {} columns", input, plan.inputs_size()));
    }
  }
  switch (feature.kind()) {
    case Feature::NUMERIC:
    case Feature::TENSOR:
      return AddDense(plan, position, target);
    case Feature::CATEGORY:
      return AddCategory(plan, position);
    default:
      return InvalidArgument(fmt::format("unknown kind {}", static_cast<int>(feature.kind())));
  }
}

Status PlanTransform::AddDense(const FeaturePlan& plan, int position, Target target) {
  const Feature& feature = plan.features(position);
  if (feature.inputs_size() != 1) {
    return InvalidArgument(fmt::format("{} inputs, expected 1", feature.inputs_size()));
  }
  const InputColumn& input = plan.inputs(static_cast<int>(feature.inputs(0)));
  ASSIGN_OR_RETURN(DenseFeature made, DenseFeature::Make(feature, input, target));
  DenseColumn column;
  column.feature = static_cast<size_t>(position);
  column.offset = dense_width_;
  column.width = made.width();
  column.in_wide = feature.part() != Feature::DEEP;
  column.in_deep = feature.part() != Feature::WIDE;
  dense_width_ += made.width();
  if (dense_width_ > kWidestRow) {
    return InvalidArgument(fmt::format("more than {} numbers in one row", kWidestRow));
  }
  dense_.push_back(std::move(made));
  dense_columns_.push_back(column);
  return OkStatus();
}

Status PlanTransform::AddCategory(const FeaturePlan& plan, int position) {
  const Feature& feature = plan.features(position);
  ASSIGN_OR_RETURN(CategoryFeature made, CategoryFeature::Make(plan, feature));
  SlotColumn column;
  column.feature = static_cast<size_t>(position);
  column.buckets = made.buckets();
  column.embedding = feature.representation() == Feature::EMBEDDING;
  column.dimension = feature.dimension();
  column.combiner = feature.combiner();
  column.initializer = feature.initializer();
  column.in_wide = feature.part() != Feature::DEEP;
  column.in_deep = feature.part() != Feature::WIDE;
  if (column.embedding && column.dimension == 0) {
    return InvalidArgument("an embedding needs a dimension");
  }
  scratch_slots_ = std::max(scratch_slots_, made.members() > 1 ? made.members() : 0);
  categories_.push_back(std::move(made));
  slot_columns_.push_back(std::move(column));
  return OkStatus();
}

std::vector<std::string> PlanTransform::ColumnNames(bool with_label) const {
  std::vector<std::string> names = inputs_;
  if (!exposure_column_.empty()) {
    names.push_back(exposure_column_);
  }
  if (with_label) {
    for (const std::string* name : {&label_column_, &weight_column_, &group_column_}) {
      if (!name->empty()) {
        names.push_back(*name);
      }
    }
  }
  return names;
}

void PlanTransform::CheckColumns(const RowBatch& batch, bool with_label) const {
  size_t expected = inputs_.size() + (exposure_column_.empty() ? 0U : 1U);
  if (with_label) {
    expected += (label_column_.empty() ? 0U : 1U) + (weight_column_.empty() ? 0U : 1U) +
                (group_column_.empty() ? 0U : 1U);
  }
  SLUICE_CHECK(batch.columns.size() == expected, "a batch without the columns of its transform");
}

Status PlanTransform::ApplyTargets(const RowBatch& batch, FeatureBatch* out) const {
  size_t at = inputs_.size() + (exposure_column_.empty() ? 0U : 1U);
  if (!label_column_.empty()) {
    RETURN_IF_ERROR(label_.Apply(batch.columns[at++], batch.rows, out));
  }
  if (!weight_column_.empty()) {
    RETURN_IF_ERROR(ReadWeights(weight_column_, batch.columns[at++], batch.rows, &out->weights));
  }
  if (!class_weights_.empty() && !out->labels.empty()) {
    out->weights.resize(batch.rows, 1);
    for (size_t row = 0; row < batch.rows; ++row) {
      out->weights[row] *= class_weights_[static_cast<size_t>(out->labels[row])];
    }
  }
  if (!group_column_.empty()) {
    RETURN_IF_ERROR(ReadGroups(group_column_, batch.columns[at], batch.rows, &out->groups));
  }
  return OkStatus();
}

Status PlanTransform::Apply(const RowBatch& batch, bool with_label, FeatureBatch* out) const {
  CheckColumns(batch, with_label);
  out->rows = batch.rows;
  out->dense_width = dense_width_;
  out->dense.resize(batch.rows * dense_width_);
  out->odd.clear();
  out->unknown.clear();
  for (size_t i = 0; i < dense_.size(); ++i) {
    OddCells odd;
    RETURN_IF_ERROR(dense_[i].Apply(batch.columns[dense_[i].input()], batch.rows, with_label,
                                    out->dense.data() + dense_columns_[i].offset, dense_width_,
                                    &odd));
    if (odd.cells > 0) {
      odd.column = inputs_[dense_[i].input()];
      AddOdd(std::move(odd), &out->odd);
    }
  }
  out->slots.resize(categories_.size());
  if (out->scratch.size() < scratch_slots_) {
    out->scratch.resize(scratch_slots_);
  }
  for (size_t i = 0; i < categories_.size(); ++i) {
    RETURN_IF_ERROR(categories_[i].Apply(batch, &out->slots[i], &out->scratch));
    OddCells unknown = categories_[i].Unknown(batch, out->slots[i]);
    if (unknown.cells > 0) {
      unknown.column = inputs_[categories_[i].input()];
      AddOdd(std::move(unknown), &out->unknown);
    }
  }
  out->offsets.clear();
  if (!exposure_column_.empty()) {
    RETURN_IF_ERROR(ReadExposures(exposure_column_, exposure_unit_, batch.columns[inputs_.size()],
                                  batch.rows, &out->offsets));
  }
  out->labels.clear();
  out->label_numbers.clear();
  out->weights.clear();
  out->groups.clear();
  return with_label ? ApplyTargets(batch, out) : OkStatus();
}

}  // namespace

Result<std::unique_ptr<FeatureTransform>> FeatureTransform::Make(const FeaturePlan& plan,
                                                                 Target target) {
  auto transform = std::make_unique<PlanTransform>();
  RETURN_IF_ERROR(transform->Build(plan, target));
  return std::unique_ptr<FeatureTransform>(std::move(transform));
}

}  // namespace sluice::models
