#include <fstream>

#include "tests/models/imports/onnx_builder.h"
#include "tests/process/outliving_job.h"
#include "tests/support/finds_torch.h"

// Models that users bring as files, by `sluice train --model_def` and by SQL: one model each, in
// process, with servers, by all-reduce, and when processes of their jobs are killed.
namespace sluice::executor {
namespace {

// Numbers and a table of ids, batch normalisation and dropout, in each language.
std::string OnnxNet() {
  models::OnnxBuilder b;
  b.Input("a", {1});
  b.Input("b", {1});
  b.Ids("kind");
  b.Floats("table", {16, 3}, 0.02F);
  b.Floats("hidden", {5, 8}, 0.02F);
  for (const char* name : {"scale", "shift", "mean", "variance"}) {
    b.Floats(name, {8}, 0.25F);
  }
  b.Floats("rate", {}, 0.1F);
  b.Floats("out", {8, 1}, -0.1F);
  b.Node("Gather", {"table", "kind"}, "row");
  models::OnnxBuilder::Set(&b.Node("Concat", {"a", "b", "row"}, "x"), "axis", 1);
  b.Node("MatMul", {"x", "hidden"}, "h");
  b.Node("BatchNormalization", {"h", "scale", "shift", "mean", "variance"}, "n");
  b.Node("Relu", {"n"}, "r");
  b.Node("Dropout", {"r", "rate"}, "d");
  b.Node("MatMul", {"d", "out"}, "y");
  b.Output("y");
  return b.Bytes();
}

constexpr char kKerasNet[] = R"({"class_name": "Functional", "config": {"name": "net", "layers": [
  {"class_name": "InputLayer", "name": "a", "inbound_nodes": [],
   "config": {"batch_input_shape": [null, 1], "dtype": "float32", "name": "a"}},
  {"class_name": "InputLayer", "name": "b", "inbound_nodes": [],
   "config": {"batch_input_shape": [null, 1], "dtype": "float32", "name": "b"}},
  {"class_name": "InputLayer", "name": "kind", "inbound_nodes": [],
   "config": {"batch_input_shape": [null, 1], "dtype": "int32", "name": "kind"}},
  {"class_name": "Embedding", "name": "embed", "inbound_nodes": [[["kind", 0, 0, {}]]],
   "config": {"name": "embed", "input_dim": 16, "output_dim": 3}},
  {"class_name": "Flatten", "name": "flat", "inbound_nodes": [[["embed", 0, 0, {}]]],
   "config": {"name": "flat"}},
  {"class_name": "Concatenate", "name": "join",
   "inbound_nodes": [[["a", 0, 0, {}], ["b", 0, 0, {}], ["flat", 0, 0, {}]]],
   "config": {"name": "join", "axis": -1}},
  {"class_name": "Dense", "name": "hidden", "inbound_nodes": [[["join", 0, 0, {}]]],
   "config": {"name": "hidden", "units": 8, "activation": "relu"}},
  {"class_name": "BatchNormalization", "name": "norm", "inbound_nodes": [[["hidden", 0, 0, {}]]],
   "config": {"name": "norm"}},
  {"class_name": "Dropout", "name": "drop", "inbound_nodes": [[["norm", 0, 0, {}]]],
   "config": {"name": "drop", "rate": 0.1}},
  {"class_name": "Dense", "name": "out", "inbound_nodes": [[["drop", 0, 0, {}]]],
   "config": {"name": "out", "units": 1}}],
  "input_layers": [["a", 0, 0], ["b", 0, 0], ["kind", 0, 0]],
  "output_layers": [["out", 0, 0]]}})";

constexpr char kWideNet[] = R"(
import torch
from torch import nn

class WideNet(nn.Module):
    def __init__(self, features, outputs, hidden=(8,)):
        super().__init__()
        self.table = nn.Embedding(16, 3)
        self.wide = nn.Embedding(16, outputs)
        self.layers = nn.Sequential(nn.Linear(5, hidden[0]), nn.BatchNorm1d(hidden[0]), nn.ReLU(), nn.Dropout(0.1),
                                    nn.Linear(hidden[0], outputs))

    def forward(self, x):
        deep = self.layers(torch.cat([x["a"], x["b"], self.table(x["kind"])], dim=1))
        return deep + self.wide(x["kind"])
)";

struct Victims {
  std::string role;  // the first argument of the process
  int count;
};
// Those that are killed at once when this many epochs are trained.
struct Blow {
  int epochs;
  std::vector<Victims> victims;
};
struct KillSchedule {
  const char* engine;
  std::vector<Blow> blows;
};
constexpr char kServers[] = "engine.num_workers=2, engine.num_ps=2, engine.replicas=1";
constexpr char kAllReduce[] = "engine.num_workers=3, engine.strategy='allreduce'";

std::vector<KillSchedule> KillSchedules() {
  return {
      {kServers, {{1, {{"worker", 1}, {"ps", 1}}}}},
      {kServers, {{1, {{"worker", 2}, {"master", 1}}}, {3, {{"master", 1}}}}},
      {kAllReduce, {{1, {{"worker", 1}, {"master", 1}}}, {3, {{"worker", 1}}}}},
  };
}

struct Net {
  const char* name;  // of the test, and of its model type
  const char* file;  // as --model_def says it
  std::string content;
};
void PrintTo(const Net& net, std::ostream* out) {
  *out << net.file;
}

class KilledUserModels : public OutlivingJobs, public ::testing::WithParamInterface<Net> {
 protected:
  void SetUp() override {
    OutlivingJobs::SetUp();
    if (std::string(GetParam().file).find(".py") != std::string::npos) {
      planner::PythonOptions python;
      python.allowed = true;
      if (!planner::FindsTorch(python)) {
        GTEST_SKIP() << "there is no torch: scripts/install_packages --tests installs it";
      }
    }
    const std::string file = GetParam().file;
    std::ofstream(folder_ / file.substr(0, file.find(':')), std::ios::binary) << GetParam().content;
    const auto made = source_->Execute(
        "CREATE TABLE cells AS SELECT a, b, 'k' || (i % 9) AS kind, y FROM points", nullptr, {});
    ASSERT_TRUE(made.ok()) << made.status().ToString();
  }

  static constexpr int kUndisturbed = 3;  // jobs in front of those with kills

  // The same training wherever it runs, long enough to be interrupted on any machine.
  static constexpr char kTraining[] =
      "train.epoch=16, train.batch_size=1000, split.fraction=0.1, engine.seed=3, engine.sync=true";

  std::string ShaOf(const std::string& model) const {
    return Ask("SELECT weights_sha256 FROM sluice_model_versions WHERE name = '" + model + "'")
        .output;
  }
  std::string TrainedFromFile() const {
    std::string parameters = kTraining;
    for (size_t comma = 0; (comma = parameters.find(", ", comma)) != std::string::npos;) {
      parameters.replace(comma, 2, "; ");
    }
    const ShellOutcome trained =
        RunInShell("cd " + folder_.string() + " && " + SLUICE_BINARY + " train --source " + Url() +
                   " --model_def " + GetParam().file + " --model_params \"" + parameters +
                   "\" --training_data cells --label y --output from_file 2>&1");
    EXPECT_EQ(trained.exit_code, 0) << trained.output;
    return ShaOf("from_file");
  }
  std::string TrainText(const std::string& model, const std::string& engine) const {
    return std::string("SELECT * FROM cells TO TRAIN ") + GetParam().name + " WITH " + kTraining +
           ", " + engine + " LABEL y INTO " + model;
  }

  // The job's living processes of this role.
  std::vector<pid_t> ProcessesOf(int64_t job, const std::string& role) const {
    std::vector<pid_t> found;
    const auto children = Children();
    const auto [first, last] = children.equal_range(ProcessOf(job));
    for (auto child = first; child != last; ++child) {
      std::ifstream in("/proc/" + std::to_string(child->second) + "/cmdline", std::ios::binary);
      std::string program, its;
      std::getline(in, program, '\0');
      std::getline(in, its, '\0');
      if (its == role) {
        found.push_back(child->second);
      }
    }
    return found;
  }
  void Strike(int64_t job, const Blow& blow) const {
    ASSERT_TRUE(Eventually([&] { return Count(job, "epoch_done") >= blow.epochs; }));
    std::vector<pid_t> struck;
    for (const Victims& victims : blow.victims) {
      ASSERT_TRUE(Eventually([&] {  // a lost one's successor may only be starting
        return ProcessesOf(job, victims.role).size() >= static_cast<size_t>(victims.count);
      })) << victims.role;
      const std::vector<pid_t> living = ProcessesOf(job, victims.role);
      struck.insert(struck.end(), living.begin(), living.begin() + victims.count);
    }
    for (const pid_t process : struck) {
      Signal(process, SIGKILL);
    }
  }
};

TEST_P(KilledUserModels, G4_AreOneModelWhereverTheyTrainAndWhateverDies) {
  StartGateway();
  const std::string expected = TrainedFromFile();
  ASSERT_EQ(expected.size(), std::string("weights_sha256\n").size() + 65) << expected;
  // A gateway without Python: the compiled form is kept.
  for (const std::string engine : {"engine.num_workers=2, engine.num_ps=2", kAllReduce}) {
    const ShellOutcome trained = Ask(TrainText("undisturbed", engine));
    ASSERT_EQ(trained.exit_code, 0) << trained.output;
    EXPECT_EQ(ShaOf("undisturbed"), expected) << engine;
    Ask("DROP MODEL undisturbed");
  }
  int number = 0;
  for (const KillSchedule& schedule : KillSchedules()) {
    SCOPED_TRACE("kill schedule " + std::to_string(++number));
    const ShellOutcome begun =
        Ask("SET sluice.async = on; " + TrainText("killed", schedule.engine));
    ASSERT_EQ(begun.exit_code, 0) << begun.output;
    const int64_t job = kUndisturbed + number;
    for (const Blow& blow : schedule.blows) {
      Strike(job, blow);
      ASSERT_FALSE(HasFatalFailure());
    }
    const ShellOutcome waited = Ask("WAIT JOB " + std::to_string(job));
    ASSERT_EQ(waited.exit_code, 0) << waited.output;
    for (const char* role : {"worker", "ps", "master"}) {
      int killed = 0;
      for (const Blow& blow : schedule.blows) {
        for (const Victims& victims : blow.victims) {
          killed += victims.role == role ? victims.count : 0;
        }
      }
      const std::string lost = std::string(role == std::string("ps") ? "server" : role) + "_lost";
      EXPECT_GE(Count(job, lost), killed > 0 ? 1 : 0) << ::testing::PrintToString(Events(job));
    }
    EXPECT_EQ(ShaOf("killed"), expected);
    Ask("DROP MODEL killed");
  }
}

INSTANTIATE_TEST_SUITE_P(Files, KilledUserModels,
                         ::testing::Values(Net{"onnx_net", "onnx_net.onnx", OnnxNet()},
                                           Net{"keras_net", "keras_net.json", kKerasNet},
                                           Net{"WideNet", "wide.py:WideNet", kWideNet}),
                         [](const auto& of) { return std::string(of.param.name); });

}  // namespace
}  // namespace sluice::executor
