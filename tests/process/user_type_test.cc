#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include "planner/explain.h"
#include "tests/models/imports/onnx_builder.h"
#include "tests/process/cluster_job.h"
#include "tests/support/finds_torch.h"

namespace sluice::executor {
namespace {

// A hidden layer of two numbers, with batch normalisation and dropout, as an ONNX file.
std::string HiddenLayer() {
  models::OnnxBuilder b;
  b.Input("a", {1});
  b.Input("b", {1});
  b.Floats("hidden/w", {2, 4}, 0.15F);
  for (const char* name : {"scale", "shift", "mean", "variance"}) {
    b.Floats(name, {4}, 0.25F);
  }
  b.Floats("rate", {}, 0.1F);
  b.Floats("out/w", {4, 1}, -0.2F);
  models::OnnxBuilder::Set(&b.Node("Concat", {"a", "b"}, "x"), "axis", 1);
  b.Node("MatMul", {"x", "hidden/w"}, "h");
  b.Node("BatchNormalization", {"h", "scale", "shift", "mean", "variance"}, "n");
  b.Node("Relu", {"n"}, "r");
  b.Node("Dropout", {"r", "rate"}, "d");
  b.Node("MatMul", {"d", "out/w"}, "y");
  b.Output("y");
  return b.Bytes();
}

class UserType : public ClusterJobs {
 protected:
  void SetUp() override {
    ClusterJobs::SetUp();
    catalog::ModelVersion type;
    type.name = "net";
    type.type = "onnx";
    const auto stored = catalog_->model_types().Put(type, HiddenLayer(), true);
    ASSERT_TRUE(stored.ok()) << stored.status().ToString();
  }

  // The digest of the weights.
  std::string Train(const std::string& engine, LocalCluster& cluster) {
    const std::string sql =
        "SELECT a, b, y FROM points TO TRAIN net WITH train.epoch=2, split.fraction=0.1, "
        "model.loss='logistic', " +
        engine + " LABEL y INTO m";
    const auto statements = parser::Parse(sql).value();
    planner::Options options;
    options.model_types = &catalog_->model_types();
    const auto plan = planner::MakePlan(std::get<parser::TrainStatement>(statements.at(0)),
                                        *source_, catalog_->models(), options);
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    if (!plan.ok()) {
      return "";
    }
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", sql, {}, &cluster};
    const Status status = Execute(*plan, context, sink);
    EXPECT_TRUE(status.ok()) << engine << ": " << status.ToString();
    return status.ok() ? catalog_->models().Find("", "m", {}).value().weights_sha256 : "";
  }
};

TEST_F(UserType, G4_AnOnnxFileIsOneModelWhereverItTrains) {
  LocalCluster cluster(Machine(8));
  const std::string here = Train("engine.sync=true", cluster);
  for (const char* engine : {"engine.sync=true, engine.num_workers=2, engine.num_ps=2",
                             "engine.strategy='allreduce', engine.num_workers=3"}) {
    EXPECT_EQ(Train(engine, cluster), here) << engine;
  }
}

// A class in PyTorch, with a table, batch normalisation and dropout.
constexpr char kWide[] = R"(
import torch
from torch import nn

class Wide(nn.Module):
    def __init__(self, features, outputs, hidden=(8,)):
        super().__init__()
        self.numbers = [f.name for f in features if f.kind == "numeric"]
        self.tables = nn.ModuleDict({f.name: nn.Embedding(f.buckets, 3) for f in features if f.kind == "category"})
        layers, width = [], len(self.numbers) + 3 * len(self.tables)
        for units in hidden:
            layers += [nn.Linear(width, units), nn.BatchNorm1d(units), nn.ReLU(), nn.Dropout(0.1)]
            width = units
        self.layers = nn.Sequential(*layers, nn.Linear(width, outputs))

    def forward(self, x):
        parts = [x[n] for n in self.numbers] + [t(x[n]) for n, t in self.tables.items()]
        return self.layers(torch.cat(parts, dim=1))

def optimizer(parameters):
    return torch.optim.Adam(parameters, lr=0.01)
)";

class PythonType : public UserType {
 protected:
  static constexpr char kTrain[] =
      "SELECT a, b, 'k' || (i % 9) AS kind, y FROM points TO TRAIN my.Wide WITH train.epoch=2, "
      "split.fraction=0.1, model.loss='logistic', model.hidden=[8, 4], ";

  void SetUp() override {
    UserType::SetUp();
    options_.model_types = &catalog_->model_types();
    options_.python.allowed = true;
    if (!planner::FindsTorch(options_.python)) {
      GTEST_SKIP() << "there is no torch: scripts/install_packages --tests installs it";
    }
    const Status created = RunText<parser::CreateModelTypeStatement>(
        std::string("CREATE MODEL TYPE my.Wide LANGUAGE pytorch AS $$") + kWide + "$$", nullptr);
    ASSERT_TRUE(created.ok()) << created.ToString();
  }
  template <typename Statement>
  Status RunText(const std::string& sql, LocalCluster* cluster) {
    ASSIGN_OR_RETURN(const auto statements, parser::Parse(sql));
    ASSIGN_OR_RETURN(const plan::Plan plan,
                     planner::MakePlan(std::get<Statement>(statements.at(0)), *source_,
                                       catalog_->models(), options_));
    RecordingSink sink;
    Context context{*source_, *catalog_, "tester", sql, {}, cluster};
    return Execute(plan, context, sink);
  }
  std::string TrainPython(const std::string& engine, LocalCluster* cluster) {
    const Status trained =
        RunText<parser::TrainStatement>(kTrain + engine + " LABEL y INTO m", cluster);
    EXPECT_TRUE(trained.ok()) << engine << ": " << trained.ToString();
    return trained.ok() ? catalog_->models().Find("", "m", {}).value().weights_sha256 : "";
  }

  planner::Options options_;
};

TEST_F(PythonType, G4_AClassInPyTorchIsOneModelWhereverItTrains) {
  LocalCluster cluster(Machine(8));
  const std::string here = TrainPython("engine.sync=true", &cluster);
  options_.python.allowed = false;  // its compiled form was kept
  for (const char* engine : {"engine.sync=true, engine.num_workers=2, engine.num_ps=1",
                             "engine.strategy='allreduce', engine.num_workers=2"}) {
    EXPECT_EQ(TrainPython(engine, &cluster), here) << engine;
  }
  // Another seed is another compiled form, for which Python would have to run.
  const Status other = RunText<parser::TrainStatement>(
      std::string(kTrain) + "engine.seed=7 LABEL y INTO m", &cluster);
  EXPECT_EQ(other.sqlstate(), "42501") << other.ToString();
}

// With a loss of its own, in which rows that are nearly right count little.
TEST_F(PythonType, G4_ALossOfItsOwnIsOneModelWhereverItTrains) {
  const Status created = RunText<parser::CreateModelTypeStatement>(
      std::string("CREATE OR REPLACE MODEL TYPE my.Wide LANGUAGE pytorch AS $$") + kWide + R"(
def loss(output, label):
    right = torch.sigmoid(torch.where(label > 0.5, output, -output))
    return -torch.log(torch.clamp(right, 1e-6, 1.0)) * (1 - right) ** 2
$$)",
      nullptr);
  ASSERT_TRUE(created.ok()) << created.ToString();
  LocalCluster cluster(Machine(8));
  const auto train = [&](const std::string& engine) -> std::string {
    const Status trained = RunText<parser::TrainStatement>(
        "SELECT a, b, 'k' || (i % 9) AS kind, y FROM points TO TRAIN my.Wide WITH train.epoch=1, "
        "split.fraction=0.1, " +
            engine + " LABEL y INTO own",
        &cluster);
    EXPECT_TRUE(trained.ok()) << engine << ": " << trained.ToString();
    return trained.ok() ? catalog_->models().Find("", "own", {}).value().weights_sha256 : "";
  };
  const std::string here = train("engine.sync=true");
  for (const char* engine : {"engine.sync=true, engine.num_workers=2, engine.num_ps=2",
                             "engine.strategy='allreduce', engine.num_workers=2"}) {
    EXPECT_EQ(train(engine), here) << engine;
  }
}

// What is minimised decides when a training ends, unless the statement names a metric; and an
// optimizer of torch.optim does what it does there.
TEST_F(PythonType, ALossOfItsOwnAndAnOptimizerMeanWhatTheyMeanInPyTorch) {
  std::string source = kWide;
  source.replace(source.find("torch.optim.Adam("), 17, "torch.optim.AdamW(");
  const Status created = RunText<parser::CreateModelTypeStatement>(
      "CREATE OR REPLACE MODEL TYPE my.Wide LANGUAGE pytorch AS $$" + source + R"(
def loss(output, label):
    return nn.functional.binary_cross_entropy_with_logits(output, label, reduction="none") * 3
$$)",
      nullptr);
  ASSERT_TRUE(created.ok()) << created.ToString();
  const auto plan = [&](const std::string& with) {
    const auto statements = parser::Parse(
        "SELECT a, b, 'k' || (i % 9) AS kind, y FROM points TO TRAIN my.Wide WITH "
        "engine.strategy='local', train.epoch=3, train.early_stopping_rounds=2, "
        "split.fraction=0.1" +
        with + " LABEL y INTO own");
    return planner::MakePlan(std::get<parser::TrainStatement>(statements.value().at(0)), *source_,
                             catalog_->models(), options_);
  };
  const auto own = plan("");
  ASSERT_TRUE(own.ok()) << own.status().ToString();
  EXPECT_EQ(own->train().early_stopping().metric(), "own_loss");
  EXPECT_THAT(
      planner::ExplainText(*own),
      ::testing::HasSubstr("2 epochs without a better own_loss, the mean of loss() over the "
                           "validation rows"));
  EXPECT_TRUE(own->train().model().deep_optimizer().decays_vectors());
  EXPECT_EQ(plan(", train.early_stopping_metric='AUC'")->train().early_stopping().metric(), "auc");
  EXPECT_EQ(plan(", model.loss='logistic'")->train().early_stopping().metric(), "log_loss");
  const Status unknown = plan(", train.early_stopping_metric='rmse'").status();
  EXPECT_THAT(unknown.message(), ::testing::HasSubstr("a training does not stop by 'rmse'"));
  EXPECT_FALSE(
      plan(", model.optimizer='AdamW'")->train().model().deep_optimizer().decays_vectors());

  // What the job begins with is held as long as it runs.
  for (const char* sql :
       {"CREATE TABLE held (name text)",
        "CREATE TRIGGER note AFTER INSERT ON sluice_job_records BEGIN INSERT INTO "
        "held VALUES (new.name); END"}) {
    const Status made = source_->Execute(sql, nullptr, {}).status();
    ASSERT_TRUE(made.ok()) << made.ToString();
  }
  RecordingSink sink;
  Context context{*source_, *catalog_, "tester", "train", {}, nullptr};
  const Status trained = Execute(*own, context, sink);
  ASSERT_TRUE(trained.ok()) << trained.ToString();
  EXPECT_EQ(Ask("SELECT count(*) FROM held WHERE name = 'compiled form/" +
                own->train().brought().name() + "'"),
            1);
  EXPECT_EQ(Ask("SELECT count(*) FROM sluice_job_records"), 0);
  double own_loss = 0, log_loss = 0;
  for (const auto& [name, value] : catalog_->models().Find("", "own", {}).value().metrics) {
    own_loss = name == "own_loss" ? value : own_loss;
    log_loss = name == "log_loss" ? value : log_loss;
  }
  EXPECT_GT(log_loss, 0);
  EXPECT_NEAR(own_loss, 3 * log_loss, 1e-4);
}

// Another process, in which nothing is called python3 and PATH is empty, predicts and evaluates as
// this one does.
TEST_F(PythonType, PredictsWithoutPython) {
  LocalCluster cluster(Machine(8));
  ASSERT_NE(TrainPython("engine.strategy='local'", &cluster), "");
  constexpr char kPoints[] =
      "SELECT i, a, b, 'k' || (i % 9) AS kind, y FROM points WHERE i % 50 = 0";
  const auto predict = [&](const std::string& table) {
    return std::string(kPoints) + " TO PREDICT " + table +
           ".y WITH predict.extra_outputs='probability' USING m";
  };
  const Status here = RunText<parser::PredictStatement>(predict("here"), &cluster);
  ASSERT_TRUE(here.ok()) << here.ToString();
  std::string binary = SLUICE_BINARY, command = "sql", source = "--source=" + Url(),
              python = "--python=/nonexistent/python3", path = "PATH=",
              text =
                  "--command=" + predict("there") + "; " + kPoints + " TO EVALUATE m INTO judged";
  char* arguments[] = {binary.data(), command.data(), source.data(),
                       python.data(), text.data(),    nullptr};
  char* environment[] = {path.data(), nullptr};
  pid_t process = 0;
  ASSERT_EQ(posix_spawn(&process, binary.c_str(), nullptr, nullptr, arguments, environment), 0);
  int status = -1;
  waitpid(process, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Ask("SELECT count(*) FROM there"), kRows / 50);
  EXPECT_EQ(Ask("SELECT count(*) FROM here JOIN there ON here.i = there.i AND here.y = there.y "
                "AND here.probability = there.probability"),
            kRows / 50);
  EXPECT_EQ(Ask("SELECT count(*) FROM judged"), 1);
}

}  // namespace
}  // namespace sluice::executor
