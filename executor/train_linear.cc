#include "executor/train_linear.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/worker/row_selection.h"
#include "elastic/worker/shard_rows.h"
#include "elastic/worker/split.h"
#include "executor/scorer.h"
#include "models/features/label_scale.h"
#include "models/metrics/metric.h"
#include "models/networks/linear_optimum.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Rows asked of the database, or handed to the model, at a time.
constexpr size_t kRowsAtATime = 4096;

// All shards of a dataset, one after another, again and again.
class Shards {
 public:
  Shards(const catalog::DatasetSpec& spec, std::unique_ptr<elastic::ShardLoader> loader,
         std::stop_token stop)
      : spec_(spec), loader_(std::move(loader)), stop_(std::move(stop)) {
    loader_->HearStop(stop_);
  }

  using Visitor = std::function<Status(const elastic::ShardRows&)>;
  Status ForEach(const std::function<void()>& on_rows, const Visitor& visit) {
    for (int shard = 0; shard < spec_.shards_size(); ++shard) {
      RETURN_IF_ERROR(loader_->Start(elastic::ShardId(shard)));
      for (;;) {
        if (stop_.stop_requested()) {
          loader_->Abandon();
          return Cancelled("the training was cancelled");
        }
        const Result<bool> complete = loader_->Pump(kRowsAtATime);
        if (!complete.ok()) {
          loader_->Abandon();
          return complete.status();
        }
        on_rows();
        if (*complete) {
          break;
        }
      }
      RETURN_IF_ERROR(visit(*loader_->Finish()));
    }
    return OkStatus();
  }
  int64_t rows_read() const { return loader_->rows_read(); }

 private:
  const catalog::DatasetSpec& spec_;
  const std::unique_ptr<elastic::ShardLoader> loader_;
  const std::stop_token stop_;
};

class Judge {
 public:
  Judge(const plan::TrainPlan& plan, Scorer& scorer)
      : plan_(plan), scorer_(scorer), metrics_(models::TaskOf(plan.model()), scorer.outputs()) {}

  Status Add(const models::FeatureBatch& rows) {
    std::vector<uint32_t> places;
    for (size_t begin = 0; begin < rows.rows; begin += places.size()) {
      places.resize(std::min(kRowsAtATime, rows.rows - begin));
      std::iota(places.begin(), places.end(), static_cast<uint32_t>(begin));
      elastic::GatherRows(rows, places, &batch_);
      RETURN_IF_ERROR(scorer_.Score(batch_, &scores_));
      models::RestoreLabelScale(plan_.model().features().label(), &batch_.labels);
      metrics_.Add(scores_, batch_.labels, batch_.weights);
      rows_ += static_cast<int64_t>(places.size());
    }
    return OkStatus();
  }

  void Report(elastic::TrainOutcome* outcome) const {
    std::vector<std::string> further;
    for (const std::string& name : plan_.metrics()) {
      further.push_back(models::Metrics::CanonicalName(name));
    }
    outcome->validation_rows = rows_;
    if (rows_ > 0) {
      outcome->metrics = metrics_.Values(further);
    }
  }

 private:
  const plan::TrainPlan& plan_;
  Scorer& scorer_;
  models::Metrics metrics_;
  models::FeatureBatch batch_;
  std::vector<float> scores_;
  int64_t rows_ = 0;
};

// Tells how far a search has come, at most once a second.
class Teller {
 public:
  Teller(const plan::TrainPlan& plan, const elastic::ProgressCallback& progress)
      : progress_(progress) {
    now_.epoch = elastic::Epoch::First();
    now_.epochs = 1;
    now_.workers = 1;
    now_.rows_total = plan.estimated_rows();
  }

  void Read(int64_t rows) {
    now_.rows_read = rows;
    if (!trained_) {
      now_.rows_done = rows;
      Tell(false);
    }
  }
  // Of Newton's steps nobody knows how many there will be: `share` of the way is done.
  void Step(double loss, double share, int64_t rows) {
    trained_ = true;
    now_.loss = loss;
    now_.rows_total = rows;
    now_.rows_done = static_cast<int64_t>(share * static_cast<double>(rows));
    const double seconds = SecondsBetween(started_, clock_.Now());
    now_.seconds_left = share > 0 ? seconds / share * (1 - share) : 0;
    Tell(false);
  }
  void Tell(bool last) {
    const TimePoint time = clock_.Now();
    if (last || SecondsBetween(told_, time) >= 1) {
      const double seconds = SecondsBetween(started_, time);
      now_.rows_per_second = seconds > 0 ? static_cast<double>(now_.rows_read) / seconds : 0;
      told_ = time;
      progress_(now_);
    }
  }

 private:
  const elastic::ProgressCallback& progress_;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  TimePoint told_ = started_;
  elastic::Progress now_;
  bool trained_ = false;
};

Result<std::unique_ptr<Shards>> OpenShards(const plan::TrainPlan& plan, catalog::DataSource& source,
                                           const catalog::DatasetSpec& spec,
                                           const models::FeatureTransform& transform,
                                           elastic::ShardLoader::Options options,
                                           std::stop_token stop) {
  ASSIGN_OR_RETURN(const elastic::SplitRule split, elastic::SplitRule::Make(plan.split()));
  if (plan.database_patience_seconds() > 0) {
    options.patience_seconds = plan.database_patience_seconds();
  }
  ASSIGN_OR_RETURN(auto loader,
                   elastic::ShardLoader::Make(source, spec, transform, split, options));
  return std::make_unique<Shards>(spec, std::move(loader), std::move(stop));
}

}  // namespace

Result<elastic::TrainOutcome> TrainToOptimum(const plan::TrainPlan& plan,
                                             catalog::DataSource& source,
                                             const catalog::DatasetSpec& dataset,
                                             const catalog::DatasetSpec* validation,
                                             const elastic::ProgressCallback& progress,
                                             std::stop_token stop) {
  ASSIGN_OR_RETURN(const auto search, models::LinearOptimum::Make(plan.model()));
  ASSIGN_OR_RETURN(const auto network, models::Network::Make(plan.model()));
  elastic::ShardLoader::Options options;
  options.keep_rows = !search->one_pass();
  ASSIGN_OR_RETURN(const auto shards,
                   OpenShards(plan, source, dataset, network->transform(), options, stop));
  Teller teller(plan, progress);
  const auto on_rows = [&] { teller.Read(shards->rows_read()); };
  int64_t rows = 0;
  const auto pass = [&](const models::LinearOptimum::Visitor& visit) {
    rows = 0;
    return shards->ForEach(on_rows, [&](const elastic::ShardRows& shard) {
      rows += static_cast<int64_t>(shard.train.rows);
      return visit(shard.train);
    });
  };
  const auto on_step = [&](const models::LinearOptimum::Step& step) {
    teller.Step(step.loss, step.progress, rows);
    return stop.stop_requested() ? Cancelled("the training was cancelled") : OkStatus();
  };
  Result<models::LinearOptimum::Found> found = search->Solve(pass, on_step);
  if (!found.ok()) {
    teller.Tell(true);  // how far it came
    return found.status();
  }
  if (found->rows == 0) {
    return InvalidArgument("there are no rows to train on").SqlState("02000");
  }
  elastic::TrainOutcome outcome;
  outcome.weights = std::move(found->weights);
  outcome.loss = found->loss;
  outcome.epochs = static_cast<uint32_t>(found->steps);
  outcome.rows_per_epoch = found->rows;
  outcome.rows_trained = found->rows * found->steps;
  ASSIGN_OR_RETURN(const auto scorer,
                   Scorer::Make(plan.model(), models::SaveWeights(outcome.weights)));
  Judge judge(plan, *scorer);
  const auto judged = [&judge](const elastic::ShardRows& shard) {
    return judge.Add(shard.validation);
  };
  if (validation != nullptr) {
    options = {};
    options.all_validation = true;
    ASSIGN_OR_RETURN(const auto others,
                     OpenShards(plan, source, *validation, network->transform(), options, stop));
    RETURN_IF_ERROR(others->ForEach([] {}, judged));
  } else if (plan.split().kind() != plan::Split::NONE) {
    RETURN_IF_ERROR(shards->ForEach(on_rows, judged));
  }
  judge.Report(&outcome);
  outcome.rows_read = shards->rows_read();
  teller.Tell(true);
  return outcome;
}

}  // namespace sluice::executor
