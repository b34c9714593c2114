#include "planner/compile/python_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <unistd.h>

#include "models/imports/import_network.h"
#include "models/model.h"
#include "models/model.pb.h"
#include "tests/support/finds_torch.h"

// Models in PyTorch, compiled by a real Python: left out where it has no torch.
namespace sluice::planner {
namespace {

using ::testing::HasSubstr;

void AddNumber(const std::string& name, models::FeaturePlan* plan) {
  plan->add_inputs()->set_name(name);
  models::Feature* feature = plan->add_features();
  feature->set_name(name);
  feature->add_inputs(static_cast<uint32_t>(plan->inputs_size() - 1));
  feature->set_scale(1);
}

void AddIds(const std::string& name, uint32_t buckets, models::FeaturePlan* plan) {
  AddNumber(name, plan);
  models::Feature* feature = plan->mutable_features(plan->features_size() - 1);
  feature->set_kind(models::Feature::CATEGORY);
  feature->set_representation(models::Feature::INDICATOR);
  feature->mutable_categorizer()->set_kind(models::Categorizer::HASH);
  feature->mutable_categorizer()->set_buckets(buckets);
  feature->mutable_categorizer()->set_null_bucket(-1);
  feature->mutable_categorizer()->set_oov_bucket(-1);
}

class PythonModels : public ::testing::Test {
 protected:
  void SetUp() override {
    static const bool has_torch = FindsTorch(PythonOptions());
    if (!has_torch) {
      GTEST_SKIP() << "there is no torch: scripts/install_packages --tests installs it";
    }
    AddNumber("age", &plan_);
    AddNumber("hours", &plan_);
    AddIds("job", 16, &plan_);
    plan_.mutable_label()->set_kind(models::LabelPlan::NUMBER);
    plan_.mutable_label()->set_scale(1);
    options_.allowed = true;
    static const bool can_contain = CanContainPrograms();
    options_.limits.contained = can_contain;  // as in a gateway
  }

  // A class whose forward ends with `last`; in it, v is [rows, 6], made of x.
  static std::string Net(const std::string& last, const std::string& table = "16") {
    return "import os, torch\n"
           "from torch import nn\n"
           "class Net(nn.Module):\n"
           "  def __init__(self, features, outputs, width: int = 4):\n"
           "    super().__init__()\n"
           "    self.e = nn.Embedding(" +
           table +
           ", 4)\n"
           "    self.l = nn.Linear(6, outputs)\n"
           "  def forward(self, x):\n"
           "    v = torch.cat([x['age'], x['hours'], self.e(x['job'])], 1)\n"
           "    " +
           last + "\n";
  }

  Result<std::string> Compile(const std::string& source, const std::string& name = "Net") {
    source_ = source;
    return CompilePythonModel({source_, name}, {plan_, {}, 1, 1}, options_);
  }
  // "10: message / hint": with the line of the source.
  std::string Refused(const std::string& source, const std::string& name = "Net") {
    const auto compiled = Compile(source, name);
    if (compiled.ok()) {
      return "compiled";
    }
    const Diagnostic& error = compiled.status().diagnostics().front();
    const int line = error.span.valid() ? FindLineColumn(source_, error.span.begin).line : 0;
    return std::to_string(line) + ": " + error.message + " / " + error.hint;
  }

  models::FeaturePlan plan_;
  PythonOptions options_;
  std::string source_;
};

TEST_F(PythonModels, BecomeAGraphThatAgreesWithTheModule) {
  const auto compiled = Compile(Net("return self.l(torch.tanh(v))"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  models::ModelSpec spec;
  *spec.mutable_features() = plan_;
  spec.set_loss("squared");
  models::ImportReport report;
  const Status imported = models::ImportNetwork({"pytorch", *compiled, {}}, &spec, &report);
  ASSERT_TRUE(imported.ok()) << imported.ToString();
  ASSERT_EQ(spec.graph().tables_size(), 1);  // the embedding
  EXPECT_EQ(spec.graph().tables(0).rows(), 16);
  EXPECT_TRUE(models::Network::Make(spec).ok());
}

// torch exports the logarithm of a sigmoid, which is infinite where the sigmoid is 0.
TEST_F(PythonModels, ALossOfLogitsIsFiniteForAllOfThem) {
  const auto compiled = Compile(Net("return self.l(v)") +
                                "def loss(output, label):\n"
                                "  return nn.functional.binary_cross_entropy_with_logits(output, "
                                "label, reduction='none')\n");
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  models::ModelSpec spec;
  *spec.mutable_features()->mutable_label() = plan_.label();
  spec.mutable_features()->mutable_label()->set_column("label");
  const Status imported = models::ImportLossAlone(*compiled, 1, &spec);
  ASSERT_TRUE(imported.ok()) << imported.ToString();
  const auto network = models::Network::Make(spec);
  ASSERT_TRUE(network.ok()) << network.status().ToString();
  models::FeatureBatch row;
  row.rows = 1;
  row.dense_width = 1;
  row.dense = {200};
  row.labels = {0};
  const float shift = 0;
  models::ParameterView view;
  view.dense.push_back(&shift);
  models::Gradient gradient;
  EXPECT_NEAR((*network)->Step(row, view, 1, &gradient).loss, 200, 1e-3);
  EXPECT_NEAR(static_cast<double>(gradient.dense.at(0).at(0)), 1, 1e-6);
}

TEST_F(PythonModels, ARowsOutputFollowsFromThatRowAlone) {
  EXPECT_THAT(Refused(Net("return self.l(v - v.mean(0))")),
              HasSubstr("the output of a row depends on the other rows"));
  EXPECT_EQ(Refused(Net("return self.l(v - v.mean(1, keepdim=True))")), "compiled");
}

TEST_F(PythonModels, ASequenceHasAsManyIdsAsItsFeatureSays) {
  models::TensorFormat* format = plan_.mutable_features(2)->mutable_format();
  format->set_kind(models::TensorFormat::CSV);
  format->set_sparse(true);
  const auto source = [](int length) {
    return "import torch\n"
           "class Net(torch.nn.Module):\n"
           "  def __init__(self, features, outputs):\n"
           "    super().__init__()\n"
           "    self.e = torch.nn.Embedding(16, outputs)\n"
           "    assert features[2].length == " +
           std::to_string(length) +
           ", features\n"
           "  def forward(self, x):\n"
           "    return self.e(x['job'])[:, " +
           std::to_string(length - 1) + "]\n";
  };
  EXPECT_EQ(Refused(source(64)), "compiled");  // any number of ids: the first 64
  format->add_shape(5);
  EXPECT_EQ(Refused(source(5)), "compiled");
}

TEST_F(PythonModels, CannotChangeFiles) {
  const std::string path = ::testing::TempDir() + "/sluice_never_there";
  const std::string refused = Refused(Net("open('" + path + "', 'w'); return self.l(v)"));
  if (refused == "compiled") {
    unlink(path.c_str());
    GTEST_SKIP() << "the kernel allows no namespaces here";
  }
  EXPECT_THAT(refused, HasSubstr("Read-only file system"));
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST_F(PythonModels, AreDescribedByTheirSignature) {
  const std::string source = Net("return self.l(v)");
  const auto described = DescribePythonModel({source, "Net"}, options_);
  ASSERT_TRUE(described.ok()) << described.status().ToString();
  EXPECT_THAT(*described, HasSubstr(R"("name": "width", "type": "integer", "default": 4)"));
}

TEST_F(PythonModels, AnEmbeddingOfTenMillionRowsIsNeverMadeWhole) {
  options_.limits.memory_bytes = int64_t{3} << 30;
  const auto compiled = Compile(Net("return self.l(v)", "10_000_000"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  EXPECT_LT(compiled->size(), size_t{1} << 20);
  models::ModelSpec spec;
  *spec.mutable_features() = plan_;
  spec.set_loss("squared");
  models::ImportReport report;
  ASSERT_TRUE(models::ImportNetwork({"pytorch", *compiled, {}}, &spec, &report).ok());
  ASSERT_EQ(spec.graph().tables_size(), 1);
  EXPECT_EQ(spec.graph().tables(0).rows(), 10'000'000);
  EXPECT_THAT(spec.graph().tables(0).initializer(), ::testing::StartsWith("normal:"));
}

TEST_F(PythonModels, AnEmbeddingBagAddsUpRows) {
  std::string source = Net("return self.l(v)");
  const auto replace = [&](const std::string& from, const std::string& to) {
    source.replace(source.find(from), from.size(), to);
  };
  replace("nn.Embedding(", "nn.EmbeddingBag(");
  replace("(16, 4)", "(16, 4, mode='sum')");
  replace("self.e(x['job'])", "self.e(x['job'].unsqueeze(1))");
  const auto compiled = Compile(source);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  replace("x['job'].unsqueeze(1)", "x['job'], torch.arange(1)");
  EXPECT_THAT(Refused(source), HasSubstr("EmbeddingBag gets ids [rows, length], without offsets"));
}

// As in PyTorch's tutorial about speech; a size of a traced tensor is a tensor.
TEST_F(PythonModels, PoolsOverAWholeAxisMayNameItsSize) {
  for (const char* pool : {"avg", "max"}) {
    const std::string pooled = "nn.functional." + std::string(pool) + "_pool1d(s, s.shape[-1])";
    EXPECT_EQ(Refused(Net("s = v.unsqueeze(1)\n    return " + pooled + ".squeeze(1)")), "compiled")
        << pool;
  }
  EXPECT_NE(Refused(Net("s = v.unsqueeze(1)\n    return nn.functional.avg_pool1d(s, 5 + "
                        "(x['age'].shape[0] > 3)).squeeze(1)[:, :1]")),
            "compiled");  // depends on the number of rows
}

TEST_F(PythonModels, AreRefusedAtTheirLine) {
  EXPECT_THAT(Refused("import torch\nclass Net(torch.nn.Module:\n  pass\n"),
              ::testing::StartsWith("2: this is not Python"));
  EXPECT_THAT(Refused("import torch\nclass Nett(torch.nn.Module): pass\n"
                      "class Other(torch.nn.Module): pass\n"),
              HasSubstr("no class or function 'Net' / did you mean 'Nett'?"));
  EXPECT_THAT(
      Refused(Net("return self.l(v) + x['agee']")),
      ::testing::AllOf(HasSubstr("10: KeyError: 'agee'"), HasSubstr("by their names: age")));
  EXPECT_THAT(Refused(Net("return self.q(v)")), HasSubstr("10: AttributeError"));
  EXPECT_THAT(Refused("import torch\nclass Net(torch.nn.Module):\n  def __init__(self):\n"
                      "    super().__init__()\n    self.a = 1 / 0\n"),
              HasSubstr("5: ZeroDivisionError: division by zero (in __init__)"));
}

TEST_F(PythonModels, WhatTracingWouldMissIsRefused) {
  EXPECT_THAT(Refused(Net("return self.l(v * 2 if v.mean() > 0 else v)")),
              ::testing::StartsWith("10: what is computed here depends on the values"));
  EXPECT_THAT(Refused(Net("return torch.stack([self.l(row) for row in v])")),
              ::testing::StartsWith("10: what is computed here depends on the values"));
  EXPECT_THAT(Refused(Net("return self.l(v) + (0 if self.training else 1)")),
              HasSubstr("the traced graph computes something else than forward does"));
}

TEST_F(PythonModels, OutputsOfAnotherShapeOrNaNAreRefused) {
  EXPECT_THAT(Refused(Net("return v")),
              HasSubstr("8: forward returned a tensor of [1, 6] for 1 rows"));
  EXPECT_THAT(Refused(Net("return self.l(v) / 0")),
              HasSubstr("8: forward returned NaN or infinity"));
  EXPECT_THAT(Refused(Net("return 3")), HasSubstr("forward returned int"));
}

TEST_F(PythonModels, OperatorsWithoutACounterpartAreNamedWithTheirLine) {
  EXPECT_THAT(Refused(Net("return torch.fft.fft(v).real[:, :1]")),
              HasSubstr("10: operator 'fft_fft'"));
  EXPECT_THAT(
      Refused(Net("return self.l(v) + v.topk(1, 1)[0]")),
      ::testing::AllOf(::testing::StartsWith("10: "),
                       HasSubstr("operator 'TopK' is not supported / "), HasSubstr("ReduceMax")));
}

TEST_F(PythonModels, IdsBeyondAnEmbeddingAreRefused) {
  EXPECT_THAT(Refused(Net("return self.l(v)", "10")),
              HasSubstr("9: IndexError: an Embedding of 10 rows is read at 15"));
}

TEST_F(PythonModels, MemoryTimeAndOutputAreLimited) {
  EXPECT_THAT(Refused(Net("return self.l(v) + torch.zeros(2_500_000_000).sum()")),
              ::testing::AllOf(HasSubstr("10: RuntimeError"), HasSubstr("4 GiB")));
  EXPECT_THAT(Refused(Net("os._exit(0)")), HasSubstr("Python ended (exit code 0)"));
  options_.limits.output_bytes = int64_t{1} << 20;
  EXPECT_THAT(Refused(Net("[print('x' * 10_000_000) for _ in range(200)]; return self.l(v)")),
              HasSubstr("Python printed more than 1 MiB"));
  options_.limits.seconds = 2;
  EXPECT_THAT(Refused("while True: pass\n"), HasSubstr("not done with the model within 2 seconds"));
}

TEST_F(PythonModels, ValuesThatDoNotFitTheAnswerAreRefusedByName) {
  std::string source = Net("return self.l(v) + self.big[0]");
  source.replace(source.find("super().__init__()"), 18,
                 "super().__init__(); self.big = nn.Parameter(torch.zeros(20_000_000))");
  EXPECT_THAT(
      Refused(source),
      ::testing::AllOf(HasSubstr("the model has 76 MiB of parameters: at most 60 MiB of a class"),
                       HasSubstr("the largest is big, [20000000]")));
}

TEST_F(PythonModels, AnOwnOptimizerIsReadByNameAndArguments) {
  const auto compiled =
      Compile(Net("return self.l(v)") +
              "def optimizer(parameters):\n  return torch.optim.SGD(parameters, lr=0.5)\n");
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  EXPECT_THAT(*compiled, HasSubstr(R"("name": "SGD")"));
  EXPECT_THAT(*compiled, HasSubstr(R"("lr": 0.5)"));
}

// Net, and a loss of its own whose last line is `last`.
std::string WithLoss(const std::string& net, const std::string& last) {
  return net + "def loss(output, label):\n  " + last + "\n";
}

TEST_F(PythonModels, AnOwnLossIsAGraphOfItsOwn) {
  const auto compiled = Compile(WithLoss(Net("return self.l(v)"),
                                         "return torch.where(label > output, 3.0, 1.0) * "
                                         "(label - output).abs()"));
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  models::ModelSpec spec;
  *spec.mutable_features() = plan_;
  spec.mutable_features()->mutable_label()->set_mean(10);
  spec.mutable_features()->mutable_label()->set_scale(2);
  spec.set_loss("squared");
  models::ImportReport report;
  Status imported = models::ImportNetwork({"pytorch", *compiled, {}}, &spec, &report);
  ASSERT_TRUE(imported.ok()) << imported.ToString();
  EXPECT_FALSE(spec.graph().loss().empty());
  EXPECT_TRUE(models::Network::Make(spec).ok());
  imported = models::ImportNetwork({"pytorch", *compiled, {}, false}, &spec, &report);
  ASSERT_TRUE(imported.ok()) << imported.ToString();
  EXPECT_TRUE(spec.graph().loss().empty());
  // It gets numbers as they are, not as they are learnt.
  models::ModelSpec alone;
  *alone.mutable_features()->mutable_label() = plan_.label();
  alone.mutable_features()->mutable_label()->set_mean(10);
  alone.mutable_features()->mutable_label()->set_scale(2);
  ASSERT_TRUE(models::ImportLossAlone(*compiled, 1, &alone).ok());
  const auto network = models::Network::Make(alone);
  ASSERT_TRUE(network.ok()) << network.status().ToString();
  models::FeatureBatch rows;
  rows.rows = 2;
  rows.dense_width = 1;
  rows.dense = {0, 1};      // 10, 12
  rows.labels = {1.5F, 0};  // 13, 10
  rows.weights = {1, 3};
  const std::vector<float> shift = {0};
  models::ParameterView view;
  view.dense = {shift.data()};
  models::Gradient gradient;
  const models::LossSum sum = (*network)->Step(rows, view, 1, &gradient);
  EXPECT_NEAR(sum.loss, 3 * 3 + 3 * 2, 1e-5);
  EXPECT_NEAR(sum.weight, 4, 1e-6);
  EXPECT_NEAR(gradient.dense[0][0], (-3.0 * 2 + 3 * 2) / 4, 1e-5);
}

TEST_F(PythonModels, OwnLossesOfClassesAreThoseOfTorch) {
  models::LabelPlan& label = *plan_.mutable_label();
  label.set_kind(models::LabelPlan::CLASS);
  for (const char* name : {"a", "b", "c"}) {
    label.add_classes(name);
  }
  const std::string three = WithLoss(
      Net("return self.l(v)"),
      "return nn.functional.cross_entropy(output, label, weight=torch.tensor([1.0, 2.0, 3.0]), "
      "reduction='none')");
  const auto compiled = CompilePythonModel({three, "Net"}, {plan_, {}, 3, 1}, options_);
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  label.mutable_classes()->RemoveLast();
  for (const char* of_two :
       {"return nn.functional.binary_cross_entropy_with_logits(output, label, reduction='none')",
        "return nn.functional.huber_loss(output, label, reduction='none')",
        "return -(label * torch.log(torch.sigmoid(output)) * (1 - torch.sigmoid(output)) ** 2)"}) {
    const auto two = Compile(WithLoss(Net("return self.l(v)"), of_two));
    EXPECT_TRUE(two.ok()) << of_two << ": " << two.status().ToString();
  }
  // Of a module that ends with a Sigmoid, which is in front of the loss only.
  const auto ends = Compile(
      WithLoss(Net("return torch.sigmoid(self.l(v))"),
               "return nn.functional.binary_cross_entropy(output, label, reduction='none')"));
  ASSERT_TRUE(ends.ok()) << ends.status().ToString();
}

TEST_F(PythonModels, LossesThatAreNotPerRowOrHaveNoGradientAreRefused) {
  const auto refused = [&](const std::string& last) {
    return Refused(WithLoss(Net("return self.l(v)"), last));
  };
  EXPECT_THAT(refused("return ((output - label) ** 2).mean()"),
              HasSubstr("11: loss returned a tensor of [] for 1 rows, not one number for each"));
  EXPECT_THAT(refused("return (output - label).abs() / (output - label).abs().max()"),
              HasSubstr("11: the loss of a row depends on the other rows"));
  EXPECT_THAT(refused("return (output > label).float()"),
              HasSubstr("11: loss has no gradient by the output"));
  EXPECT_THAT(refused("return torch.round(output) * label"),
              HasSubstr("11: the loss's gradient is 0 for all rows"));
  EXPECT_THAT(refused("return torch.log(output)"), HasSubstr("11: loss returned NaN"));
  EXPECT_THAT(refused("return label.item() * output"), HasSubstr("12: "));
  EXPECT_THAT(refused("return nothing"), HasSubstr("12: NameError"));
  EXPECT_THAT(Refused(Net("return self.l(v)") + "def loss(output): return output\n"),
              HasSubstr("11: loss has 1 parameters, not two"));
  EXPECT_THAT(Refused(Net("return self.l(v)") + "loss = 5\n"),
              HasSubstr("loss is of type int, not a function"));
}

TEST_F(PythonModels, AreNotCompiledWhereThatIsOff) {
  options_.allowed = false;
  EXPECT_THAT(Refused(Net("return self.l(v)")), HasSubstr("serve --python-models"));
  options_.allowed = true;
  options_.program = "/nonexistent/python3";
  EXPECT_THAT(Refused(Net("return self.l(v)")), HasSubstr("apt-get install python3-torch"));
}

}  // namespace
}  // namespace sluice::planner
