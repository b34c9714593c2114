#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "models/imports/bind_features_internal.h"
#include "models/imports/compiled_model.h"
#include "models/imports/compiled_model_internal.h"
#include "models/imports/import_network.h"
#include "planner/compile/python_models.h"
#include "tests/models/imports/recorded_network.h"

// Functions that return a keras.Model, in a real Python. Keras itself is not in Debian: a module of
// this name stands in, whose models have a recorded to_json() and the recorded weights, in Keras's
// layout.
namespace sluice::planner {
namespace {

using ::testing::HasSubstr;

constexpr char kKeras[] = R"(
import array, json, os
__version__ = "2.13.1"
FOLDER = os.path.dirname(__file__)

class Array:
    def __init__(self, shape, values):
        self.shape, self.values, self.size = tuple(shape), array.array("f", values), len(values)
    def astype(self, kind):
        return self
    def tobytes(self):
        return self.values.tobytes()

class Variable:
    def __init__(self, name, shape, values):
        self.name, self.value = name, Array(shape, values)
    def numpy(self):
        return self.value

class Layer:
    def __init__(self, name, weights):
        self.name, self.weights = name, weights

class Model:
    def __init__(self, text, layers):
        self.text, self.layers = text, layers
    def to_json(self):
        return self.text

class Adam:
    def get_config(self):
        return {"name": "Adam", "learning_rate": 0.02, "weight_decay": None, "use_ema": False, "jit_compile": True}

class optimizers:
    Adam = Adam

def own_layout(layer, part, values):
    """The weights of Keras, of which Sluice has turned those of recurrent layers and convolutions."""
    kind, config = layer["class_name"], layer["config"]
    ways = 2 if kind == "Bidirectional" else 1
    if ways == 2:
        kind, config = config["layer"]["class_name"], config["layer"]["config"]
    if kind in ("LSTM", "GRU", "SimpleRNN"):
        gates = {"LSTM": [0, 2, 3, 1], "GRU": [0, 1, 2], "SimpleRNN": [0]}[kind]  # Keras's in our order
        units, each = config["units"], len(values) // ways
        columns = len(gates) * units
        for way in range(ways):
            own = values[way * each:(way + 1) * each]
            rows = each // columns
            at = lambda column, row: own[(gates[column // units] * units + column % units) * rows + row]
            flat = [at(column, row) for row in range(rows) for column in range(columns)]
            name = f"{'backward' if way else 'forward'}_cell/{part}:0"
            yield Variable(name, [columns] if part == "bias" else [rows, columns], flat)
    elif kind == "Conv1D" and part == "kernel":
        filters, steps = config["filters"], config["kernel_size"][0]
        channels = len(values) // filters // steps
        yield Variable("conv/kernel:0", [steps, channels, filters],
                       [values[(f * channels + c) * steps + s] for s in range(steps) for c in range(channels) for f in range(filters)])
    else:
        widths = {"kernel": config.get("units") or config.get("layer", {}).get("config", {}).get("units"),
                  "embeddings": config.get("output_dim")}
        width = widths.get(part)
        yield Variable(f"{layer['config']['name']}/{part}:0", [len(values) // width, width] if width else [len(values)], values)

def recorded(name):
    text = open(os.path.join(FOLDER, name + ".json")).read()
    lines = dict(line.rstrip().rsplit(": ", 1) for line in open(os.path.join(FOLDER, name + ".numbers")))
    layers = []
    for layer in json.loads(text)["config"]["layers"]:
        own = layer["config"]["name"]
        weights = [v for key, numbers in lines.items() if key.startswith(own + "/")
                   for v in own_layout(layer, key[len(own) + 1:], [float(n) for n in numbers.split()])]
        layers.append(Layer(own, weights))
    return Model(text, layers)
)";

class KerasInPython : public ::testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    if (!fs::exists(PythonOptions().program)) {
      GTEST_SKIP() << "there is no Python";
    }
    // A folder with a Python of its own, as venv makes it.
    std::string made = (fs::temp_directory_path() / "sluice_keras_XXXXXX").string();
    ASSERT_NE(mkdtemp(made.data()), nullptr);
    root_ = made;
    const fs::path& root = root_;
    const fs::path packages = root / "site-packages";
    fs::create_directories(packages / "keras");
    fs::create_directories(root / "bin");
    fs::create_symlink(PythonOptions().program, root / "bin/python3");
    std::ofstream(root / "pyvenv.cfg") << "home = /usr/bin\ninclude-system-site-packages = false\n";
    for (int minor = 8; minor < 20; ++minor) {
      const fs::path lib = root / "lib" / ("python3." + std::to_string(minor));
      fs::create_directories(lib);
      fs::create_directory_symlink(packages, lib / "site-packages");
    }
    std::ofstream(packages / "keras/__init__.py") << kKeras;
    const fs::path records = fs::path(SLUICE_SOURCE_DIR) / "tests/models/imports/keras";
    for (const auto& file : fs::directory_iterator(records)) {
      if (file.path().extension() != ".js") {
        fs::copy_file(file.path(), packages / "keras" / file.path().filename());
      }
    }
    options_.allowed = true;
    options_.program = (root / "bin/python3").string();
    plan_ = models::DenseAndIds();
    plan_.mutable_label()->set_kind(models::LabelPlan::NUMBER);
    plan_.mutable_label()->set_scale(1);
    for (models::Feature& feature : *plan_.mutable_features()) {
      feature.add_inputs(static_cast<uint32_t>(plan_.inputs_size()));
      plan_.add_inputs()->set_name(feature.name());
      feature.set_scale(1);
      feature.mutable_format()->set_kind(models::TensorFormat::CSV);
      feature.mutable_format()->set_delimiter(",");
      if (feature.kind() == models::Feature::CATEGORY) {
        feature.set_representation(models::Feature::INDICATOR);
        feature.mutable_format()->set_sparse(true);
        feature.mutable_categorizer()->set_kind(models::Categorizer::HASH);
        feature.mutable_categorizer()->set_null_bucket(-1);
        feature.mutable_categorizer()->set_oov_bucket(-1);
      }
    }
  }

  void TearDown() override {
    if (!root_.empty()) {
      std::filesystem::remove_all(root_);
    }
  }

  Result<std::string> Compile(const std::string& source, const std::string& name = "make") {
    source_ = source;
    return CompilePythonModel({source_, name, true}, {plan_, {}, 1, 1}, options_);
  }
  std::string Refused(const std::string& source) {
    const auto compiled = Compile(source);
    if (compiled.ok()) {
      return "compiled";
    }
    const Diagnostic& error = compiled.status().diagnostics().front();
    const int line = error.span.valid() ? FindLineColumn(source_, error.span.begin).line : 0;
    return std::to_string(line) + ": " + error.message + " / " + error.hint;
  }

  std::filesystem::path root_;
  PythonOptions options_;
  models::FeaturePlan plan_;
  std::string source_;
};

TEST_F(KerasInPython, ModelsBeginWithTheirWeightsAndComputeWhatKerasDid) {
  for (const std::string name : {"rows", "windows", "states", "both_ways"}) {
    const auto compiled = Compile(
        "import keras\ndef make(features, outputs):\n  return keras.recorded('" + name + "')\n");
    ASSERT_TRUE(compiled.ok()) << name << ": " << compiled.status().ToString();
    Result<models::ImportedNetwork> read = models::ReadCompiledKeras(*compiled);
    ASSERT_TRUE(read.ok()) << name << ": " << read.status().ToString();
    std::vector<std::string> unread;
    ASSERT_TRUE(models::BindToFeatures(models::DenseAndIds(), &*read, &unread).ok());
    models::graph::TestedGraph tested(read->graph, models::ActiveKernels(), models::kRecordedRows);
    ASSERT_TRUE(tested.ok());
    for (size_t p = 0; p < tested.parameters(); ++p) {
      const auto values = read->values.find(tested.Name(p));
      ASSERT_NE(values, read->values.end()) << name << ": " << tested.Name(p);
      tested.Values(p) = values->second;
    }
    auto expected = models::ReadNumbers("imports/keras/" + name + ".numbers");
    models::SetInputs(expected, &tested);
    EXPECT_LT(models::Error(tested.Forward().data(), expected["output"]), 1e-5) << name;
  }
}

// As Keras 3 writes it, whose variables are named without layer and ":0".
TEST_F(KerasInPython, AModelOfKeras3) {
  const auto compiled = Compile(R"(
import json, keras
def tensor(layer, width):
    return {"class_name": "__keras_tensor__", "config": {"shape": [None, width], "dtype": "float32", "keras_history": [layer, 0, 0]}}
def make(features, outputs, width=2):
    names = [f.name for f in features]
    assert names == ["dense", "ids"] and features[0].width == 4 and features[1].buckets == 9, features
    layers = [
        {"module": "keras.layers", "class_name": "InputLayer", "name": "dense", "registered_name": None, "inbound_nodes": [],
         "config": {"batch_shape": [None, 4], "dtype": "float32", "sparse": False, "name": "dense"}},
        {"module": "keras.layers", "class_name": "Dense", "name": "out", "registered_name": None,
         "build_config": {"input_shape": [None, 4]},
         "config": {"name": "out", "trainable": True, "units": outputs, "activation": "linear", "use_bias": True,
                    "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}},
         "inbound_nodes": [{"args": [tensor("dense", 4)], "kwargs": {}}]}]
    text = json.dumps({"module": "keras.src.models.functional", "class_name": "Functional", "registered_name": "Functional",
                       "config": {"name": "functional", "trainable": True, "layers": layers,
                                  "input_layers": [["dense", 0, 0]], "output_layers": ["out", 0, 0]}})
    weights = [keras.Variable("kernel", [4, 1], [0.5, -1.0, 2.0, 0.25]), keras.Variable("bias", [1], [3.0])]
    return keras.Model(text, [keras.Layer("dense", []), keras.Layer("out", weights)])
def optimizer():
    return keras.optimizers.Adam()
)");
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  const auto read = models::ReadCompiledKeras(*compiled);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->values.at("out/kernel"), (std::vector<float>{0.5F, -1, 2, 0.25F}));
  EXPECT_EQ(read->values.at("out/bias"), (std::vector<float>{3}));
  const auto model = models::ReadCompiledModel(*compiled);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->optimizer.name, "Adam");
}

TEST_F(KerasInPython, AreDescribedByTheirSignature) {
  const std::string source =
      "import keras\ndef make(features, outputs, hidden=(32, 16), rate: float = 0.1):\n  return "
      "keras.recorded('rows')\n";
  const auto described = DescribePythonModel({source, "make", true}, options_);
  ASSERT_TRUE(described.ok()) << described.status().ToString();
  EXPECT_THAT(*described, HasSubstr(R"("keras": "2.13.1")"));
  EXPECT_THAT(*described,
              HasSubstr(R"("name": "hidden", "type": "integers", "default": [32, 16])"));
}

TEST_F(KerasInPython, WhatIsWrongIsToldWithItsLine) {
  const std::string begin = "import keras\ndef make(features, outputs):\n";
  EXPECT_THAT(Refused(begin + "  return 1 / 0\n"),
              HasSubstr("3: ZeroDivisionError: division by zero (in make)"));
  EXPECT_THAT(Refused(begin + "  return 7\n"),
              HasSubstr("2: make returned int, not a keras.Model"));
  EXPECT_THAT(
      Refused("import keras\ndef mak(features):\n  return 7\ndef other(features):\n  return 7\n"),
      HasSubstr("0: the source has no class or function 'make' / did you mean 'mak'?"));
  EXPECT_THAT(
      Refused(begin +
              "  return keras.recorded('rows')\ndef loss(output, label):\n  return output\n"),
      HasSubstr("4: loss() of a source in Keras is not read / model.loss names one"));
  EXPECT_THAT(
      Refused(begin +
              "  return keras.Model('{\"class_name\": \"Sequential\", \"config\": {\"layers\": "
              "[{\"class_name\": \"Lambda\", \"config\": {\"name\": \"l\", \"batch_input_shape\": "
              "[null, 4]}}]}}', [])\n"),
      HasSubstr("layer 'l' is a Lambda, which is not supported"));
  EXPECT_THAT(Refused(begin + "  import os; os._exit(3)\n"),
              HasSubstr("Python ended (exit code 3)"));
  options_.limits.seconds = 2;
  EXPECT_THAT(Refused(begin + "  while True: pass\n"),
              HasSubstr("Python was not done with the model within 2 seconds"));
  options_.allowed = false;
  EXPECT_THAT(Refused(begin + "  return 7\n"),
              HasSubstr("models in Python are not compiled here / a gateway does so after `serve "
                        "--python-models`"));
}

TEST_F(KerasInPython, WithoutKerasTheErrorSaysWhatToInstall) {
  std::filesystem::remove_all(root_ / "site-packages/keras");
  EXPECT_THAT(Refused("import keras\ndef make(features, outputs):\n  return 7\n"),
              HasSubstr("0: this Python has no keras (No module named 'keras') / pip install keras "
                        "tensorflow, or --python names "
                        "another Python; the model's own to_json() as LANGUAGE keras, and an ONNX "
                        "file, need neither"));
}

TEST(CompiledKeras, IsNotTrusted) {
  for (const std::string form : {"", "{}", "{\"json_bytes\": 9}\n{}", "{\"json_bytes\": -1}\n{}",
                                 "[]\n", "{\"json_bytes\": 2}\n{}",
                                 "{\"json_bytes\": 0, \"weights\": [{\"layer\": \"a\", \"name\": "
                                 "\"b\", \"shape\": [9e18]}]}\n"}) {
    EXPECT_FALSE(models::ReadCompiledKeras(form).ok()) << form;
  }
}

}  // namespace
}  // namespace sluice::planner
