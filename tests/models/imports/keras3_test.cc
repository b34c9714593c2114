#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "models/imports/import_network.h"
#include "models/model.pb.h"
#include "tests/models/imports/imported.h"
#include "tests/models/imports/recorded_network.h"
#include "tests/models/networks/network_rows.h"

// Keras 3's layout, in files keras/v3_*.json that follow Keras's published sources
// (saving/serialization_lib, models/functional, models/sequential) member by member; and what has
// an effect in Keras must not be lost in silence.
namespace sluice::models {
namespace {

using ::testing::HasSubstr;

Imported Import(const std::string& json) {
  return ImportFile("keras", json, Classes(WithFeatures(Spec("my.Net")), 2));
}

std::string Version3(const std::string& name) {
  return ReadWhole("imports/keras/v3_" + name + ".json");
}

std::string Replaced(std::string text, const std::string& part, const std::string& by) {
  const size_t place = text.find(part);
  EXPECT_NE(place, std::string::npos) << part;
  return place == std::string::npos ? text : text.replace(place, part.size(), by);
}

const GraphParameter& ParameterNamed(const Imported& imported, const std::string& name) {
  static const GraphParameter none;
  for (const GraphParameter& parameter : imported.spec.graph().parameters()) {
    if (parameter.name() == name) {
      return parameter;
    }
  }
  ADD_FAILURE() << "no parameter " << name;
  return none;
}

TEST(Keras3Test, IsReadAsKerasPrintsIt) {
  const std::vector<std::pair<std::string, int64_t>> models = {
      {"rows", (2 * 16 + 16) + (16 + 1)},
      {"two_inputs", 5 * 3 + (4 * 16 + 16) + (16 + 1)},
      {"both_ways", 2 * (12 * 1 + 12 * 3 + 12) + (6 + 1)},
      {"normed", (2 * 4 + 4) + 4 * 4 + (4 + 1)}};
  for (const auto& [name, parameters] : models) {
    const Imported imported = Import(Version3(name));
    ASSERT_TRUE(imported.status.ok()) << name << imported.status.ToString();
    EXPECT_EQ(imported.network->parameter_count(), parameters) << name;
  }
}

TEST(Keras3Test, OutputsMayHaveNames) {
  const Imported imported = Import(Version3("two_inputs"));
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(imported.spec.graph().inputs_size(), 2);
  EXPECT_THAT(Import(Replaced(Version3("two_inputs"), R"({"answer": ["answer", 0, 0]})",
                              R"({"answer": ["answer", 0, 0], "other": ["dense", 0, 0]})"))
                  .status.ToString(),
              HasSubstr("the model has 2 outputs"));
}

TEST(Keras3Test, HardSigmoidIsThatOfItsVersion) {
  const auto slope_of = [](const std::string& json) {
    const Imported imported = Import(json);
    EXPECT_TRUE(imported.status.ok()) << imported.status.ToString();
    for (const GraphNode& node : imported.spec.graph().nodes()) {
      if (node.op_type() == "HardSigmoid") {
        return node.attributes_size() == 0 ? 0.2F : node.attributes(0).numbers(0);
      }
    }
    return 0.0F;
  };
  EXPECT_FLOAT_EQ(slope_of(Version3("normed")), 1.0F / 6);
  EXPECT_FLOAT_EQ(slope_of(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
      {"class_name": "Dense", "config": {"name": "d", "units": 1, "activation": "hard_sigmoid",
       "batch_input_shape": [null, 2]}}, {"class_name": "Dense", "config": {"name": "e",
       "units": 1}}]}})"),
                  0.2F);
}

TEST(Keras3Test, BothDirectionsBeginAsTheirLayerSays) {
  const std::string json = Version3("both_ways");
  const Imported glorot = Import(json);
  ASSERT_TRUE(glorot.status.ok()) << glorot.status.ToString();
  EXPECT_THAT(ParameterNamed(glorot, "bidirectional/kernel").initializer(), HasSubstr("uniform:"));
  const Imported he = Import(Replaced(json, "GlorotUniform", "HeNormal"));
  ASSERT_TRUE(he.status.ok()) << he.status.ToString();
  EXPECT_THAT(ParameterNamed(he, "bidirectional/kernel").initializer(), HasSubstr("normal:1.41"));
}

TEST(Keras3Test, ALayerInAFrozenWrapperIsFrozen) {
  const Imported imported =
      Import(Replaced(Version3("both_ways"), R"("name": "bidirectional", "trainable": true)",
                      R"("name": "bidirectional", "trainable": false)"));
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(ParameterNamed(imported, "bidirectional/kernel").group(), GraphParameter::FROZEN);
}

// What Keras would compute, and this would not, is an error.
TEST(Keras3Test, NothingIsLostInSilence) {
  const std::string both = Version3("both_ways");
  const size_t second = both.find("backward_lstm");
  const auto backward = [&](const std::string& part, const std::string& by) {
    const size_t place = both.find(part, second);
    EXPECT_NE(place, std::string::npos) << part;
    return Import(std::string(both).replace(place, part.size(), by)).status.ToString();
  };
  EXPECT_THAT(backward(R"("units": 3)", R"("units": 4)"),
              HasSubstr("layer 'bidirectional' (Bidirectional): a backward_layer with its own "
                        "units is not supported"));
  EXPECT_THAT(backward(R"("activation": "tanh")", R"("activation": "relu")"),
              HasSubstr("a backward_layer with its own activation"));
  EXPECT_THAT(Import(Replaced(both, R"("merge_mode": "concat")", R"("merge_mode": null)"))
                  .status.ToString(),
              HasSubstr("another merge_mode than concat"));
  EXPECT_THAT(Import(Replaced(both, R"({"module": "keras.initializers", "class_name": "Zeros")",
                              R"({"module": "keras.initializers", "class_name": "Ones")"))
                  .status.ToString(),
              HasSubstr("another bias_initializer than Zeros"));
  const auto in_both = [&](const std::string& part, const std::string& by) {
    return Import(Replaced(Replaced(both, part, by), part, by)).status.ToString();
  };
  EXPECT_THAT(
      in_both(R"("recurrent_activation": "sigmoid")", R"("recurrent_activation": "hard_sigmoid")"),
      HasSubstr("the recurrent_activation 'hard_sigmoid' is not supported"));
  EXPECT_THAT(in_both(R"("activation": "tanh")",
                      R"("activation": {"class_name": "LeakyReLU", "config": {}})"),
              HasSubstr("the activation 'of another class' is not supported"));
  const std::string two = Version3("two_inputs");
  EXPECT_THAT(
      Import(Replaced(two, R"("kwargs": {"training": false})", R"("kwargs": {"training": true})"))
          .status.ToString(),
      HasSubstr("layer 'dropout' (Dropout) is called with training"));
  EXPECT_THAT(Import(Replaced(Version3("normed"), R"("kwargs": {"mask": null})",
                              R"("kwargs": {"mask": {"class_name": "__keras_tensor__", "config":
                                 {"keras_history": ["a", 0, 0]}}})"))
                  .status.ToString(),
              HasSubstr("layer 'batch_normalization' (BatchNormalization) is called with mask"));
  EXPECT_THAT(Import(Replaced(two, R"("data_format": "channels_last")",
                              R"("data_format": "channels_first")"))
                  .status.ToString(),
              HasSubstr("layer 'flatten' (Flatten): channels_first is not supported"));
}

// Keras 2 writes the initial state of a recurrent layer as further inputs.
TEST(Keras3Test, AnInitialStateIsNotIgnored) {
  const std::string json = R"({"class_name": "Functional", "config": {"name": "f", "layers": [
    {"class_name": "InputLayer", "name": "x", "inbound_nodes": [],
     "config": {"batch_input_shape": [null, 2], "dtype": "float32", "name": "x"}},
    {"class_name": "Reshape", "name": "steps", "inbound_nodes": [[["x", 0, 0, {}]]],
     "config": {"name": "steps", "target_shape": [2, 1]}},
    {"class_name": "GRU", "name": "gru", "inbound_nodes": [[["steps", 0, 0, {}], ["x", 0, 0, {}]]],
     "config": {"name": "gru", "units": 2}},
    {"class_name": "Dense", "name": "out", "inbound_nodes": [[["gru", 0, 0, {}]]],
     "config": {"name": "out", "units": 1}}],
    "input_layers": [["x", 0, 0]], "output_layers": [["out", 0, 0]]}})";
  EXPECT_THAT(Import(json).status.ToString(),
              HasSubstr("layer 'gru' (GRU): a call with 2 layers is not supported"));
}

}  // namespace
}  // namespace sluice::models
