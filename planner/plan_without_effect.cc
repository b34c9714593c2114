#include <fmt/core.h>

#include <string_view>
#include <vector>

#include "planner/plan_train_internal.h"
#include "planner/pods.h"

namespace sluice::planner {

void FillWithoutEffect(const BoundTrain& bound, plan::TrainPlan* plan) {
  const AttributeSet& attributes = bound.attributes;
  for (const std::string& attribute : attributes.WithoutEffect()) {
    plan->add_without_effect(attribute);
  }
  const bool trees = bound.type->family == models::ModelFamily::kTrees;
  if (trees && attributes.Flag("train.disk_cache").value_or(false)) {
    plan->add_without_effect("train.disk_cache: no effect: boosted trees have all rows in memory");
  }
  if (trees && attributes.Given("engine.batches_per_shard")) {
    plan->add_without_effect("engine.batches_per_shard: no effect: trees learn no batches");
  }
  if (trees && plan->strategy().kind() != plan::Strategy::LOCAL) {
    for (const char* name :
         {"engine.num_ps", "engine.max_ps", "engine.replicas", "engine.staleness",
          "engine.transport", "engine.sync", "engine.micro_batches", "engine.on_poison"}) {
      if (attributes.Given(name)) {
        plan->add_without_effect(fmt::format(
            "{}: no effect: workers that grow trees add up their rows, without gradients", name));
      }
    }
  }
  if (plan->strategy().kind() == plan::Strategy::LOCAL) {
    std::vector<const char*> of_processes = {
        "engine.num_workers", "engine.min_workers", "engine.max_workers", "engine.num_ps",
        "engine.max_ps",      "engine.replicas",    "engine.staleness",   "engine.transport",
        "engine.on_poison",   "engine.cpu",         "engine.memory",      "engine.priority"};
    of_processes.insert(of_processes.end(), PodAttributes().begin(), PodAttributes().end());
    for (const char* name : of_processes) {
      const int64_t no_fleet = std::string_view(name).ends_with("workers") ? 1 : 0;
      const bool says_so = attributes.Integer(name) == no_fleet;
      if (attributes.Given(name) && !says_so) {
        plan->add_without_effect(
            fmt::format("{}: no effect: {}", name,
                        trees && !GrownByWorkers(bound, *plan)
                            ? "such trees are trained in one process"
                            : "this training runs in one process; engine.strategy chooses others"));
      }
    }
  }
  for (const char* name : {"train.save_checkpoints_steps", "engine.keep_checkpoint_max"}) {
    if (attributes.Given(name) && !attributes.Given("engine.checkpoint_dir")) {
      plan->add_without_effect(fmt::format(
          "{}: no effect: without engine.checkpoint_dir there are no checkpoints", name));
    }
  }
  if (attributes.Declared("model.ridge") && attributes.Given("model.ridge") && !plan->optimum()) {
    plan->add_without_effect("model.ridge: no effect: the model is not trained to its optimum");
  }
  constexpr char kPatience[] = "train.early_stopping_rounds";
  if (attributes.Given(kPatience) && attributes.Integer(kPatience).value_or(0) > 0 &&
      plan->split().kind() == plan::Split::NONE) {
    plan->add_without_effect(fmt::format("{}: no effect: there are no validation rows", kPatience));
  }
  constexpr char kMetric[] = "train.early_stopping_metric";
  if (attributes.Declared(kMetric) && attributes.Given(kMetric) &&
      plan->early_stopping().patience() == 0) {
    plan->add_without_effect(
        fmt::format("{}: no effect: the training does not stop early; "
                    "train.early_stopping_rounds has it stop",
                    kMetric));
  }
}

}  // namespace sluice::planner
