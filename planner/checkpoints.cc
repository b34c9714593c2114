#include "planner/checkpoints.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "parser/printer.h"
#include "planner/plan.pb.h"
#include "planner/pods.h"

namespace sluice::planner {
namespace {

// Attributes that may change when a training continues from a checkpoint: processes, and the
// checkpoints themselves. None of them affects the resulting model.
constexpr std::array kMutableAttributes = {
    "engine.num_workers",
    "engine.min_workers",
    "engine.max_workers",
    "engine.num_ps",
    "engine.max_ps",
    "engine.replicas",
    "engine.cpu",
    "engine.memory",
    "engine.priority",
    "engine.checkpoint_dir",
    "train.disk_cache",
    "engine.keep_checkpoint_max",
    "engine.database_patience",
    "engine.new_snapshot",
    "train.save_checkpoints_steps",
};

bool MayChange(const models::ModelType& type, const parser::Attribute& attribute) {
  const models::AttributeSpec* spec = models::FindAttribute(type, attribute.name.text);
  const auto is = [spec](std::string_view name) { return spec->name == name; };
  return spec != nullptr &&
         (std::any_of(kMutableAttributes.begin(), kMutableAttributes.end(), is) ||
          std::any_of(PodAttributes().begin(), PodAttributes().end(), is));
}

// Names are folders inside `root`, however they are spelt.
Result<std::string> FolderIn(const std::string& root, const std::string& name) {
  namespace fs = std::filesystem;
  if (root.empty()) {
    return Status(Code::kPermissionDenied, "this gateway keeps no checkpoints")
        .Hint("it does when it is started with --checkpoint-root FOLDER");
  }
  std::error_code error;
  const fs::path base = fs::weakly_canonical(fs::absolute(root), error);
  const fs::path folder = error ? fs::path() : fs::weakly_canonical(base / name, error);
  const fs::path within = folder.lexically_relative(base);
  if (error || within.empty() || *within.begin() == ".." || within == ".") {
    return Status(Code::kPermissionDenied,
                  fmt::format("'{}' is not inside the folder where checkpoints are kept", name))
        .Hint("a name without a path will do, such as that of the model");
  }
  return folder.string();
}

}  // namespace

Status FillCheckpoints(const parser::TrainStatement& statement, const models::ModelType& type,
                       const AttributeSet& attributes, const Options& options,
                       plan::TrainPlan* plan) {
  constexpr char kDirectory[] = "engine.checkpoint_dir";
  const std::optional<std::string> directory = attributes.Text(kDirectory);
  if (!directory) {
    return OkStatus();
  }
  const Span place = attributes.SpanOf(kDirectory);
  if (type.family == models::ModelFamily::kTrees &&
      !models::GradientBoosting::GrowsHere(plan->model()) &&
      models::GradientBoosting::Make(plan->model()).ok()) {
    return InvalidArgument("trees that libxgboost trains keep no checkpoints")
        .At(place)
        .Hint(
            "leave engine.checkpoint_dir out; those of booster gbtree keep some, but for rankings "
            "and the like (docs/engine.md)");
  }
  Result<std::string> folder = options.checkpoint_root.has_value()
                                   ? FolderIn(*options.checkpoint_root, *directory)
                                   : Result<std::string>(*directory);
  if (!folder.ok()) {
    return Status(folder.status()).At(place);
  }
  plan::Checkpoints* checkpoints = plan->mutable_checkpoints();
  checkpoints->set_directory(*std::move(folder));
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
