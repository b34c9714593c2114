#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "models/imports/import_network.h"
#include "models/model.pb.h"
#include "tests/models/imports/imported.h"
#include "tests/models/imports/onnx_builder.h"
#include "tests/models/networks/network_rows.h"

namespace sluice::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ModelSpec People(int classes = 2) {
  return Classes(WithFeatures(Spec("my.Net")), classes);
}

Imported ImportOnnx(const std::string& file, ModelSpec spec = People(),
                    const std::vector<std::string>& frozen = {}) {
  return ImportFile("onnx", file, std::move(spec), frozen);
}

std::string OnnxError(const std::string& file, const std::vector<std::string>& frozen = {}) {
  return ImportOnnx(file, People(), frozen).status.ToString();
}

TEST(OnnxTest, AFileIsATrainableNetworkWithItsValues) {
  const Imported imported = ImportOnnx(OnnxBuilder::Small().Bytes());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  ASSERT_EQ(imported.network->tables().size(), 1u);
  EXPECT_EQ(imported.network->tables()[0].name, "table");
  EXPECT_EQ(imported.network->parameter_count(), 15 + 4 + 1);
  ASSERT_TRUE(imported.report.start.has_value());
  EXPECT_TRUE(CheckShape(*imported.report.start, *imported.network).ok());
  EXPECT_THAT(imported.report.start->dense[0], ElementsAre(0.1F, 0.2F, 0.3F, 0.4F));
  EXPECT_EQ(imported.report.start->tables[0].ids.size(), 5u);
  EXPECT_THAT(imported.report.unread_features, ElementsAre("b", "d", "e"));

  FeatureBatch batch = RandomBatch(*imported.network, 3, 1, 1, false, ClassLabel(2));
  ParameterView view;
  imported.network->CollectIds(batch, &view);
  for (const std::vector<float>& values : imported.report.start->dense) {
    view.dense.push_back(values.data());
  }
  const std::vector<float>& table = imported.report.start->tables[0].values;
  for (const int64_t id : view.tables[0].ids) {
    view.tables[0].values.insert(view.tables[0].values.end(), table.begin() + id * 3,
                                 table.begin() + id * 3 + 3);
  }
  std::vector<double> predictions;
  imported.network->Predict(batch, view, &predictions);
  for (size_t r = 0; r < batch.rows; ++r) {
    const float* row = table.data() + batch.slots[0].ids[r] * 3;
    const float y = 0.1F * batch.dense[r * batch.dense_width] + 0.2F * row[0] + 0.3F * row[1] +
                    0.4F * row[2] + 0.1F;
    EXPECT_NEAR(predictions[r], 1 / (1 + std::exp(-y)), 1e-6);
  }
}

TEST(OnnxTest, NamesOfFeaturesAreInAnyCase) {
  OnnxBuilder b = OnnxBuilder::Small();
  b.graph().mutable_inputs(0)->set_name("A:0");
  b.graph().mutable_nodes(1)->set_inputs(0, "A:0");
  EXPECT_TRUE(ImportOnnx(b.Bytes()).status.ok());
}

TEST(OnnxTest, TheOnlyInputOfFloatsTakesAllNumbers) {
  OnnxBuilder b;
  b.Input("input", {2});
  b.Floats("w", {2, 1});
  b.Node("MatMul", {"input", "w"}, "y");
  b.Output("y");
  const Imported imported = ImportOnnx(b.Bytes());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_THAT(imported.spec.graph().inputs(0).features(), ElementsAre("a", "b"));
  b.graph()
      .mutable_inputs(0)
      ->mutable_type()
      ->mutable_tensor()
      ->mutable_shape()
      ->mutable_dims(1)
      ->set_value(3);
  EXPECT_THAT(
      OnnxError(b.Bytes()),
      HasSubstr("input 'input' of the model is [rows, 3], and its features have 2 numbers"));
}

TEST(OnnxTest, NumbersComeInTheShapeThatTheFileSays) {
  OnnxBuilder b;
  b.Input("a", {});
  b.Input("b", {1, 1});
  b.Floats("w", {1});
  b.Integers("axes", {1, 2});
  b.Node("Squeeze", {"b", "axes"}, "flat");
  b.Node("Add", {"a", "flat"}, "sum");
  b.Node("Mul", {"sum", "w"}, "y");
  b.Output("y");
  const Imported imported = ImportOnnx(b.Bytes());
  EXPECT_TRUE(imported.status.ok()) << imported.status.ToString();
}

TEST(OnnxTest, AnEmbeddingColumnComesAsItsRows) {
  OnnxBuilder b;
  b.Input("c", {3});
  b.Floats("w", {3, 1});
  b.Node("MatMul", {"c", "w"}, "y");
  b.Output("y");
  const Imported imported = ImportOnnx(b.Bytes());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  ASSERT_EQ(imported.network->tables().size(), 1u);
  EXPECT_EQ(imported.network->tables()[0].dimension, 3u);
}

TEST(OnnxTest, WhatTheLossDoesIsLeftToIt) {
  OnnxBuilder b = OnnxBuilder::Small();
  b.Node("Sigmoid", {"y"}, "p");
  b.Output("p");
  const Imported imported = ImportOnnx(b.Bytes());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_THAT(imported.report.notes,
              ElementsAre("the Sigmoid at the end is part of the loss, and of predictions"));
  for (const GraphNode& node : imported.spec.graph().nodes()) {
    EXPECT_NE(node.op_type(), "Sigmoid");
  }
  // Of numbers it is the model's own.
  const Imported numbers = ImportOnnx(b.Bytes(), Numbers(WithFeatures(Spec("my.Net"))));
  EXPECT_TRUE(numbers.report.notes.empty());
}

TEST(OnnxTest, TwoOutputsOfTwoClassesAreOne) {
  OnnxBuilder b;
  b.Input("a", {1});
  b.Floats("w", {1, 2});
  b.Node("MatMul", {"a", "w"}, "z");
  b.Node("Softmax", {"z"}, "p");
  b.Output("p");
  const Imported imported = ImportOnnx(b.Bytes());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(imported.network->outputs(), 1u);
}

TEST(OnnxTest, InitializersLearnUnlessTheyAreFrozenOrDecide) {
  OnnxBuilder b = OnnxBuilder::Small();
  b.Floats("ratio", {}, 0.5F);
  b.Node("Dropout", {"y", "ratio"}, "z");
  b.Output("z");
  const Imported imported = ImportOnnx(b.Bytes(), People(), {"weight"});
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  ASSERT_EQ(imported.network->dense().size(), 2u);
  EXPECT_EQ(imported.network->dense()[0].group, DenseTensor::Group::kFrozen);
  EXPECT_EQ(imported.network->dense()[1].group, DenseTensor::Group::kDeep);
  EXPECT_THAT(OnnxError(b.Bytes(), {"wieght"}),
              AllOf(HasSubstr("model.frozen names 'wieght', which is no parameter"),
                    HasSubstr("did you mean 'weight'?")));
}

TEST(OnnxTest, BatchNormalisationKeepsStatistics) {
  OnnxBuilder b;
  b.Input("a", {1});
  for (const char* name : {"scale", "shift", "mean", "variance"}) {
    b.Floats(name, {1}, 1.0F);
  }
  onnx::Node& node = b.Node("BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, "y");
  onnx::Attribute* momentum = node.add_attributes();
  momentum->set_name("momentum");
  momentum->set_type(onnx::Attribute::FLOAT);
  momentum->set_f(0.75F);
  b.Output("y");
  const Imported imported = ImportOnnx(b.Bytes());
  ASSERT_TRUE(imported.status.ok()) << imported.status.ToString();
  EXPECT_EQ(imported.network->dense()[2].group, DenseTensor::Group::kStatistics);
  EXPECT_FLOAT_EQ(imported.network->dense()[2].momentum, 0.75F);
}

TEST(OnnxTest, OperatorsThatOthersSayInOtherWords) {
  OnnxBuilder b;
  b.Input("a", {1});
  b.Input("b", {1});
  b.Floats("slope", {1});
  b.Node("PRelu", {"a", "slope"}, "p");
  b.Node("HardSwish", {"b"}, "h");
  b.Node("Sum", {"p", "h", "a"}, "s");
  b.Node("Mean", {"s", "b"}, "m");
  b.Node("GreaterOrEqual", {"m", "a"}, "g");
  b.Node("LessOrEqual", {"m", "a"}, "l");
  b.Node("Or", {"g", "l"}, "o");
  b.Node("Where", {"o", "m", "a"}, "y");
  b.Output("y");
  const Imported imported = ImportOnnx(b.Bytes());
  EXPECT_TRUE(imported.status.ok()) << imported.status.ToString();
}

TEST(OnnxTest, WhatItCannotBeIsSaidByName) {
  const auto changed = [](const std::function<void(OnnxBuilder*)>& change) {
    OnnxBuilder b = OnnxBuilder::Small();
    change(&b);
    return OnnxError(b.Bytes());
  };
  EXPECT_THAT(OnnxError("this is text"), HasSubstr("this is no ONNX file"));
  EXPECT_THAT(OnnxError(""), HasSubstr("this is no ONNX file"));
  const std::string whole = OnnxBuilder::Small().Bytes();
  EXPECT_THAT(OnnxError(whole.substr(0, whole.size() - 40)), HasSubstr("this is no ONNX file"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->model.clear_graph(); }),
              HasSubstr("it has no graph"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->model.mutable_operator_sets(0)->set_version(11); }),
              HasSubstr("operator set 11: 13 and later are read"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->model.clear_operator_sets(); }),
              HasSubstr("does not say which operator set"));
  EXPECT_THAT(changed([](OnnxBuilder* b) {
                b->graph().mutable_nodes(2)->set_domain("ai.onnx.ml");
                b->graph().mutable_nodes(2)->set_op_type("LinearClassifier");
              }),
              HasSubstr("node 'the Gemm' (LinearClassifier): operators of 'ai.onnx.ml' are not"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->Node("Loop", {"y"}, "z"); }),
              HasSubstr("node 'the Loop' (Loop): control flow is not supported"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->graph().mutable_nodes(2)->set_op_type("Gem"); }),
              AllOf(HasSubstr("operator 'Gem' is not supported"), HasSubstr("'Gemm'")));
  EXPECT_THAT(
      changed([](OnnxBuilder* b) { b->graph().mutable_initializers(1)->set_data_location(1); }),
      HasSubstr("the values of tensor 'weight' are in another file"));
  EXPECT_THAT(
      changed([](OnnxBuilder* b) { b->graph().mutable_initializers(1)->set_data_type(10); }),
      HasSubstr("tensor 'weight' is of float16"));
  EXPECT_THAT(
      changed([](OnnxBuilder* b) { b->graph().mutable_initializers(1)->add_float_data(1); }),
      HasSubstr("tensor 'weight' has 5 values, its shape takes 4"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->graph().mutable_initializers(1)->set_dims(0, -3); }),
              HasSubstr("tensor 'weight' has an axis of -3"));
  EXPECT_THAT(changed([](OnnxBuilder* b) {
                b->graph().mutable_initializers(1)->set_dims(0, int64_t{1} << 40);
                b->graph().mutable_initializers(1)->set_dims(1, int64_t{1} << 40);
              }),
              HasSubstr("tensor 'weight' has an axis of 1099511627776"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->graph().mutable_nodes(0)->set_inputs(1, "y"); }),
              HasSubstr("node 'the Gather' (Gather) reads 'y', which is made by it or by a node "
                        "behind it"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->graph().add_outputs()->set_name("x"); }),
              HasSubstr("the model has 2 outputs"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->graph().set_sparse_initializers("x"); }),
              HasSubstr("sparse initializers are not supported"));
  EXPECT_THAT(changed([](OnnxBuilder* b) { b->Floats("weight", {1}); }),
              HasSubstr("two initializers are called 'weight'"));
  EXPECT_THAT(changed([](OnnxBuilder* b) {
                b->graph().mutable_initializers(1)->set_float_data(0, std::nanf(""));
              }),
              HasSubstr("initializer 'weight' begins with NaN"));
  EXPECT_THAT(changed([](OnnxBuilder* b) {
                b->graph().mutable_nodes(0)->set_inputs(1, "y");
                b->graph().mutable_nodes(0)->clear_name();
              }),
              HasSubstr("a node (Gather) reads 'y'"));
}

TEST(OnnxTest, WhatDoesNotFitTheFeaturesIsSaidByName) {
  const auto renamed = [](const std::string& input, int which) {
    OnnxBuilder b = OnnxBuilder::Small();
    b.Input("b", {1});
    b.graph().mutable_inputs(which)->set_name(input);
    b.graph().mutable_nodes(which == 0 ? 1 : 0)->set_inputs(which == 0 ? 0 : 1, input);
    return OnnxError(b.Bytes());
  };
  EXPECT_THAT(renamed("age", 0),
              HasSubstr("the model has an input 'age', and the SELECT has no such feature"));
  EXPECT_THAT(renamed("b", 1), HasSubstr("input 'b' of the model takes ids, and feature 'b' is"));
  EXPECT_THAT(renamed("d", 0), HasSubstr("takes numbers, and feature 'd' is a category"));
  OnnxBuilder small_table;
  small_table.Ids("c");
  small_table.Floats("t", {4, 1});
  small_table.Node("Gather", {"t", "c"}, "y");
  small_table.Output("y");
  EXPECT_THAT(OnnxError(small_table.Bytes()),
              HasSubstr("has 4 rows, its feature 'c' has 5 values"));
  OnnxBuilder wide;
  wide.Input("a", {1});
  wide.Floats("w", {1, 3});
  wide.Node("MatMul", {"a", "w"}, "y");
  wide.Output("y");
  EXPECT_THAT(OnnxError(wide.Bytes()), HasSubstr("this label needs one number per row"));
}

TEST(OnnxTest, FilesOfManyEmptyFieldsTakeNoMemory) {
  // A node of two bytes each: twenty million objects.
  std::string nodes;
  for (int i = 0; i < 1'100'000; ++i) {
    nodes += std::string("\x0a\x00", 2);
  }
  onnx::Model model;
  model.add_operator_sets()->set_version(13);
  std::string file = model.SerializeAsString();
  file += '\x3a';
  for (size_t length = nodes.size(); length > 0; length >>= 7U) {
    file += static_cast<char>((length & 127U) | (length > 127 ? 128U : 0U));
  }
  EXPECT_THAT(OnnxError(file + nodes), HasSubstr("more than 1000000 fields"));
}

}  // namespace
}  // namespace sluice::models
