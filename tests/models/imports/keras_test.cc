#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "models/imports/import_network.h"
#include "models/model.pb.h"
#include "tests/models/imports/imported.h"
#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Imported ImportKeras(const std::string& json,
                     ModelSpec spec = Classes(WithFeatures(Spec("my.Net")), 2)) {
  return ImportFile("keras", json, std::move(spec));
}

std::string KerasError(const std::string& json) {
  return ImportKeras(json).status.ToString();
}

const GraphParameter* ParameterOf(const Imported& imported, const std::string& name) {
  for (const GraphParameter& parameter : imported.spec.graph().parameters()) {
    if (parameter.name() == name) {
      return &parameter;
    }
  }
  return nullptr;
}

// As Keras 2 writes it: numbers a and b by one input, and the ids of c.
std::string Keras2(const std::string& hidden = R"("activation": "relu")",
                   const std::string& hidden_type = "Dense") {
  return R"({"class_name": "Functional", "config": {"name": "net", "layers": [
    {"class_name": "InputLayer", "name": "numbers", "inbound_nodes": [],
     "config": {"batch_input_shape": [null, 2], "dtype": "float32", "name": "numbers"}},
    {"class_name": "InputLayer", "name": "c", "inbound_nodes": [],
     "config": {"batch_input_shape": [null, 1], "dtype": "float32", "name": "c"}},
    {"class_name": "Embedding", "name": "embed", "inbound_nodes": [[["c", 0, 0, {}]]],
     "config": {"name": "embed", "input_dim": 5, "output_dim": 3, "mask_zero": false,
       "embeddings_initializer": {"class_name": "RandomUniform",
                                  "config": {"minval": -0.1, "maxval": 0.1, "seed": null}}}},
    {"class_name": "Flatten", "name": "flat", "inbound_nodes": [[["embed", 0, 0, {}]]],
     "config": {"name": "flat"}},
    {"class_name": "Concatenate", "name": "join",
     "inbound_nodes": [[["numbers", 0, 0, {}], ["flat", 0, 0, {}]]],
     "config": {"name": "join", "axis": -1}},
    {"class_name": ")" +
         hidden_type + R"(", "name": "hidden", "inbound_nodes": [[["join", 0, 0, {}]]],
     "config": {"name": "hidden", "units": 4, "use_bias": true, )" +
         hidden + R"(,
       "kernel_initializer": {"class_name": "HeNormal", "config": {"seed": null}}}},
    {"class_name": "Dense", "name": "out", "inbound_nodes": [[["hidden", 0, 0, {}]]],
     "config": {"name": "out", "units": 1, "activation": "sigmoid"}}],
    "input_layers": [["numbers", 0, 0], ["c", 0, 0]], "output_layers": [["out", 0, 0]]},
    "keras_version": "2.11.0", "backend": "tensorflow"})";
}

std::string Sequential(const std::string& layers, const std::string& shape = "[null, 2]") {
  return R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
    {"class_name": "InputLayer", "config": {"batch_input_shape": )" +
         shape + R"(, "dtype": "float32", "name": "x"}}, )" + layers + "]}}";
}

std::string Layer(const std::string& type, const std::string& config) {
  return fmt::format(R"({{"class_name": "{0}", "config": {{"name": "the_{0}"{1}{2}}}}})", type,
                     config.empty() ? "" : ", ", config);
}

const std::string kOut = R"({"class_name": "Dense", "config": {"name": "out", "units": 1}})";

TEST(KerasTest, AModelOfKeras2) {
  const Imported imported = ImportKeras(Keras2());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(imported.network->parameter_count(), 5 * 3 + (5 * 4 + 4) + (4 + 1));
  ASSERT_EQ(imported.network->tables().size(), 1u);
  EXPECT_EQ(imported.network->tables()[0].name, "embed/embeddings");
  EXPECT_EQ(imported.network->tables()[0].initializer, "uniform:0.1");
  ASSERT_NE(ParameterOf(imported, "hidden/kernel"), nullptr);
  EXPECT_THAT(ParameterOf(imported, "hidden/kernel")->initializer(), HasSubstr("normal:0.63"));
  EXPECT_EQ(ParameterOf(imported, "hidden/bias")->initializer(), "zeros");
  EXPECT_FALSE(imported.report.start.has_value());
  EXPECT_THAT(imported.report.notes,
              ElementsAre("the Sigmoid at the end is part of the loss, and of predictions"));
}

TEST(KerasTest, AModelOfKeras3) {
  const auto tensor = [](const std::string& layer) {
    return R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 2], "dtype": "float32",
               "keras_history": [")" +
           layer + R"(", 0, 0]}})";
  };
  const std::string json =
      R"({"module": "keras", "class_name": "Functional", "config": {"name": "f", "trainable": true,
      "layers": [
       {"module": "keras.layers", "class_name": "InputLayer", "name": "numbers", "inbound_nodes": [],
        "config": {"batch_shape": [null, 2], "dtype": "float32", "sparse": false, "name": "numbers"},
        "registered_name": null},
       {"module": "keras.layers", "class_name": "Dense", "name": "a",
        "config": {"name": "a", "trainable": true, "units": 3, "activation": "tanh",
          "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}},
          "kernel_initializer": {"module": "keras.initializers", "class_name": "GlorotUniform",
                                 "config": {"seed": null}, "registered_name": null}},
        "build_config": {"input_shape": [null, 2]},
        "inbound_nodes": [{"args": [)" +
      tensor("numbers") + R"(], "kwargs": {}}]},
       {"module": "keras.layers", "class_name": "Concatenate", "name": "j",
        "config": {"name": "j", "axis": -1},
        "inbound_nodes": [{"args": [[)" +
      tensor("numbers") + "," + tensor("a") + R"(]], "kwargs": {}}]},
       {"module": "keras.layers", "class_name": "Dense", "name": "out",
        "config": {"name": "out", "units": 1, "activation": "linear"},
        "inbound_nodes": [{"args": [)" +
      tensor("j") + R"(], "kwargs": {}}]}],
      "input_layers": [["numbers", 0, 0]], "output_layers": ["out", 0, 0]},
      "registered_name": "Functional"})";
  const Imported imported = ImportKeras(json);
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(imported.network->parameter_count(), 2 * 3 + 3 + 5 + 1);
  EXPECT_THAT(imported.spec.graph().inputs(0).features(), ElementsAre("a", "b"));
}

TEST(KerasTest, LayersOfRows) {
  const std::vector<std::pair<std::string, int64_t>> layers = {
      {Layer("Dropout", R"("rate": 0.3)"), 3},
      {Layer("Activation", R"("activation": "gelu")"), 3},
      {Layer("Activation", R"("activation": "swish")"), 3},
      {Layer("ReLU", R"("max_value": 6.0, "negative_slope": 0.1, "threshold": 0.0)"), 3},
      {Layer("LeakyReLU", R"("alpha": 0.2)"), 3},
      {Layer("ELU", R"("alpha": 1.0)"), 3},
      {Layer("Softmax", R"("axis": -1)"), 3},
      {Layer("BatchNormalization", R"("axis": [1], "momentum": 0.9, "epsilon": 0.001)"), 3 + 8},
      {Layer("BatchNormalization", R"("scale": false, "center": false)"), 3 + 4},
      {Layer("BatchNormalization", R"("trainable": false)"), 3 + 8},
      {Layer("LayerNormalization", R"("axis": [1], "epsilon": 0.001)"), 3 + 4},
      {Layer("Reshape", R"("target_shape": [1, -1])") + "," + Layer("Flatten", ""), 3},
      {Layer("Dense", R"("units": 2, "kernel_regularizer":
                          {"class_name": "L2", "config": {"l2": 0.01}})"),
       3 + 6}};
  for (const auto& [layer, parameters] : layers) {
    const Imported imported = ImportKeras(Sequential(layer + "," + kOut));
    ASSERT_TRUE(imported.status.ok()) << layer << imported.status.ToString();
    EXPECT_EQ(imported.network->parameter_count(), parameters) << layer;
  }
}

TEST(KerasTest, LayersOfSequences) {
  // Two numbers as two steps of one channel, then four channels.
  const std::string steps =
      Layer("Reshape", R"("target_shape": [2, 1])") + "," +
      R"({"class_name": "TimeDistributed", "config": {"name": "each", "layer": )" +
      Layer("Dense", R"("units": 4, "activation": "tanh")") + "}},";
  const int64_t before = 4 + 4;
  const std::vector<std::pair<std::string, int64_t>> layers = {
      {Layer("Conv1D", R"("filters": 3, "kernel_size": [2], "strides": [1], "padding": "same",
                          "dilation_rate": [1], "groups": 1, "activation": "relu")") +
           "," + Layer("GlobalMaxPooling1D", ""),
       2 * 4 * 3 + 3 + 3 + 1},
      {Layer("Conv1D", R"("filters": 3, "kernel_size": [2], "padding": "causal")") + "," +
           Layer("GlobalAveragePooling1D", ""),
       2 * 4 * 3 + 3 + 3 + 1},
      {Layer("MaxPooling1D", R"("pool_size": [2], "strides": [2], "padding": "valid")") + "," +
           Layer("Flatten", ""),
       4 + 1},
      {Layer("AveragePooling1D", R"("pool_size": [2], "padding": "same")") + "," +
           Layer("Flatten", ""),
       4 + 1},
      {Layer("LSTM", R"("units": 3)"), 12 * 4 + 12 * 3 + 12 + 3 + 1},
      {Layer("GRU", R"("units": 3, "reset_after": true)"), 9 * 4 + 9 * 3 + 18 + 3 + 1},
      {Layer("GRU", R"("units": 3, "reset_after": false)"), 9 * 4 + 9 * 3 + 9 + 3 + 1},
      {Layer("SimpleRNN", R"("units": 3, "return_sequences": true)") + "," + Layer("Flatten", ""),
       3 * 4 + 3 * 3 + 3 + 6 + 1},
      {R"({"class_name": "Bidirectional", "config": {"name": "both", "merge_mode": "concat",
          "layer": )" +
           Layer("LSTM", R"("units": 3)") + "}}",
       2 * (12 * 4 + 12 * 3 + 12) + 6 + 1},
      {Layer("BatchNormalization", R"("axis": [2])") + "," + Layer("Flatten", ""), 16 + 8 + 1}};
  for (const auto& [layer, parameters] : layers) {
    const Imported imported = ImportKeras(Sequential(steps + layer + "," + kOut));
    ASSERT_TRUE(imported.status.ok()) << layer << imported.status.ToString();
    EXPECT_EQ(imported.network->parameter_count(), before + parameters) << layer;
  }
}

// A few words ask for 58 GB.
TEST(KerasTest, ParametersThatDoNotFitAreNotMade) {
  ModelSpec spec = Classes(WithFeatures(Spec("my.Net")), 2);
  const std::string json = Sequential(Layer("Reshape", R"("target_shape": [2, 1])") + "," +
                                      Layer("LSTM", R"("units": 60000)") + "," + kOut);
  ImportSource source{"keras", json, {}};
  source.most_bytes = int64_t{1} << 30;
  ImportReport report;
  const Status status = ImportNetwork(source, &spec, &report);
  EXPECT_EQ(status.sqlstate(), "53200") << status.ToString();
  EXPECT_FALSE(report.start.has_value());
}

TEST(KerasTest, LayersThatDoNotLearnAreFrozen) {
  const Imported imported = ImportKeras(Keras2(R"("activation": "relu", "trainable": false)"));
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(ParameterOf(imported, "hidden/kernel")->group(), GraphParameter::FROZEN);
  EXPECT_EQ(ParameterOf(imported, "out/kernel")->group(), GraphParameter::DEEP);
}

TEST(KerasTest, APenaltyIsPartOfTheGradient) {
  const auto slope = [](const std::string& regularizer) {
    const Imported imported = ImportKeras(Sequential(
        Layer("Dense", R"("units": 1, "use_bias": false, "kernel_regularizer": )" + regularizer)));
    EXPECT_TRUE(imported.status.ok()) << imported.status.ToString();
    FeatureBatch batch = RandomBatch(*imported.network, 9, 1, 1, false, ClassLabel(2));
    const std::vector<float> weights = {0.5F, -2.0F};
    ParameterView view;
    imported.network->CollectIds(batch, &view);
    view.dense.push_back(weights.data());
    Gradient gradient;
    imported.network->Step(batch, view, 1, &gradient);
    return gradient.dense[0];
  };
  const std::vector<float> plain = slope("null");
  const std::vector<float> l2 = slope(R"({"class_name": "L2", "config": {"l2": 0.1}})");
  const std::vector<float> l1 = slope(R"({"class_name": "L1", "config": {"l1": 0.25}})");
  EXPECT_NEAR(l2[0] - plain[0], 2 * 0.1 * 0.5, 1e-6);
  EXPECT_NEAR(l2[1] - plain[1], 2 * 0.1 * -2, 1e-6);
  EXPECT_NEAR(l1[0] - plain[0], 0.25, 1e-6);
  EXPECT_NEAR(l1[1] - plain[1], -0.25, 1e-6);
}

TEST(KerasTest, WhatItCannotBeIsSaidByName) {
  EXPECT_THAT(KerasError("import keras"), HasSubstr("this is not JSON"));
  EXPECT_THAT(KerasError("{}"), HasSubstr("it has no layers"));
  EXPECT_THAT(KerasError("[1, 2]"), HasSubstr("it has no layers"));
  EXPECT_THAT(KerasError(std::string(10'000, '[')), HasSubstr("nested more than 100 deep"));
  EXPECT_THAT(KerasError(Keras2(R"("activation": "relu")", "Lambda")),
              AllOf(HasSubstr("layer 'hidden' is a Lambda, which is not supported"),
                    HasSubstr("export the model to ONNX")));
  EXPECT_THAT(KerasError(Keras2(R"("activation": "relu")", "MyLayer")),
              HasSubstr("layer 'hidden' is a MyLayer, which is not supported"));
  EXPECT_THAT(KerasError(Keras2(R"("activation": "relu")", "Dence")),
              HasSubstr("did you mean Dense?"));
  EXPECT_THAT(KerasError(Keras2(R"("activation": "my_function")")),
              HasSubstr("layer 'hidden' (Dense): the activation 'my_function' is not supported"));
  EXPECT_THAT(KerasError(Sequential(Layer("Dense", R"("units": -3)"))),
              HasSubstr("layer 'the_Dense' (Dense): units must be a whole number from 1"));
  EXPECT_THAT(KerasError(R"({"class_name": "Sequential", "config": {"layers": [1, 2]}})"),
              HasSubstr("a layer has no name"));
  EXPECT_THAT(KerasError(Sequential(kOut, "[null, 3]")),
              HasSubstr("input 'x' of the model is [rows, 3], and its features have 2"));
  EXPECT_THAT(KerasError(Sequential(kOut, "[null, null]")), HasSubstr("an axis of no known size"));
  EXPECT_THAT(KerasError(Sequential(Layer("Dense", R"("units": 1, "kernel_initializer":
                                   {"class_name": "Identity", "config": {}})"))),
              HasSubstr("the initialiser Identity is not supported"));
  EXPECT_THAT(KerasError(Sequential(Layer("LSTM", R"("units": 3)"))),
              HasSubstr("layer 'the_LSTM' (LSTM): an input of other than [rows, steps, channels]"));
  std::string cyclic = Keras2();
  cyclic.replace(cyclic.find(R"(["join", 0, 0, {}])"), 18, R"(["out", 0, 0, {}] )");
  EXPECT_THAT(KerasError(cyclic), HasSubstr("reads what it gives itself"));
}

}  // namespace
}  // namespace sluice::models
