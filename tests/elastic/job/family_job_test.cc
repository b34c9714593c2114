#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "elastic/job/local_job.h"
#include "models/graph/graph_builder.h"
#include "tests/elastic/job/fleet_run.h"
#include "tests/models/families/family_specs.h"

namespace sluice::elastic {
namespace {

plan::TrainPlan PlanOf(const models::ModelType& type, plan::Strategy::Kind kind, uint32_t workers,
                       uint32_t servers, const std::string& loss) {
  plan::TrainPlan plan = SmallPlan(1, 64);
  models::ModelSpec& model = *plan.mutable_model();
  model.set_type(type.name);
  model.clear_attributes();
  models::AddDefaults(type, &model);
  models::AttributeOf(&model, "model.batch_norm")->set_flag(true);
  models::AttributeOf(&model, "model.dropout")->set_number(0.1);
  if (!loss.empty()) {
    model.set_loss(loss);
    models::AttributeOf(&model, "model.loss")->set_text(loss);
  }
  size_t feature = 0;  // the category is of an item
  for (models::Feature& own : *model.mutable_features()->mutable_features()) {
    own.set_tower(type.towers.empty() ? "" : type.towers[++feature % type.towers.size()]);
  }
  models::Build(type, &model);
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

// Every family: one process, two workers with two servers, and three workers by all-reduce.
TEST(FamilyJob, InProcessWithServersAndByAllReduceToTheSameBits) {
  const auto source = SmallSource(750);
  constexpr int64_t kRowsPerShard = 125;
  std::vector<std::pair<const models::ModelType*, std::string>> cases;
  for (const models::ModelType* type : models::BuiltTypes()) {
    if (type->task == models::ModelTask::kClassification) {  // else the same graph
      cases.emplace_back(type, "");
    }
  }
  const models::ModelType* towers = models::FindModelType("TwoTowerClassifier");
  ASSERT_NE(towers, nullptr);
  cases.emplace_back(towers, "");
  cases.emplace_back(towers, "in_batch_softmax");
  int trained = 0;
  for (const auto& [type, loss] : cases) {
    SCOPED_TRACE(type->name + " " + loss);
    const plan::TrainPlan here = PlanOf(*type, plan::Strategy::PARAMETER_SERVER, 1, 1, loss);
    const Result<TrainOutcome> alone =
        TrainInProcess({.plan = here, .source = *source, .dataset = source->Spec(kRowsPerShard)});
    ASSERT_TRUE(alone.ok()) << alone.status().ToString();
    const std::string expected = models::SaveWeights(alone->weights);
    const FleetRun servers = TrainWith(PlanOf(*type, plan::Strategy::PARAMETER_SERVER, 2, 2, loss),
                                       *source, kRowsPerShard);
    ASSERT_TRUE(servers.outcome.ok()) << servers.outcome.status().ToString();
    EXPECT_EQ(Bits(servers), expected);
    const FleetRun ring =
        TrainWith(PlanOf(*type, plan::Strategy::ALL_REDUCE, 3, 0, loss), *source, kRowsPerShard);
    ASSERT_TRUE(ring.outcome.ok()) << ring.outcome.status().ToString();
    EXPECT_EQ(Bits(ring), expected);
    ++trained;
  }
  EXPECT_GE(trained, 5);
}

}  // namespace
}  // namespace sluice::elastic
