#include <utility>

#include "elastic/job/fleet_optimum_internal.h"
#include "elastic/worker/pass_sums.h"
#include "models/model.pb.h"

namespace sluice::elastic {

Status FleetOptimum::Start(const models::ModelSpec& spec) {
  ASSIGN_OR_RETURN(search_, models::LinearOptimum::Make(spec));
  ASSIGN_OR_RETURN(nothing_, models::LinearSums::Make(spec));
  thread_ = std::jthread([this] { Search(); });
  MutexLock lock(mutex_);
  while (!offered_ && !stopped_) {
    changed_.wait(lock.native());
  }
  return Status();
}

void FleetOptimum::Stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) {
    thread_.join();
  }
}

void FleetOptimum::OnPassDone() {
  auto sums = host_.With([](Master& master, TimePoint) { return master.passes().Take(); });
  const MutexLock lock(mutex_);
  sums_ = std::move(sums);
  changed_.notify_all();
}

void FleetOptimum::Search() {
  const auto tell = [this](const models::LinearOptimum::Step& step) {
    host_.With([&step](Master& master, TimePoint) { master.passes().SetShareDone(step.progress); });
    return Status();
  };
  Result<models::LinearOptimum::Found> found =
      search_->Solve([this](const models::LinearPass& pass) { return Sum(pass); }, tell);
  if (found.ok() && found->rows == 0) {
    found = InvalidArgument("there are no rows to train on").SqlState("02000");
  }
  if (!found.ok()) {
    host_.With([&found](Master& master, TimePoint) { master.Abort(found.status()); });
  } else {
    found_ = *std::move(found);
    door_.OfferBase(std::make_shared<const std::string>(models::SaveWeights(found_.weights)));
    host_.With([](Master& master, TimePoint now) { master.EndPasses(now); });
  }
  const MutexLock lock(mutex_);
  offered_ = true;
  changed_.notify_all();
}

Result<std::vector<double>> FleetOptimum::Sum(const models::LinearPass& pass) {
  const bool first = epoch_ == kNoEpoch;
  ++epoch_;
  door_.OfferPass(epoch_, std::make_shared<const std::string>(pass.Serialize()));
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
  std::vector<double> all;
  RETURN_IF_ERROR(nothing_->Sum(pass, {}, nullptr, &all));
  const size_t length = all.size();
  for (const auto& [shard, bytes] : sums) {
    ASSIGN_OR_RETURN(const std::vector<double> own, SumsFromBytes(bytes));
    if (own.size() != length) {
      return Internal("a worker's sums are of another model");
    }
    AddUp(own, &all);
  }
  return all;
}

}  // namespace sluice::elastic
