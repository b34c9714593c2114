#include <fmt/core.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "models/features/feature_transform.h"
#include "models/imports/compiled_model.h"
#include "models/imports/import_network.h"
#include "models/model.h"
#include "planner/compile/check_rows_internal.h"

namespace sluice::planner {
namespace {

using models::Feature;
using models::FeatureBatch;

constexpr size_t kIdsPerRow = 64;  // where rows have different numbers of ids
constexpr size_t kLongestSequence = 4'096;
constexpr double kTolerance = 1e-4;

void FillSlot(const FeatureForPython& feature, size_t rows, std::mt19937_64* random,
              models::IdSlot* slot) {
  const uint32_t ids = std::max<uint32_t>(std::min(feature.buckets, kRowsOfTables), 1);
  for (size_t r = 0; r < rows; ++r) {
    if (feature.length == 0) {
      // The last id is among them: an Embedding that is too small for it is found.
      slot->ids.push_back(r + 1 == rows ? ids - 1 : static_cast<uint32_t>((*random)() % ids));
      continue;
    }
    const size_t count = (*random)() % (std::min<size_t>(feature.length, 5) + 1);
    for (size_t k = 0; k < count; ++k) {
      slot->ids.push_back(static_cast<uint32_t>((*random)() % ids));
    }
    slot->ends.push_back(static_cast<uint32_t>(slot->ids.size()));
  }
}

// The values of the network's tables for a batch.
void FillTables(const models::Network& network, const models::NetworkWeights& weights,
                models::ParameterView* view) {
  for (size_t t = 0; t < view->tables.size(); ++t) {
    const models::EmbeddingTable& table = network.tables()[t];
    const models::NetworkWeights::Table& known = weights.tables[t];
    models::RowSet& set = view->tables[t];
    set.values.clear();
    const std::string_view feature =
        std::string_view(table.name).substr(0, table.name.rfind("/embedding"));
    for (const int64_t id : set.ids) {
      const auto found = std::lower_bound(known.ids.begin(), known.ids.end(), id);
      for (uint32_t k = 0; k < table.dimension; ++k) {
        const auto row = static_cast<size_t>(found - known.ids.begin());
        set.values.push_back(found != known.ids.end() && *found == id
                                 ? known.values[row * table.dimension + k]
                                 : EmbeddedNumber(feature, static_cast<uint32_t>(id), k));
      }
    }
  }
}

Status Disagrees(size_t rows, double ours, double theirs) {
  return InvalidArgument(
             fmt::format("the traced graph computes something else than forward does: {:.6g} "
                         "instead of {:.6g}, in a batch of {} row{}",
                         ours, theirs, rows, rows == 1 ? "" : "s"))
      .Hint(
          "the output depends on the size or the values of the batch, or on self.training; or "
          "forward draws random numbers");
}

Status LossDisagrees(double ours, double theirs) {
  return InvalidArgument(fmt::format("the traced loss computes something else than loss() does: "
                                     "{:.6g} instead of {:.6g} for a row",
                                     ours, theirs))
      .Hint("it depends on the values of the batch, or draws random numbers");
}

}  // namespace

std::vector<FeatureForPython> FeaturesForPython(const models::FeaturePlan& plan) {
  std::vector<FeatureForPython> features;
  for (const Feature& feature : plan.features()) {
    FeatureForPython made{&feature, "numeric"};
    if (feature.kind() == Feature::TENSOR) {
      made.width = feature.width();
    } else if (feature.kind() == Feature::NUMERIC) {
      made.width = feature.null_indicator() ? 2 : 1;
    } else {
      made.buckets = feature.categorizer().buckets();
      made.kind = "category";
      if (feature.representation() == Feature::EMBEDDING) {
        made.kind = "embedding";
        made.width = feature.dimension();
      } else if (feature.has_words() || feature.has_format()) {
        size_t length = feature.format().shape_size() > 0 ? 1 : kIdsPerRow;
        for (const int64_t extent : feature.format().shape()) {
          length = std::min<size_t>(length * static_cast<size_t>(std::max<int64_t>(extent, 1)),
                                    kLongestSequence);
        }
        made.length = static_cast<uint32_t>(length);
      }
    }
    features.push_back(made);
  }
  return features;
}

float EmbeddedNumber(std::string_view feature, uint32_t id, uint32_t k) {
  const uint64_t bits =
      models::HashInteger(models::HashText(feature) + (uint64_t{id} << 32 | k)) >> 40;
  constexpr float kHalf = 1 << 23;
  return static_cast<float>(bits) / kHalf - 1;
}

Result<std::vector<FeatureBatch>> MakeCheckRows(const models::FeaturePlan& plan) {
  ASSIGN_OR_RETURN(const auto transform, models::FeatureTransform::Make(
                                             plan, models::FeatureTransform::Target::kNetwork));
  const std::vector<FeatureForPython> features = FeaturesForPython(plan);
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<FeatureBatch> batches;
  for (const size_t rows : {1U, 1U, 1U, 1U, 7U, 7U, 7U, 7U}) {
    FeatureBatch& batch = batches.emplace_back();
    batch.rows = rows;
    batch.dense_width = transform->dense_width();
    batch.dense.resize(rows * batch.dense_width);
    std::generate(batch.dense.begin(), batch.dense.end(), [&] { return normal(random); });
    for (const models::SlotColumn& slot : transform->slots()) {
      FillSlot(features[slot.feature], rows, &random, &batch.slots.emplace_back());
    }
  }
  return batches;
}

Status CheckLoss(std::string_view compiled, const models::LabelPlan& label,
                 const models::CompiledModel& model);

Status CheckAgainstModule(std::string_view compiled, const models::FeaturePlan& plan, uint64_t seed,
                          const std::vector<FeatureBatch>& rows) {
  ASSIGN_OR_RETURN(const models::CompiledModel model, models::ReadCompiledModel(compiled));
  if (model.outputs.size() != rows.size()) {
    return Internal("a compiled model has its outputs for all batches of the request");
  }
  // The numbers as they come out of the graph: as of a label that is learnt as it is.
  const size_t width = model.outputs.front().width;
  models::ModelSpec spec;
  *spec.mutable_features() = plan;
  models::LabelPlan* label = spec.mutable_features()->mutable_label();
  label->Clear();
  label->set_kind(width == 1 ? models::LabelPlan::NUMBER : models::LabelPlan::VECTOR);
  label->set_scale(1);
  label->set_width(static_cast<uint32_t>(width));
  spec.set_loss("squared");
  spec.set_seed(seed);
  models::ImportReport report;
  RETURN_IF_ERROR(models::ImportNetwork({"pytorch", compiled, {}, false}, &spec, &report));
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(spec));
  models::NetworkWeights weights;
  if (report.start) {
    weights = std::move(*report.start);
  }
  weights.tables.resize(network->tables().size());
  models::ParameterView view;
  for (const std::vector<float>& tensor : weights.dense) {
    view.dense.push_back(tensor.data());
  }
  std::vector<double> predictions;
  for (size_t b = 0; b < rows.size(); ++b) {
    network->CollectIds(rows[b], &view);
    FillTables(*network, weights, &view);
    network->Predict(rows[b], view, &predictions);
    const std::vector<double>& theirs = model.outputs[b].values;
    if (predictions.size() != theirs.size()) {
      return Disagrees(rows[b].rows, static_cast<double>(predictions.size()),
                       static_cast<double>(theirs.size()));
    }
    for (size_t i = 0; i < theirs.size(); ++i) {
      const double ours = predictions[i];
      if (!(std::abs(ours - theirs[i]) <= kTolerance * std::max(1.0, std::abs(theirs[i])))) {
        return Disagrees(rows[b].rows, ours, theirs[i]);
      }
    }
  }
  return model.losses.empty() ? OkStatus() : CheckLoss(compiled, plan.label(), model);
}

Status CheckLoss(std::string_view compiled, const models::LabelPlan& label,
                 const models::CompiledModel& model) {
  if (model.losses.size() != model.outputs.size()) {
    return Internal("a compiled model has its losses for all batches of the request");
  }
  const size_t width = model.outputs.front().width;
  models::ModelSpec spec;
  models::LabelPlan* own = spec.mutable_features()->mutable_label();
  own->set_kind(label.kind());
  own->set_column("label");
  own->set_type(static_cast<int32_t>(DataType::kInt64));
  own->set_scale(1);
  own->set_width(static_cast<uint32_t>(width));
  for (size_t i = 0; label.kind() == models::LabelPlan::CLASS && i < std::max<size_t>(width, 2);
       ++i) {
    own->add_classes(fmt::format("{}", i));
  }
  RETURN_IF_ERROR(models::ImportLossAlone(compiled, width, &spec));
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(spec));
  std::vector<std::vector<float>> zeros;
  models::ParameterView view;
  for (const models::DenseTensor& tensor : network->dense()) {
    view.dense.push_back(zeros.emplace_back(tensor.size()).data());
  }
  models::Gradient gradient;
  for (size_t b = 0; b < model.losses.size(); ++b) {
    const auto& [labels, losses] = model.losses[b];
    const std::vector<double>& outputs = model.outputs[b].values;
    // The program that has answered is the user's.
    const size_t per_row = label.kind() == models::LabelPlan::VECTOR ? width : 1;
    if (outputs.size() != losses.size() * width || losses.empty() ||
        labels.size() != losses.size() * per_row) {
      return Internal("a compiled model has a loss for each row of the request");
    }
    for (size_t r = 0; r < losses.size(); ++r) {
      FeatureBatch row;
      row.rows = 1;
      row.dense_width = width;
      for (size_t i = 0; i < width; ++i) {
        row.dense.push_back(static_cast<float>(outputs[r * width + i]));
      }
      for (size_t i = 0; i < per_row; ++i) {
        row.labels.push_back(static_cast<float>(labels[r * per_row + i]));
      }
      const double ours = network->Step(row, view, 1, &gradient).loss;
      if (!(std::abs(ours - losses[r]) <= kTolerance * std::max(1.0, std::abs(losses[r])))) {
        return LossDisagrees(ours, losses[r]);
      }
    }
  }
  return OkStatus();
}

namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

class RowsWriter {
 public:
  RowsWriter(const models::FeaturePlan& plan, const models::FeatureTransform& transform,
             JsonWriter* json)
      : features_(FeaturesForPython(plan)), transform_(transform), json_(*json) {}

  void Write(const FeatureBatch& batch) {
    json_.StartObject();
    json_.Key("rows");
    json_.Uint64(batch.rows);
    json_.Key("x");
    json_.StartObject();
    for (const models::DenseColumn& column : transform_.dense_columns()) {
      Begin(column.feature, "");
      for (size_t r = 0; r < batch.rows; ++r) {
        for (size_t k = 0; k < column.width; ++k) {
          Number(batch.dense[r * batch.dense_width + column.offset + k]);
        }
      }
      json_.EndArray();
    }
    for (size_t s = 0; s < transform_.slots().size(); ++s) {
      WriteSlot(features_[transform_.slots()[s].feature], transform_.slots()[s].feature,
                batch.slots[s], batch.rows);
    }
    json_.EndObject();
    json_.EndObject();
  }

 private:
  void Begin(size_t feature, const std::string& end) {
    const std::string name = features_[feature].feature->name() + end;
    json_.Key(name.data(), static_cast<rapidjson::SizeType>(name.size()));
    json_.StartArray();
  }
  void Number(float number) { json_.Double(static_cast<double>(number)); }

  void WriteSlot(const FeatureForPython& feature, size_t index, const models::IdSlot& slot,
                 size_t rows) {
    Begin(index, "");
    const size_t length = std::max<size_t>(feature.length, 1);
    for (size_t r = 0; r < rows; ++r) {
      const size_t begin = slot.Begin(r);
      if (feature.kind == "embedding") {
        for (uint32_t k = 0; k < feature.width; ++k) {
          Number(EmbeddedNumber(feature.feature->name(), slot.ids[begin], k));
        }
        continue;
      }
      for (size_t k = 0; k < length; ++k) {
        json_.Uint(begin + k < slot.End(r) ? slot.ids[begin + k] : 0);
      }
    }
    json_.EndArray();
    if (feature.length == 0) {
      return;
    }
    Begin(index, ".mask");
    for (size_t r = 0; r < rows; ++r) {
      for (size_t k = 0; k < length; ++k) {
        json_.Double(slot.Begin(r) + k < slot.End(r) ? 1 : 0);
      }
    }
    json_.EndArray();
  }

  const std::vector<FeatureForPython> features_;
  const models::FeatureTransform& transform_;
  JsonWriter& json_;
};

}  // namespace

std::string CheckRowsAsJson(const std::vector<FeatureBatch>& rows, const models::FeaturePlan& plan,
                            const models::FeatureTransform& transform) {
  rapidjson::StringBuffer buffer;
  JsonWriter json(buffer);
  json.StartArray();
  RowsWriter writer(plan, transform, &json);
  for (const FeatureBatch& batch : rows) {
    writer.Write(batch);
  }
  json.EndArray();
  return buffer.GetString();
}

}  // namespace sluice::planner
