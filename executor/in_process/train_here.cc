#include "executor/in_process/train_here.h"

#include <fmt/core.h>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/local_job.h"
#include "elastic/job/optimum_job.h"
#include "executor/in_process/refit.h"
#include "executor/in_process/train_trees.h"
#include "executor/jobs/job_record.h"
#include "models/imports/import_network.h"
#include "models/registry/registry.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// The weights of the model in USING; they must have the new model's shape.
Result<std::string> LoadBase(const plan::TrainPlan& plan, catalog::ModelStore& models) {
  std::optional<int64_t> wanted;
  if (plan.base_version() != 0) {
    wanted = plan.base_version();
  }
  ASSIGN_OR_RETURN(const catalog::ModelVersion base,
                   models.Find(plan.base_schema(), plan.base_name(), wanted));
  return models.LoadWeights(base);
}

// The initial values in the source of a user type, read again when they are needed.
Result<std::optional<models::NetworkWeights>> InitialWeightsOfUserType(const plan::TrainPlan& plan,
                                                                       catalog::ModelStore& types) {
  const plan::UserType& brought = plan.brought();
  const auto found = types.Find(brought.schema(), brought.name(), brought.version());
  if (!found.ok()) {
    return found.status().Because("the training begins with the values of its model type");
  }
  ASSIGN_OR_RETURN(const std::string source, types.LoadWeights(*found));
  models::ModelSpec spec = plan.model();
  models::ImportReport report;
  models::ImportSource wanted{brought.language(), source, {}};
  wanted.frozen.assign(brought.frozen().begin(), brought.frozen().end());
  RETURN_IF_ERROR(models::ImportNetwork(wanted, &spec, &report));
  if (report.start) {
    ASSIGN_OR_RETURN(const auto network, models::Network::Make(plan.model()));
    RETURN_IF_ERROR(models::CheckShape(*report.start, *network));
  }
  return std::move(report.start);
}

Result<elastic::TrainOutcome> TrainNetworkOnce(const elastic::TrainingJob& job,
                                               std::optional<ScoredRows>* held_out,
                                               FoldChoice* choice) {
  const bool folds = job.plan.folds() > 0;
  if (job.plan.optimum()) {
    return folds ? TrainOptimumByFolds(job, held_out) : elastic::TrainToOptimum(job);
  }
  return folds ? TrainByFolds(job, held_out, choice) : elastic::TrainInProcess(job);
}

const catalog::DatasetSpec* ValidationOf(const Datasets& datasets) {
  return datasets.validation == nullptr ? nullptr : &datasets.validation->spec();
}

// The rows of a resumed job are cut as they were.
Result<catalog::DatasetSpec> DataToRun(const plan::TrainPlan& plan, const Datasets& datasets,
                                       elastic::JobCheckpoints* checkpoints) {
  ASSIGN_OR_RETURN(catalog::DatasetSpec data, CountedSpec(plan, datasets));
  return checkpoints == nullptr ? Result<catalog::DatasetSpec>(std::move(data))
                                : checkpoints->DataToRun(data, ValidationOf(datasets));
}

Result<Trained> TrainNetwork(const plan::TrainPlan& plan, catalog::DataSource& source,
                             catalog::Catalog& catalog, const Datasets& datasets, JobRecord& job,
                             const elastic::ProgressCallback& progress,
                             elastic::JobCheckpoints* checkpoints) {
  ASSIGN_OR_RETURN(const auto start, StartOf(plan, catalog));
  ASSIGN_OR_RETURN(const catalog::DatasetSpec data, DataToRun(plan, datasets, checkpoints));
  const elastic::TrainingJob training{.plan = plan,
                                      .source = source,
                                      .dataset = data,
                                      .validation = ValidationOf(datasets),
                                      .base = start.has_value() ? &*start : nullptr,
                                      .progress = progress,
                                      .events = EventsOf(job),
                                      .stop = job.stop_token(),
                                      .profile = &job.profile(),
                                      .checkpoints = checkpoints};
  return plan.refits() ? TrainAndRefit(training) : TrainOnce(training);
}

}  // namespace

Result<std::optional<models::NetworkWeights>> StartOf(const plan::TrainPlan& plan,
                                                      catalog::Catalog& catalog) {
  if (!plan.has_base()) {
    return plan.has_brought() ? InitialWeightsOfUserType(plan, catalog.model_types())
                              : std::optional<models::NetworkWeights>();
  }
  ASSIGN_OR_RETURN(const std::string bytes, LoadBase(plan, catalog.models()));
  ASSIGN_OR_RETURN(models::NetworkWeights base, models::LoadWeights(bytes));
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(plan.model()));
  RETURN_IF_ERROR(models::CheckShape(base, *network)
                      .Because(fmt::format("continuing from model {}", plan.base_name())));
  return std::optional(std::move(base));
}

elastic::EventCallback EventsOf(JobRecord& job) {
  elastic::EventCallback events;
  events.on_event = [&job](const std::string& kind, const std::string& detail) {
    const bool announced = kind == elastic::kDatabaseWaits || kind == elastic::kRowsReadAgain ||
                           kind == elastic::kKilledByKernel;
    announced ? job.Announce(kind, detail) : job.Event(kind, detail);
  };
  return events;
}

Result<Trained> TrainOnce(const elastic::TrainingJob& job, const std::string& base_trees) {
  Trained trained;
  if (models::IsTrees(job.plan.model())) {
    ASSIGN_OR_RETURN(trained.outcome,
                     job.plan.folds() > 0
                         ? TrainTreesByFolds(job, &trained.weights, &trained.held_out)
                         : TrainTrees(job, base_trees, &trained.weights));
    return trained;
  }
  ASSIGN_OR_RETURN(trained.outcome, TrainNetworkOnce(job, &trained.held_out, &trained.choice));
  trained.weights = models::SaveWeights(trained.outcome.weights);
  return trained;
}

Result<Trained> TrainHere(const plan::TrainPlan& plan, catalog::DataSource& source,
                          catalog::Catalog& catalog, const Datasets& datasets, JobRecord& job,
                          const elastic::ProgressCallback& progress,
                          elastic::JobCheckpoints* checkpoints) {
  if (!models::IsTrees(plan.model())) {
    return TrainNetwork(plan, source, catalog, datasets, job, progress, checkpoints);
  }
  std::string base;
  if (plan.has_base()) {
    ASSIGN_OR_RETURN(base, LoadBase(plan, catalog.models()));
  }
  ASSIGN_OR_RETURN(const catalog::DatasetSpec data, DataToRun(plan, datasets, checkpoints));
  const elastic::TrainingJob training{.plan = plan,
                                      .source = source,
                                      .dataset = data,
                                      .validation = ValidationOf(datasets),
                                      .progress = progress,
                                      .events = EventsOf(job),
                                      .stop = job.stop_token(),
                                      .profile = &job.profile(),
                                      .checkpoints = checkpoints};
  return plan.refits() ? TrainAndRefit(training) : TrainOnce(training, base);
}

}  // namespace sluice::executor
