#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/row_batch.h"
#include "catalog/model_record.h"
#include "executor/scoring/prediction_columns.h"
#include "executor/scoring/scorer.h"
#include "models/checksum_internal.h"
#include "models/features/label_scale.h"
#include "models/metrics/metric.h"
#include "models/model.pb.h"
#include "planner/plan.pb.h"
#include "planner/stored_plan.h"
#include "tests/fuzz/target.h"

// From a possibly forged row of model_versions and its chunks to a scored batch: it is refused, or
// its predictions and metrics have the shape that the plan promises.
namespace sluice {
namespace {

constexpr size_t kRows = 5;

void Require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "%s\n", what);
    std::abort();
  }
}

// plan, weights, metrics: each preceded by its length in four bytes, the last one to the end.
std::string_view TakePart(std::string_view* rest) {
  uint32_t size = 0;
  if (rest->size() < sizeof(size)) {
    return std::exchange(*rest, {});
  }
  std::memcpy(&size, rest->data(), sizeof(size));
  rest->remove_prefix(sizeof(size));
  const std::string_view part = rest->substr(0, size);
  rest->remove_prefix(part.size());
  return part;
}

// Adds the right checksum, as an attacker would.
std::string Sealed(std::string_view weights) {
  std::string bytes(weights);
  uint64_t checksum = 0;
  constexpr size_t kMagic = 4;
  if (bytes.starts_with("SLXG") && bytes.size() >= kMagic + sizeof(checksum)) {
    checksum = models::ChecksumOf(std::string_view(bytes).substr(kMagic + sizeof(checksum)));
    std::memcpy(bytes.data() + kMagic, &checksum, sizeof(checksum));
  } else if (bytes.starts_with("SLWT") && bytes.size() >= kMagic + sizeof(checksum)) {
    const size_t body = bytes.size() - sizeof(checksum);
    checksum = models::ChecksumOf(std::string_view(bytes).substr(0, body));
    std::memcpy(bytes.data() + body, &checksum, sizeof(checksum));
  }
  return bytes;
}

// Rows that a table could hold: every column has its type from the plan.
RowBatch SomeRows(const models::FeaturePlan& plan, const std::vector<std::string>& names) {
  static constexpr std::string_view kTexts[] = {"1", "1,2,3", "0:0.5 3:2", "t", "2014-04-01 12:30"};
  static constexpr double kNumbers[] = {0, 1, -2.5, 1e300, 3};
  Schema schema;
  for (size_t i = 0; i < names.size(); ++i) {
    DataType type = DataType::kDouble;
    if (i < static_cast<size_t>(plan.inputs_size())) {
      type = static_cast<DataType>(plan.inputs(static_cast<int>(i)).type());
    } else if (names[i] == plan.label().column()) {
      type = static_cast<DataType>(plan.label().type());
    }
    schema.columns.push_back({names[i], type, ""});
  }
  RowBatch batch;
  batch.Reset(schema, kRows);
  batch.rows = kRows;
  for (size_t c = 0; c < batch.columns.size(); ++c) {
    RowBatch::Column& column = batch.columns[c];
    for (size_t row = 0; row < kRows; ++row) {
      column.null[row] = (row + c) % 4 == 3 ? 1 : 0;
      if (column.type == DataType::kDouble) {
        column.doubles[row] = kNumbers[row];
      } else if (column.type == DataType::kText || column.type == DataType::kBytes) {
        column.texts[row] = kTexts[(row + c) % kRows];
      } else {
        column.int64s[row] = column.type == DataType::kBool ? row % 2 : INT64_MIN >> (row * 15);
      }
    }
  }
  return batch;
}

void Predict(executor::Scorer& scorer, const models::ModelSpec& spec,
             const models::FeatureBatch& features) {
  std::vector<double> scores;
  if (!scorer.Score(features, &scores).ok()) {
    return;
  }
  Require(scores.size() == kRows * scorer.outputs(), "scores of another number of rows");
  plan::PredictPlan plan;
  plan.set_column("p");
  plan.set_prediction_type(spec.features().label().type());
  if (spec.features().label().kind() == models::LabelPlan::CLASS) {
    plan.add_extra_outputs()->set_column("probability");
    for (int i = 0; i < spec.features().label().classes_size(); ++i) {
      plan::PredictPlan::ExtraOutput* output = plan.add_extra_outputs();
      output->set_column("probability_" + spec.features().label().classes(i));
      output->set_class_index(i);
    }
  }
  auto columns =
      executor::PredictionColumns::Make(plan, spec.features().label(), scorer.outputs(), 0.25);
  if (columns.ok()) {
    RowBatch out;
    out.Reset(Schema{columns->columns()}, kRows);
    columns->Fill(scores, kRows, &out, 0);
  }
}

void Evaluate(executor::Scorer& scorer, const models::ModelSpec& spec) {
  RowBatch rows = SomeRows(spec.features(), scorer.transform().ColumnNames(true));
  models::FeatureBatch features;
  std::vector<double> scores;
  for (RowBatch::Column& column : rows.columns) {
    std::fill(column.null.begin(), column.null.end(), uint8_t{0});
  }
  if (!scorer.transform().Apply(rows, true, &features).ok() ||
      !scorer.Score(features, &scores).ok()) {
    return;
  }
  models::Metrics metrics(models::TaskOf(spec), scorer.outputs());
  metrics.Add(scores, features.OwnLabels(), features.weights, features.groups);
  metrics.Values();
}

void Run(std::string_view row) {
  const std::string_view plan_bytes = TakePart(&row);
  const std::string weights = Sealed(TakePart(&row));
  catalog::MetricsFromJson(std::string(row));
  const auto plan = planner::ReadStoredPlan(plan_bytes);
  if (!plan.ok()) {
    return;
  }
  const auto scorer = executor::Scorer::Make(plan->model(), weights);
  if (!scorer.ok()) {
    return;
  }
  const models::FeaturePlan& features = plan->model().features();
  models::FeatureBatch batch;
  if ((*scorer)
          ->transform()
          .Apply(SomeRows(features, (*scorer)->transform().ColumnNames(false)), false, &batch)
          .ok()) {
    Predict(**scorer, plan->model(), batch);
  }
  Evaluate(**scorer, plan->model());
  Require((*scorer)->rows_per_batch() > 0, "no rows at a time");
  (*scorer)->FeatureImportance().ok();
}

}  // namespace
}  // namespace sluice

FUZZ_TARGET(model_row) {
  sluice::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
