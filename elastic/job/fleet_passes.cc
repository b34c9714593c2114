#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_passes_internal.h"
#include "elastic/job/training_job.h"
#include "elastic/job/tree_checkpoints.h"
#include "elastic/worker/feature_reader.h"
#include "elastic/worker/row_selection.h"
#include "models/linear_optimum.h"
#include "models/model.pb.h"
#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

constexpr size_t kRowsPerBatch = 8192;

// The rows of validation.select, which this process reads itself: they judge each round.
class JudgingRows {
 public:
  // Called with their checksum when all have been read.
  using OnRead = std::function<Status(uint64_t checksum)>;
  static Result<std::unique_ptr<JudgingRows>> Open(const TrainingJob& job,
                                                   const models::FeatureTransform& transform,
                                                   OnRead on_read) {
    auto rows = std::make_unique<JudgingRows>();
    rows->on_read_ = std::move(on_read);
    rows->shards_ = job.validation->shards_size();
    ASSIGN_OR_RETURN(rows->reader_,
                     FeatureReader::Make(job.source, *job.validation, transform, {}));
    return rows;
  }
  models::GradientBoosting::BatchSource Source() {
    return {.next = [this] { return Next(); },
            .rewind =
                [this] {
                  reader_->Close();
                  shard_ = 0;
                  checksum_ = 0;
                  return OkStatus();
                },
            .most_kept = 0};
  }

 private:
  Result<const models::FeatureBatch*> Next() {
    batch_.Clear();
    while (batch_.rows == 0) {
      if (!reader_->open()) {
        if (shard_ == shards_) {
          RETURN_IF_ERROR(on_read_(checksum_));
          break;
        }
        RETURN_IF_ERROR(reader_->Open(ShardId(shard_++)));
      }
      ASSIGN_OR_RETURN(const bool more, reader_->Next(kRowsPerBatch));
      if (more) {
        reader_->AppendTraining(&batch_);
      }
    }
    checksum_ += ChecksumOf(batch_);
    return &batch_;
  }

  std::unique_ptr<FeatureReader> reader_;
  OnRead on_read_;
  int shards_ = 0, shard_ = 0;
  uint64_t checksum_ = 0;
  models::FeatureBatch batch_;
};

}  // namespace

void FleetPasses::Start() {
  thread_ = std::jthread([this] { Search(); });
  MutexLock lock(mutex_);
  while (!offered_ && !stopped_) {
    changed_.wait(lock.native());
  }
}

void FleetPasses::Stop() {
  stop_.request_stop();
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void FleetPasses::OnPassDone() {
  auto sums = host_.With([](Master& master, TimePoint) { return master.passes().Take(); });
  const MutexLock lock(mutex_);
  sums_ = std::move(sums);
  changed_.notify_all();
}

void FleetPasses::Search() {
  const Status found = models::IsTrees(job_.plan.model()) ? GrowTrees() : FindOptimum();
  if (!found.ok()) {
    host_.With([&found](Master& master, TimePoint) { master.Abort(found); });
  } else {
    door_.OfferBase(std::make_shared<const std::string>(
        found_.trees.empty() ? models::SaveWeights(found_.weights) : found_.trees));
    host_.With([](Master& master, TimePoint now) { master.EndPasses(now); });
  }
  const MutexLock lock(mutex_);
  offered_ = true;
  changed_.notify_all();
}

Status FleetPasses::FindOptimum() {
  const models::ModelSpec& spec = job_.plan.model();
  ASSIGN_OR_RETURN(const auto search, models::LinearOptimum::Make(spec));
  ASSIGN_OR_RETURN(
      const models::LinearOptimum::Pass pass,
      models::LinearPassesBy(spec, [this](const models::Pass& next) { return Run(next); }));
  const auto tell = [this](const models::LinearOptimum::Step& step) {
    host_.With([&step](Master& master, TimePoint) {
      master.passes().SetStage({.share = step.progress, .metrics = {}});
    });
    return Status();
  };
  ASSIGN_OR_RETURN(models::LinearOptimum::Found found, search->Solve(pass, tell));
  if (found.rows == 0) {
    return InvalidArgument("there are no rows to train on").SqlState("02000");
  }
  found_.weights = std::move(found.weights);
  found_.loss = found.loss;
  found_.steps = static_cast<uint32_t>(found.steps);
  return Status();
}

Status FleetPasses::GrowTrees() {
  ASSIGN_OR_RETURN(const auto trees, models::GradientBoosting::Make(job_.plan.model()));
  const bool judges = job_.plan.early_stopping().patience() > 0;
  std::unique_ptr<JudgingRows> apart;
  if (judges && job_.validation != nullptr) {
    ASSIGN_OR_RETURN(const TreeCheckpoint resumed,
                     TreesToResume(job_.checkpoints, job_.dataset.shards_size()));
    ASSIGN_OR_RETURN(apart, JudgingRows::Open(job_, trees->transform(),
                                              [this, then = resumed.judges](uint64_t checksum) {
                                                judges_ = checksum;
                                                return CheckJudges(then, checksum);
                                              }));
  }
  const auto tell = [this](const models::GradientBoosting::Round& round) {
    found_.loss = round.metrics.empty() ? 0 : round.metrics.front().second;
    found_.steps = static_cast<uint32_t>(round.round);
    found_.best = static_cast<uint32_t>(round.best);
    host_.With([&](Master& master, TimePoint) {
      master.passes().SetStage(
          {.share = static_cast<double>(round.round) / std::max(1, round.rounds),
           .round = static_cast<uint32_t>(round.round),
           .rounds = static_cast<uint32_t>(round.rounds),
           .loss = found_.loss,
           .metrics = round.metrics});
    });
  };
  models::PassSearch search;
  search.run = [this](const models::Pass& pass) { return Run(pass); };
  search.memory.remember = [this](std::string what) {
    host_.With([&](Master& master, TimePoint now) { master.Remember(std::move(what), now); });
  };
  search.memory.remembered =
      host_.With([](Master& master, TimePoint) { return master.remembered(); });
  RETURN_IF_ERROR(trees->TrainByPasses(
      search, apart != nullptr ? apart->Source() : models::GradientBoosting::BatchSource{},
      judges && apart == nullptr && job_.plan.split().kind() != plan::Split::NONE, tell,
      stop_.get_token(), job_.finish));
  ASSIGN_OR_RETURN(found_.trees, trees->Save());
  return Status();
}

void FleetPasses::WriteCheckpoint() {
  WriteTreesOf(host_, *job_.checkpoints, judges_);
}

Result<std::vector<std::string>> FleetPasses::Run(const models::Pass& pass) {
  const bool first = epoch_ == kNoEpoch;
  ++epoch_;
  door_.OfferPass(epoch_, pass);
  if (!first) {
    host_.With([](Master& master, TimePoint now) { master.NextPass(now); });
  }
  std::map<ShardId, std::string> sums;
  {
    MutexLock lock(mutex_);
    offered_ = true;
    changed_.notify_all();
    while (!sums_.has_value() && !stopped_) {
      changed_.wait(lock.native());
    }
    if (!sums_.has_value()) {
      return Cancelled("the training was stopped");
    }
    sums = *std::exchange(sums_, std::nullopt);
  }
  std::vector<std::string> answers;
  for (auto& [shard, bytes] : sums) {
    answers.push_back(std::move(bytes));
  }
  return answers;
}

}  // namespace sluice::elastic
