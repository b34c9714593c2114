#include "planner/checkpoints.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/registry.h"
#include "parser/printer.h"
#include "planner/plan.pb.h"

namespace sluice::planner {
namespace {

// What a training may have otherwise when it goes on from a checkpoint: its processes, and the
// checkpoints themselves. None of it decides what the model becomes.
constexpr std::array kMayChange = {
    "engine.num_workers",
    "engine.min_workers",
    "engine.max_workers",
    "engine.num_ps",
    "engine.replicas",
    "engine.cpu",
    "engine.memory",
    "engine.priority",
    "engine.checkpoint_dir",
    "engine.keep_checkpoint_max",
    "train.save_checkpoints_steps",
};

bool MayChange(const models::ModelType& type, const parser::Attribute& attribute) {
  const models::AttributeSpec* spec = models::FindAttribute(type, attribute.name.text);
  return spec != nullptr &&
         std::find(kMayChange.begin(), kMayChange.end(), spec->name) != kMayChange.end();
}

}  // namespace

Status FillCheckpoints(const parser::TrainStatement& statement, const models::ModelType& type,
                       const AttributeSet& attributes, plan::TrainPlan* plan) {
  constexpr char kDirectory[] = "engine.checkpoint_dir";
  const std::optional<std::string> directory = attributes.Text(kDirectory);
  if (!directory) {
    return OkStatus();
  }
  const Span place = attributes.SpanOf(kDirectory);
  if (type.family == models::ModelFamily::kTrees) {
    return InvalidArgument("boosted trees keep no checkpoints")
        .At(place)
        .Hint("leave engine.checkpoint_dir out, or train a network");
  }
  plan::Checkpoints* checkpoints = plan->mutable_checkpoints();
  checkpoints->set_directory(*directory);
  checkpoints->set_every_steps(attributes.Integer("train.save_checkpoints_steps").value_or(1));
  checkpoints->set_keep(
      static_cast<uint32_t>(attributes.Integer("engine.keep_checkpoint_max").value_or(0)));
  checkpoints->set_place_begin(place.begin);
  checkpoints->set_place_end(place.end);
  parser::TrainStatement same = statement;
  std::erase_if(same.attributes,
                [&type](const parser::Attribute& attribute) { return MayChange(type, attribute); });
  checkpoints->set_statement(parser::Print(parser::Statement(std::move(same))));
  return OkStatus();
}

}  // namespace sluice::planner
