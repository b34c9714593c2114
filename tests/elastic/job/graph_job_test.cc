#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "elastic/job/local_job.h"
#include "models/graph/graph_tables.h"
#include "models/networks/initialize.h"
#include "tests/elastic/job/fleet_run.h"

namespace sluice::elastic {
namespace {

// A network as a user might supply it: an embedding, batch normalisation, dropout, a wide part, and
// a frozen parameter; trained in four lanes, so that it does not matter which worker computes which
// lane.
class GraphJob : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  void Parameter(const std::string& name, std::vector<int64_t> shape,
                 const std::string& initializer = "glorot_uniform",
                 models::GraphParameter::Group group = models::GraphParameter::DEEP) {
    models::GraphParameter* parameter = graph_->add_parameters();
    parameter->set_name(name);
    parameter->mutable_shape()->Add(shape.begin(), shape.end());
    parameter->set_initializer(initializer);
    parameter->set_group(group);
    parameter->set_momentum(0.9);
  }
  models::GraphNode* Node(const std::string& op, const Names& inputs, const std::string& output) {
    models::GraphNode* node = graph_->add_nodes();
    node->set_op_type(op);
    node->set_name(output);
    node->mutable_inputs()->Add(inputs.begin(), inputs.end());
    node->add_outputs(output);
    return node;
  }
  static void SetAxis(models::GraphNode* node, int64_t axis) {
    node->add_attributes()->set_name("axis");
    node->mutable_attributes(0)->add_integers(axis);
  }

  plan::TrainPlan Plan(plan::Strategy::Kind kind, uint32_t workers, uint32_t servers) {
    using Parameter = models::GraphParameter;
    plan::TrainPlan plan = SmallPlan(2, 64);
    plan.mutable_model()->set_type("my.WideNet");
    plan.mutable_model()->clear_attributes();
    graph_ = plan.mutable_model()->mutable_graph();
    graph_->add_inputs()->set_name("numbers");
    graph_->mutable_inputs(0)->set_width(2);
    graph_->add_inputs()->set_name("c");
    graph_->mutable_inputs(1)->set_kind(models::GraphInput::IDS);
    graph_->mutable_inputs(1)->add_features("c");
    this->Parameter("embed", {51, 4}, "normal:0.3");
    this->Parameter("wide", {51, 1}, "zeros");
    this->Parameter("bn/scale", {6}, "ones");
    this->Parameter("bn/bias", {6}, "zeros");
    this->Parameter("bn/mean", {6}, "zeros", Parameter::STATISTICS);
    this->Parameter("bn/variance", {6}, "ones", Parameter::STATISTICS);
    this->Parameter("frozen", {6}, "uniform:0.5", Parameter::FROZEN);
    this->Parameter("hidden", {6, 8});
    this->Parameter("out", {8, 1});
    models::GraphNode* ratio = Node("Constant", {}, "ratio");
    ratio->mutable_constant()->add_numbers(0.1F);
    Node("Gather", {"embed", "c"}, "embedded");
    SetAxis(Node("Concat", {"numbers", "embedded"}, "x"), 1);
    Node("BatchNormalization", {"x", "bn/scale", "bn/bias", "bn/mean", "bn/variance"}, "normal");
    Node("Add", {"normal", "frozen"}, "shifted");
    Node("MatMul", {"shifted", "hidden"}, "layer");
    Node("Gelu", {"layer"}, "active");
    Node("Dropout", {"active", "ratio"}, "dropped");
    Node("MatMul", {"dropped", "out"}, "deep");
    Node("Gather", {"wide", "c"}, "own");
    Node("Add", {"deep", "own"}, "logit");
    graph_->add_outputs("logit");
    EXPECT_TRUE(models::MakeTables(graph_).empty());
    plan::Strategy& strategy = *plan.mutable_strategy();
    strategy.set_kind(kind);
    strategy.set_mode(plan::Strategy::SYNCHRONOUS);
    strategy.set_micro_batches(4);
    strategy.set_workers(workers);
    strategy.set_max_workers(workers);
    strategy.set_parameter_servers(servers);
    strategy.set_replicas(servers > 1 ? 1 : 0);
    return plan;
  }

  models::NetworkGraph* graph_ = nullptr;
};

TEST_F(GraphJob, InProcessWithServersAndByAllReduceToTheSameBits) {
  const auto source = SmallSource(4'000);
  constexpr int64_t kRowsPerShard = 500;
  const plan::TrainPlan here = Plan(plan::Strategy::PARAMETER_SERVER, 1, 1);
  const Result<TrainOutcome> alone =
      TrainInProcess({.plan = here, .source = *source, .dataset = source->Spec(kRowsPerShard)});
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  EXPECT_GT(MetricOf(*alone, "auc"), 0.75);
  const std::string expected = models::SaveWeights(alone->weights);
  struct Fleet {
    plan::Strategy::Kind kind;
    uint32_t workers, servers;
  };
  for (const Fleet& fleet :
       {Fleet{plan::Strategy::PARAMETER_SERVER, 2, 2},
        Fleet{plan::Strategy::PARAMETER_SERVER, 1, 1}, Fleet{plan::Strategy::ALL_REDUCE, 1, 0},
        Fleet{plan::Strategy::ALL_REDUCE, 3, 0}}) {
    const FleetRun run =
        TrainWith(Plan(fleet.kind, fleet.workers, fleet.servers), *source, kRowsPerShard);
    ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
    EXPECT_EQ(Bits(run), expected) << fleet.workers << " workers, " << fleet.servers << " servers";
  }
}

TEST_F(GraphJob, LostWorkersAndServersChangeNothing) {
  const auto source = SmallSource(4'000);
  constexpr int64_t kRowsPerShard = 500;
  const plan::TrainPlan here = Plan(plan::Strategy::PARAMETER_SERVER, 1, 1);
  const Result<TrainOutcome> alone =
      TrainInProcess({.plan = here, .source = *source, .dataset = source->Spec(kRowsPerShard)});
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  const std::string expected = models::SaveWeights(alone->weights);
  for (const bool server : {false, true}) {
    bool stopped = false;
    const FleetRun run =
        TrainWith(Plan(plan::Strategy::PARAMETER_SERVER, 2, 2), *source, kRowsPerShard, nullptr,
                  [&](ThreadFleet& fleet, const std::string& kind, const std::string&) {
                    if (kind == "epoch_done" && !std::exchange(stopped, true)) {
                      (void)fleet.Stop(server ? "job1-ps-0" : "job1-worker-0", 0);
                    }
                  });
    ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
    EXPECT_EQ(Bits(run), expected) << (server ? "a server" : "a worker") << " was lost";
  }
  bool stopped = false;
  const FleetRun run =
      TrainWith(Plan(plan::Strategy::ALL_REDUCE, 3, 0), *source, kRowsPerShard, nullptr,
                [&](ThreadFleet& fleet, const std::string& kind, const std::string&) {
                  if (kind == "epoch_done" && !std::exchange(stopped, true)) {
                    (void)fleet.Stop(fleet.launched().front(), 0);
                  }
                });
  ASSERT_TRUE(run.outcome.ok()) << run.outcome.status().ToString();
  EXPECT_EQ(Bits(run), expected);
}

// A compiled model's initial values arrive like those of a model to continue from.
TEST_F(GraphJob, BeginsWithTheValuesThatItIsGiven) {
  const auto source = SmallSource(1'000);
  const plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 1, 1);
  const auto network = models::Network::Make(plan.model()).value();
  models::NetworkWeights given;
  for (const models::DenseTensor& tensor : network->dense()) {
    given.dense.emplace_back(tensor.size(), 0.25F);
  }
  given.tables.resize(network->tables().size());
  const FleetRun run =
      TrainWith(Plan(plan::Strategy::PARAMETER_SERVER, 2, 2), *source, 500, &given);
  const Result<TrainOutcome> alone = TrainInProcess(
      {.plan = plan, .source = *source, .dataset = source->Spec(500), .base = &given});
  ASSERT_TRUE(alone.ok() && run.outcome.ok());
  EXPECT_EQ(Bits(run), models::SaveWeights(alone->weights));
  for (size_t i = 0; i < network->dense().size(); ++i) {
    if (network->dense()[i].name == "frozen") {
      EXPECT_EQ(alone->weights.dense[i], given.dense[i]);
    }
  }
}

// Ids beyond a parameter give NaN, and no gradient that could show it.
TEST_F(GraphJob, ALossThatIsNoNumberEndsTheTraining) {
  const auto source = SmallSource(1'000);
  for (const auto kind :
       {plan::Strategy::LOCAL, plan::Strategy::PARAMETER_SERVER, plan::Strategy::ALL_REDUCE}) {
    for (const bool synchronous : {true, false}) {
      if (!synchronous && kind == plan::Strategy::ALL_REDUCE) {
        continue;
      }
      plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 2, 2);
      plan.mutable_strategy()->set_kind(kind);
      if (!synchronous) {
        plan.mutable_strategy()->set_mode(plan::Strategy::ASYNCHRONOUS);
        plan.mutable_strategy()->clear_micro_batches();
      }
      graph_ = plan.mutable_model()->mutable_graph();
      graph_->Clear();
      graph_->add_inputs()->set_name("c");
      graph_->mutable_inputs(0)->set_kind(models::GraphInput::IDS);
      graph_->mutable_inputs(0)->add_features("c");
      Parameter("table", {51, 1}, "zeros");
      models::GraphTensor* shift = Node("Constant", {}, "shift")->mutable_constant();
      shift->set_type(models::GraphTensor::INTEGER);
      shift->add_integers(100);
      Node("Add", {"c", "shift"}, "beyond");
      Node("Gather", {"table", "beyond"}, "logit");
      graph_->add_outputs("logit");
      const Status status =
          kind == plan::Strategy::LOCAL
              ? TrainInProcess({.plan = plan, .source = *source, .dataset = source->Spec(500)})
                    .status()
              : TrainWith(plan, *source, 500).outcome.status();
      EXPECT_EQ(status.sqlstate(), "22003") << status.ToString();
      EXPECT_NE(status.ToString().find("the loss is no number (epoch 1, shard "), std::string::npos)
          << status.ToString();
    }
  }
}

TEST_F(GraphJob, StatisticsFollowAndFrozenParametersStay) {
  const auto source = SmallSource(2'000);
  const plan::TrainPlan plan = Plan(plan::Strategy::PARAMETER_SERVER, 1, 1);
  const Result<TrainOutcome> outcome =
      TrainInProcess({.plan = plan, .source = *source, .dataset = source->Spec(500)});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  const auto network = models::Network::Make(plan.model()).value();
  for (size_t i = 0; i < network->dense().size(); ++i) {
    const models::DenseTensor& tensor = network->dense()[i];
    const std::vector<float>& values = outcome->weights.dense[i];
    if (tensor.name == "bn/variance") {  // uniform between -1 and 1
      EXPECT_NEAR(values[0], 1.0F / 3, 0.05F);
      EXPECT_NEAR(values[1], 1.0F / 3, 0.05F);
    } else if (tensor.name == "bn/mean") {
      EXPECT_NEAR(values[0], 0, 0.1F);
    } else if (tensor.name == "frozen") {
      std::vector<float> first(tensor.size());
      models::InitializeDense(tensor, plan.model().seed(), first);
      EXPECT_EQ(values, first);
    }
  }
}

}  // namespace
}  // namespace sluice::elastic
