#include "elastic/job/job_checkpoints.h"
#include "elastic/job/process.pb.h"

#include <fmt/core.h>

#include <filesystem>

#include "catalog/dataset.pb.h"
#include "elastic/job/tree_checkpoints.h"
#include "models/model.h"
#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// The part of a snapshot that is compared: what is read, how it is cut, how many rows it has.
catalog::DatasetSpec WhatIsCompared(const catalog::DatasetSpec& dataset) {
  catalog::DatasetSpec data;
  data.set_cut(dataset.cut());
  *data.mutable_columns() = dataset.columns();
  *data.mutable_shards() = dataset.shards();
  data.set_counted_rows(dataset.counted_rows());
  return data;
}

std::string CutName(const catalog::DatasetSpec& data) {
  return catalog::DatasetSpec::Cut_Name(data.cut());
}

// A description of the differences; empty: none that matter.
std::string Difference(const catalog::DatasetSpec& then, const catalog::DatasetSpec& now) {
  if (then.counted_rows() != now.counted_rows()) {
    return fmt::format("the select had {} rows then and has {} now", then.counted_rows(),
                       now.counted_rows());
  }
  if (then.columns_size() != now.columns_size()) {
    return fmt::format("the select had {} columns then and has {} now", then.columns_size(),
                       now.columns_size());
  }
  for (int i = 0; i < then.columns_size(); ++i) {
    if (then.columns(i).name() != now.columns(i).name() ||
        then.columns(i).type() != now.columns(i).type()) {
      return fmt::format("column '{}' was '{}' then, or of another type", now.columns(i).name(),
                         then.columns(i).name());
    }
  }
  return then.cut() == now.cut() ? ""
                                 : fmt::format("the rows were cut by {} then and are by {} now",
                                               CutName(then), CutName(now));
}

std::string KindOf(const plan::TrainPlan& plan) {
  return fmt::format("{} {}", plan::Strategy::Mode_Name(plan.strategy().mode()),
                     plan::Strategy::Kind_Name(plan.strategy().kind()));
}

// What is checkpointed of the model.
Result<std::string> ModelOf(const models::ModelSpec& model) {
  if (models::IsTrees(model)) {
    ASSIGN_OR_RETURN(const auto trees, models::GradientBoosting::Make(model));
    return fmt::format("trees of {} outputs", trees->outputs());
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<models::Network> network, models::Network::Make(model));
  return DescribeModel(model, *network);
}

constexpr char kHint[] = "empty the folder or name another: the training begins anew";

}  // namespace

Result<std::optional<JobCheckpoints>> JobCheckpoints::Open(const plan::TrainPlan& plan) {
  if (!plan.has_checkpoints()) {
    return std::optional<JobCheckpoints>();
  }
  const plan::Checkpoints& wanted = plan.checkpoints();
  const Span place{wanted.place_begin(), wanted.place_end()};
  const auto at = [&place](Status status) { return std::move(status).At(place); };
  const std::string path =
      std::filesystem::absolute(wanted.directory()).lexically_normal().string();
  Result<CheckpointDirectory> directory = CheckpointDirectory::Open(path, wanted.keep());
  if (!directory.ok()) {
    return at(directory.status());
  }
  JobCheckpoints checkpoints(*std::move(directory), wanted.every_steps());
  checkpoints.place_ = place;
  checkpoints.about_.plan = plan.SerializeAsString();
  Result<std::optional<CheckpointDirectory::Found>> found = checkpoints.directory_.Newest();
  if (!found.ok()) {
    return at(found.status());
  }
  Result<std::optional<int64_t>> committing_job = checkpoints.directory_.CommittingJob();
  if (!committing_job.ok()) {
    return at(committing_job.status());
  }
  checkpoints.committing_job_ = *committing_job;
  plan::TrainPlan to_run = plan;
  if (found->has_value()) {
    const CheckpointManifest& manifest = (*found)->manifest;
    plan::TrainPlan then;
    if (!then.ParseFromString(manifest.plan)) {
      return at(
          FailedPrecondition(fmt::format("'{}' is a checkpoint of another program", (*found)->path))
              .Hint(kHint));
    }
    if (then.checkpoints().statement() != wanted.statement()) {
      return at(FailedPrecondition(fmt::format("'{}' holds checkpoints of another statement", path))
                    .Detail(fmt::format("they were written by: {}\nthis one is: {}",
                                        then.checkpoints().statement(), wanted.statement()))
                    .Hint(kHint));
    }
    if (then.strategy().kind() != plan.strategy().kind() ||
        then.strategy().mode() != plan.strategy().mode()) {
      return at(
          FailedPrecondition(fmt::format("'{}' holds checkpoints of a training of another "
                                         "strategy",
                                         path))
              .Detail(fmt::format("it was {} then and is {} now", KindOf(then), KindOf(plan)))
              .Hint("engine.strategy says where a training runs; or empty the folder, or name "
                    "another"));
    }
    const uint32_t servers = plan.strategy().parameter_servers();
    if (plan.strategy().kind() == plan::Strategy::PARAMETER_SERVER &&
        servers > manifest.partitions && manifest.partitions > 1) {
      return at(
          FailedPrecondition(
              fmt::format("engine.num_ps is {}, and the checkpoint has {} partitions", servers,
                          manifest.partitions))
              .Hint(fmt::format("it continues with at most {} servers", manifest.partitions)));
    }
    checkpoints.damaged_ = (*found)->damaged;
    checkpoints.restore_ = *std::move(*found);
    to_run = checkpoints.PlanToRun(plan);
  }
  checkpoints.about_.plan = to_run.SerializeAsString();
  ASSIGN_OR_RETURN(checkpoints.about_.model, ModelOf(to_run.model()));
  if (checkpoints.restore_.has_value() &&
      checkpoints.restore_->manifest.model != checkpoints.about_.model) {
    return at(
        FailedPrecondition(fmt::format("'{}' is a checkpoint of a model of another shape",
                                       checkpoints.restore_->path))
            .Detail(fmt::format("it is of {}; this is {}", checkpoints.restore_->manifest.model,
                                checkpoints.about_.model))
            .Hint(kHint));
  }
  return std::optional<JobCheckpoints>(std::move(checkpoints));
}

plan::TrainPlan JobCheckpoints::PlanToRun(const plan::TrainPlan& plan) const {
  plan::TrainPlan then;
  if (!restore_.has_value() || !then.ParseFromString(restore_->manifest.plan)) {
    return plan;
  }
  const plan::Strategy& wanted = plan.strategy();
  plan::Strategy* strategy = then.mutable_strategy();
  strategy->set_min_workers(wanted.min_workers());
  strategy->set_max_workers(wanted.max_workers());
  strategy->set_workers(wanted.workers());
  strategy->set_parameter_servers(wanted.parameter_servers());
  strategy->set_max_parameter_servers(wanted.max_parameter_servers());
  strategy->set_replicas(wanted.replicas());
  strategy->set_cpu(wanted.cpu());
  strategy->set_memory_bytes(wanted.memory_bytes());
  strategy->set_priority(wanted.priority());
  strategy->set_reason(wanted.reason());
  then.set_statement(plan.statement());
  *then.mutable_checkpoints() = plan.checkpoints();
  return then;
}

Result<catalog::DatasetSpec> JobCheckpoints::DataToRun(const catalog::DatasetSpec& dataset,
                                                       const catalog::DatasetSpec* validation) {
  CheckpointData data;
  *data.mutable_train() = WhatIsCompared(dataset);
  if (validation != nullptr) {
    *data.mutable_validation() = WhatIsCompared(*validation);
  }
  catalog::DatasetSpec to_run = dataset;
  if (restore_.has_value()) {
    CheckpointData then;
    std::string difference = "it cannot be read";
    if (then.ParseFromString(restore_->manifest.data)) {
      difference = Difference(then.train(), data.train());
      if (difference.empty() && validation != nullptr) {
        difference = Difference(then.validation(), data.validation());
      }
    }
    if (!difference.empty()) {
      return FailedPrecondition(
                 fmt::format("the data has changed since the checkpoint '{}'", restore_->path))
          .At(place_)
          .Detail(difference)
          .Hint(kHint);
    }
    // The same ranges: new statistics may have led to others.
    *to_run.mutable_shards() = then.train().shards();
    data = then;
  }
  about_.data = data.SerializeAsString();
  return to_run;
}

CheckpointManifest JobCheckpoints::Manifest() const {
  return about_;
}

Result<bool> JobCheckpoints::GoBack() {
  const uint64_t last = restore_.has_value() ? restore_->manifest.cut : 0;
  ASSIGN_OR_RETURN(restore_, directory_.Newest());
  return restore_.has_value() && restore_->manifest.cut > last;
}

std::string JobCheckpoints::Beginning() const {
  return restore_.has_value() ? fmt::format("step {}", restore_->manifest.steps) : "the beginning";
}

void OfferDraft(const JobCheckpoints& checkpoints, MasterHost& host) {
  CheckpointDirectory directory = checkpoints.directory();
  const Result<CheckpointDirectory::Draft> draft = directory.Begin();
  host.With([&](Master& master, TimePoint now) {
    if (draft.ok()) {
      master.world_checkpoint().Offer(*draft);
    } else {
      master.outbox().AddEvent("checkpoint_failed", draft.status().message());
      master.OnCheckpoint(now);
    }
  });
}

void CommitWorldCut(const JobCheckpoints& checkpoints, MasterHost& host) {
  const std::optional<WorldCheckpoint::Cut> cut =
      host.With([](Master& master, TimePoint) { return master.world_checkpoint().Take(); });
  if (!cut.has_value()) {
    return;  // given up meanwhile
  }
  CheckpointManifest manifest = checkpoints.Manifest();
  manifest.partitions = 1;
  manifest.synchronous = true;
  manifest.queue_state = cut->manifest.queue_state;
  manifest.steps = cut->manifest.steps;
  manifest.epoch = cut->manifest.epoch;
  manifest.files = cut->manifest.files;
  CheckpointDirectory directory = checkpoints.directory();
  const Status committed =
      manifest.queue_state.empty()
          ? ResourceExhausted("the queue of this job is too large for a checkpoint")
          : directory.Commit(cut->draft, manifest);
  const std::string detail =
      committed.ok()
          ? DescribeCheckpoint(directory, cut->draft, manifest.steps, manifest.files[0].bytes)
          : committed.message();
  host.With([&](Master& master, TimePoint now) {
    master.outbox().AddEvent(committed.ok() ? "checkpoint_written" : "checkpoint_failed", detail);
    master.OnCheckpoint(now);
  });
}

Result<std::unique_ptr<Master>> MakeMaster(const Master::Options& options,
                                           const JobCheckpoints* checkpoints, TimePoint now) {
  if (checkpoints == nullptr || !checkpoints->restore().has_value()) {
    return std::make_unique<Master>(options, now);
  }
  if (options.passes) {
    ASSIGN_OR_RETURN(TreeCheckpoint trees, TreesToResume(checkpoints, options.queue.shards));
    auto master = std::make_unique<Master>(options, now);
    master->ResumePasses(std::move(trees.remembered), trees.rows);
    return master;
  }
  return Master::Resume(options, checkpoints->restore()->manifest.queue_state, now);
}

}  // namespace sluice::elastic
