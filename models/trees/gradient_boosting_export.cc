#include <fmt/core.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/value.h"
#include "models/features/cell_format.h"
#include "models/model.pb.h"
#include "models/trees/gradient_boosting_internal.h"

namespace sluice::models {
namespace {

using Json = rapidjson::Value;
using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

// libxgboost writes numbers that are none, too.
constexpr unsigned kReads = rapidjson::kParseIterativeFlag | rapidjson::kParseNanAndInfFlag;

// In deviations of the label: how far apart predictions may be to go without saying.
constexpr double kCoarse = 1e-3;

// Brings a booster from the numbers that it was trained on to those of the user's columns.
class OwnUnits {
 public:
  // `allocator`: of the booster's document.
  OwnUnits(const ColumnLayout& layout, const BoostingParameters& parameters,
           rapidjson::Document::AllocatorType& allocator)
      : layout_(layout),
        allocator_(allocator),
        mean_(parameters.learns_scaled ? parameters.label_scale.mean : 0),
        scale_(parameters.learns_scaled ? parameters.label_scale.scale : 1) {}

  // False: it is none of libxgboost's.
  bool Convert(Json* learner) {
    Json* base = In(In(learner, "learner_model_param"), "base_score");
    Json* booster = In(learner, "gradient_booster");
    if (base == nullptr || !base->IsString() || booster == nullptr) {
      return false;
    }
    if (mean_ != 0 || scale_ != 1) {
      const double begins = ParseNumber(base->GetString()).value_or(0);
      // XGBoost reads no more digits than a float's: of more it silently begins with 0.5.
      const auto own = static_cast<float>(begins * scale_ + mean_);
      base->SetString(fmt::format("{}", own).c_str(), allocator_);
    }
    if (Json* weights = Array(In(In(booster, "model"), "weights"))) {
      ConvertWeights(weights);
      return true;
    }
    Json* dart = In(booster, "gbtree");
    Json* trees = Array(In(In(dart != nullptr ? dart : booster, "model"), "trees"));
    bool whole = trees != nullptr;
    for (rapidjson::SizeType i = 0; whole && i < trees->Size(); ++i) {
      whole = ConvertTree(&(*trees)[i]);
    }
    return whole;
  }

 private:
  static Json* In(Json* object, const char* name) {
    return object != nullptr && object->IsObject() && object->HasMember(name) ? &(*object)[name]
                                                                              : nullptr;
  }
  static Json* Array(Json* value) { return value != nullptr && value->IsArray() ? value : nullptr; }
  static void Multiply(Json* array, double factor) {
    for (Json& number : array->GetArray()) {
      number.SetDouble(number.GetDouble() * factor);
    }
  }

  bool ConvertTree(Json* tree) const {
    Json* left = Array(In(tree, "left_children"));
    Json* columns = Array(In(tree, "split_indices"));
    Json* conditions = Array(In(tree, "split_conditions"));
    Json* weights = Array(In(tree, "base_weights"));
    Json* gains = Array(In(tree, "loss_changes"));
    if (left == nullptr || columns == nullptr || conditions == nullptr || weights == nullptr ||
        gains == nullptr || columns->Size() != left->Size() || conditions->Size() != left->Size()) {
      return false;
    }
    for (rapidjson::SizeType node = 0; node < left->Size(); ++node) {
      Json& condition = (*conditions)[node];
      if ((*left)[node].GetInt() < 0) {  // a leaf: what it adds
        condition.SetDouble(condition.GetDouble() * scale_);
      } else {
        const ColumnLayout::Unit unit = layout_.unit((*columns)[node].GetUint());
        condition.SetDouble(condition.GetDouble() / unit.scale + unit.offset);
      }
    }
    Multiply(weights, scale_);
    Multiply(gains, scale_ * scale_);
    return true;
  }

  // Those of each column, then the constants; one for each output.
  void ConvertWeights(Json* weights) const {
    const auto columns = static_cast<rapidjson::SizeType>(layout_.columns());
    const rapidjson::SizeType outputs = weights->Size() / (columns + 1);
    Multiply(weights, scale_);
    for (rapidjson::SizeType i = 0; i < columns * outputs; ++i) {
      const ColumnLayout::Unit unit = layout_.unit(i / outputs);
      Json& weight = (*weights)[i];
      Json& constant = (*weights)[columns * outputs + i % outputs];
      weight.SetDouble(weight.GetDouble() * unit.scale);
      constant.SetDouble(constant.GetDouble() - weight.GetDouble() * unit.offset);
    }
  }

  const ColumnLayout& layout_;
  rapidjson::Document::AllocatorType& allocator_;
  const double mean_, scale_;
};

void Put(const std::string& text, Writer* writer) {
  writer->String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

template <typename Texts>
void PutTexts(const char* name, const Texts& texts, Writer* writer) {
  writer->Key(name);
  writer->StartArray();
  for (const std::string& text : texts) {
    Put(text, writer);
  }
  writer->EndArray();
}

// XGBoost's columns [first, first + count), which one feature makes.
void PutColumns(const FeaturePlan& plan, const Feature& feature, size_t first, size_t count,
                bool by_id, Writer* writer) {
  writer->StartObject();
  writer->Key("first");
  writer->Uint64(first);
  writer->Key("count");
  writer->Uint64(count);
  writer->Key("feature");
  Put(feature.name(), writer);
  std::vector<std::string> inputs;
  for (const uint32_t input : feature.inputs()) {
    inputs.push_back(plan.inputs(static_cast<int>(input)).name());
  }
  PutTexts("of", inputs, writer);
  const Categorizer& categorizer = feature.categorizer();
  const bool category = feature.kind() == Feature::CATEGORY;
  writer->Key("holds");
  Put(category ? (by_id ? "1 where the row has the id" : "the id of the category")
      : !feature.time_part().empty() ? feature.time_part() + " of the time"
                                     : "the number",
      writer);
  if (category) {
    writer->Key("ids");
    Put(Categorizer::Kind_Name(categorizer.kind()), writer);
    if (categorizer.vocabulary_size() > 0) {
      PutTexts("values", categorizer.vocabulary(), writer);
    }
    writer->Key("id_of_others");
    writer->Int64(categorizer.oov_bucket());
    writer->Key("id_of_null");
    writer->Int64(categorizer.null_bucket());
  }
  writer->EndObject();
}

std::string DescribeColumns(const FeaturePlan& plan, const FeatureTransform& transform,
                            const ColumnLayout& layout) {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  writer.Key("label");
  Put(plan.label().column(), &writer);
  PutTexts("classes", plan.label().classes(), &writer);
  writer.Key("columns");
  writer.StartArray();
  for (const DenseColumn& column : transform.dense_columns()) {
    PutColumns(plan, plan.features(static_cast<int>(column.feature)), column.offset, column.width,
               false, &writer);
  }
  for (size_t i = 0; i < layout.slots().size(); ++i) {
    const ColumnLayout::Slot& slot = layout.slots()[i];
    PutColumns(plan, plan.features(static_cast<int>(transform.slots()[i].feature)), slot.column,
               slot.expanded ? slot.buckets : 1, slot.expanded, &writer);
  }
  writer.EndArray();
  writer.EndObject();
  return buffer.GetString();
}

void AddNotes(const FeaturePlan& plan, const BoostingParameters& parameters,
              std::vector<std::string>* notes) {
  std::string categories;
  for (const Feature& feature : plan.features()) {
    if (feature.centred()) {
      notes->push_back(
          fmt::format("{}: XGBoost compares 32-bit numbers, which do not tell all of "
                      "this column apart",
                      feature.name()));
    }
    if (feature.kind() == Feature::CATEGORY) {
      categories += (categories.empty() ? "" : ", ") + feature.name();
    }
  }
  if (!categories.empty()) {
    notes->push_back(
        fmt::format("XGBoost reads ids of categories: the file's attribute 'sluice' "
                    "lists them ({})",
                    categories));
  }
  if (parameters.missing) {
    notes->push_back(fmt::format("that {} means missing is no part of XGBoost's format",
                                 FormatDouble(*parameters.missing)));
  }
  // A float has 24 bits.
  const double spacing = std::fabs(parameters.label_scale.mean) * 0x1p-23;
  if (parameters.learns_scaled && spacing > kCoarse * parameters.label_scale.scale) {
    notes->push_back(
        fmt::format("{}: XGBoost predicts 32-bit numbers, which are {:.2g} apart there",
                    parameters.label, spacing));
  }
  if (parameters.label_scale.curve != LabelCurve::kStraight) {
    notes->push_back(fmt::format("XGBoost predicts the {} of {}",
                                 parameters.label_scale.curve == LabelCurve::kRoot
                                     ? "square root"
                                     : "logarithm of 1 more than the size",
                                 parameters.label));
  }
}

}  // namespace

Result<GradientBoosting::Exported> ExportBooster(std::string_view json, const ModelSpec& spec,
                                                 const FeatureTransform& transform,
                                                 const ColumnLayout& layout,
                                                 const BoostingParameters& parameters) {
  const LabelScale& label = parameters.label_scale;
  if (parameters.learns_scaled && std::fabs(label.mean) + label.scale >
                                      static_cast<double>(std::numeric_limits<float>::max())) {
    return InvalidArgument(fmt::format("label '{}': XGBoost predicts 32-bit numbers, which end at "
                                       "3.4e+38",
                                       parameters.label))
        .Hint("EXPORT MODEL to a file '*.sluice', or divide the label in the SELECT");
  }
  rapidjson::Document model;
  model.Parse<kReads>(json.data(), json.size());
  OwnUnits units(layout, parameters, model.GetAllocator());
  if (model.HasParseError() || !model.IsObject() || !model.HasMember("learner") ||
      !units.Convert(&model["learner"])) {
    return Internal("XGBoost saves models in a form that is not known here");
  }
  Json& learner = model["learner"];
  if (!learner.HasMember("attributes")) {
    learner.AddMember("attributes", Json(rapidjson::kObjectType), model.GetAllocator());
  }
  const std::string columns = DescribeColumns(spec.features(), transform, layout);
  learner["attributes"].AddMember("sluice", Json(columns.c_str(), model.GetAllocator()),
                                  model.GetAllocator());
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteNanAndInfFlag>
      writer(buffer);
  model.Accept(writer);
  GradientBoosting::Exported exported;
  exported.json.assign(buffer.GetString(), buffer.GetSize());
  AddNotes(spec.features(), parameters, &exported.notes);
  return exported;
}

}  // namespace sluice::models
