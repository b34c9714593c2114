#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "base/letter_case.h"
#include "models/imports/bind_features_internal.h"
#include "models/imports/onnx_rewrite_internal.h"

namespace sluice::models {
namespace {

constexpr std::string_view kMaskEnd = ".mask";

// TensorFlow names the value of "age" "age:0".
std::string_view WithoutPort(std::string_view name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

std::string ExtentsText(const std::vector<int64_t>& extents) {
  std::string text = "[rows";
  for (const int64_t extent : extents) {
    text += extent < 0 ? ", ?" : fmt::format(", {}", extent);
  }
  return text + "]";
}

// Per row; -1: not in the file.
int64_t WidthOf(const ImportedInput& input) {
  int64_t width = 1;
  for (const int64_t extent : input.extents) {
    if (extent < 0) {
      return -1;
    }
    constexpr int64_t kMax = 1 << 28;
    width = std::min(width * std::min(extent, kMax), kMax);
  }
  return width;
}

uint32_t NumbersOf(const Feature& feature) {
  return feature.kind() == Feature::TENSOR ? feature.width()
                                           : 1 + (feature.null_indicator() ? 1 : 0);
}

class Binder {
 public:
  Binder(const FeaturePlan& plan, ImportedNetwork* network) : plan_(plan), network_(*network) {}

  Status Bind() {
    Status errors;
    std::set<std::string_view> read(network_.graph.outputs().begin(),
                                    network_.graph.outputs().end());
    for (const GraphNode& node : network_.graph.nodes()) {
      read.insert(node.inputs().begin(), node.inputs().end());
    }
    for (const ImportedInput& input : network_.inputs) {
      if (read.contains(input.name)) {
        errors.Add(BindInput(input));
      }
    }
    RETURN_IF_ERROR(errors);
    for (GraphNode& node : *network_.graph.mutable_nodes()) {
      *before_.add_nodes() = std::move(node);
    }
    network_.graph.mutable_nodes()->Swap(before_.mutable_nodes());
    network_.graph.mutable_tables()->MergeFrom(before_.tables());
    return OkStatus();
  }

  std::vector<std::string> Unread() const {
    std::vector<std::string> unread;
    for (const Feature& feature : plan_.features()) {
      if (!read_.contains(feature.name())) {
        unread.push_back(feature.name());
      }
    }
    return unread;
  }

 private:
  const Feature* Find(std::string_view name) const {
    const Feature* found = nullptr;
    for (const Feature& feature : plan_.features()) {
      if (feature.name() == name) {
        return &feature;
      }
      if (SameIgnoringCase(feature.name(), name)) {
        found = &feature;
      }
    }
    return found;
  }

  GraphInput* Add(const std::string& name, GraphInput::Kind kind, const Feature& feature) {
    GraphInput* input = network_.graph.add_inputs();
    input->set_name(name);
    input->set_kind(kind);
    input->add_features(feature.name());
    read_.insert(feature.name());
    return input;
  }

  Status BindInput(const ImportedInput& input) {
    const std::string_view name = WithoutPort(input.name);
    if (const Feature* feature = Find(name)) {
      const bool category = feature->kind() == Feature::CATEGORY;
      if (input.ids) {
        return category ? BindIds(input, *feature)
                        : InvalidArgument(fmt::format("input '{}' of the model takes ids, and "
                                                      "feature '{}' is numbers",
                                                      input.name, feature->name()))
                              .Hint(fmt::format("COLUMN CATEGORY_ID({}, 100) makes ids of integers",
                                                feature->name()));
      }
      return category ? BindEmbedding(input, *feature) : BindNumbers(input, {feature});
    }
    if (name.ends_with(kMaskEnd) && !input.ids) {
      const Feature* feature = Find(name.substr(0, name.size() - kMaskEnd.size()));
      if (feature != nullptr && feature->kind() == Feature::CATEGORY) {
        return BindMask(input, *feature);
      }
    }
    const auto floats = std::count_if(network_.inputs.begin(), network_.inputs.end(),
                                      [](const ImportedInput& one) { return !one.ids; });
    if (!input.ids && floats == 1) {
      return BindAllNumbers(input);
    }
    return NoFeature(input);
  }

  Status NoFeature(const ImportedInput& input) const {
    std::vector<std::string> names;
    for (const Feature& feature : plan_.features()) {
      names.push_back(feature.name());
    }
    Status missing = ColumnNotFound(
        fmt::format("the model has an input '{}', and the SELECT has no such feature", input.name));
    if (const auto near = NearestName(input.name, names)) {
      return std::move(missing).Hint(fmt::format("did you mean '{}'?", *near));
    }
    std::string list;
    for (const std::string& name : names) {
      list += (list.empty() ? "" : ", ") + name;
    }
    return std::move(missing).Hint(
        fmt::format("its features are {}; AS gives a column another "
                    "name",
                    list));
  }

  // Numbers have shape [rows, width]; the input may have another shape of the same size.
  Status AddNumbers(const ImportedInput& input, uint32_t width,
                    const std::vector<const Feature*>& features) {
    const int64_t wanted = WidthOf(input);
    if (wanted >= 0 && wanted != static_cast<int64_t>(width)) {
      return InvalidArgument(
          fmt::format("input '{}' of the model is {}, and its feature{} {} "
                      "number{} per row",
                      input.name, ExtentsText(input.extents),
                      features.size() == 1 ? " has" : "s have", width, width == 1 ? "" : "s"));
    }
    const bool as_it_comes = input.extents.size() == 1;
    GraphInput* numbers = network_.graph.add_inputs();
    numbers->set_name(as_it_comes ? input.name : input.name + "/numbers");
    numbers->set_kind(GraphInput::NUMBERS);
    numbers->set_width(width);
    for (const Feature* feature : features) {
      numbers->add_features(feature->name());
      read_.insert(feature->name());
    }
    if (!as_it_comes) {
      Reshape(numbers->name(), input);
    }
    return OkStatus();
  }

  void Reshape(const std::string& from, const ImportedInput& input) {
    std::vector<int64_t> shape = {-1};
    for (const int64_t extent : input.extents) {
      shape.push_back(std::max<int64_t>(extent, 1));
    }
    const std::string to = AddIntegers(shape, input.name + "/shape", &before_);
    AddNode("Reshape", {from, to}, input.name, &before_);
  }

  Status BindNumbers(const ImportedInput& input, const std::vector<const Feature*>& features) {
    return AddNumbers(input, NumbersOf(*features.front()), features);
  }

  Status BindAllNumbers(const ImportedInput& input) {
    std::vector<const Feature*> features;
    uint64_t width = 0;
    for (const Feature& feature : plan_.features()) {
      if (feature.kind() != Feature::CATEGORY) {
        features.push_back(&feature);
        width += NumbersOf(feature);
      }
    }
    if (features.empty() || width > std::numeric_limits<uint32_t>::max()) {
      return NoFeature(input);
    }
    return AddNumbers(input, static_cast<uint32_t>(width), features);
  }

  // How many ids per row the input has; 0: one, without an axis.
  Result<uint32_t> LengthOf(const ImportedInput& input) const {
    if (input.extents.size() > 1) {
      return InvalidArgument(
          fmt::format("input '{}' of the model is {}: ids are [rows] or [rows, "
                      "so many per row]",
                      input.name, ExtentsText(input.extents)));
    }
    if (input.extents.empty()) {
      return 0U;
    }
    constexpr int64_t kMaxIds = 4'096;
    const int64_t length = input.extents[0];
    if (length < 1 || length > kMaxIds) {
      return InvalidArgument(
          fmt::format("input '{}' of the model is {}: how many ids a row has "
                      "must be said, 1 to {}",
                      input.name, ExtentsText(input.extents), kMaxIds));
    }
    return static_cast<uint32_t>(length);
  }

  Status BindIds(const ImportedInput& input, const Feature& feature) {
    ASSIGN_OR_RETURN(const uint32_t length, LengthOf(input));
    Add(input.name, GraphInput::IDS, feature)->set_length(length);
    return OkStatus();
  }

  Status BindMask(const ImportedInput& input, const Feature& feature) {
    ASSIGN_OR_RETURN(const uint32_t length, LengthOf(input));
    if (length == 0) {
      return InvalidArgument(
          fmt::format("input '{}' of the model is [rows]: a mask is [rows, "
                      "ids per row]",
                      input.name));
    }
    Add(input.name, GraphInput::MASK, feature)->set_length(length);
    return OkStatus();
  }

  // Rows of an added table take the place of the numbers that the model expects.
  Status BindEmbedding(const ImportedInput& input, const Feature& feature) {
    if (feature.representation() != Feature::EMBEDDING) {
      return InvalidArgument(fmt::format("input '{}' of the model takes numbers, and feature '{}' "
                                         "is a category",
                                         input.name, feature.name()))
          .Hint(fmt::format("COLUMN EMBEDDING({}, 8) makes 8 numbers of it; or let the model have "
                            "an int64 input and an embedding of its own",
                            feature.name()));
    }
    const int64_t width = WidthOf(input);
    if (input.extents.size() != 1 || (width >= 0 && width != feature.dimension())) {
      return InvalidArgument(
          fmt::format("input '{}' of the model is {}, and feature '{}' is "
                      "embedded in {} numbers",
                      input.name, ExtentsText(input.extents), feature.name(), feature.dimension()));
    }
    const std::string bag = input.name + "/ids";
    const std::string rows = input.name + "/embedding";
    Add(bag, GraphInput::BAG, feature);
    GraphTable* table = before_.add_tables();
    table->set_name(rows);
    table->add_inputs(bag);
    table->set_rows(feature.categorizer().buckets());
    table->set_dimension(feature.dimension());
    table->set_initializer(feature.initializer());
    AddNode("EmbeddingBag", {rows, bag}, input.name, &before_);
    GraphAttribute* combiner = before_.mutable_nodes(before_.nodes_size() - 1)->add_attributes();
    combiner->set_name("combiner");
    combiner->add_texts(feature.combiner().empty() ? "mean" : feature.combiner());
    return OkStatus();
  }

  const FeaturePlan& plan_;
  ImportedNetwork& network_;
  NetworkGraph before_;
  std::set<std::string> read_;
};

}  // namespace

Status BindToFeatures(const FeaturePlan& plan, ImportedNetwork* network,
                      std::vector<std::string>* unread) {
  Binder binder(plan, network);
  RETURN_IF_ERROR(binder.Bind());
  *unread = binder.Unread();
  return OkStatus();
}

}  // namespace sluice::models
