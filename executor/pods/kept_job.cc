#include "executor/pods/kept_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "executor/pods/pod_job.h"

namespace sluice::executor {
namespace {

// A master that was lost sooner has not been of use; so many of them in a row are no accident.
constexpr double kOfUseSeconds = 20;
constexpr int kMaxLost = 8;
// A pod that was made and that no watch has shown for so long, through a relist or two, is gone.
constexpr double kUnseenSeconds = 150;
constexpr double kFirstRestartSeconds = 0.1, kLongestWaitSeconds = 10;

bool Ended(const KeptJob::Master& master) {
  return master.state.phase == k8s::PodState::Phase::kEnded;
}

}  // namespace

void KeptJob::OnMasterPod(int64_t number, const std::string& pod_uid, k8s::PodState state,
                          bool gone) {
  Master& master = masters_[number];
  master.pod_uid = pod_uid;
  // What it ended with is not forgotten when its pod goes.
  if (!Ended(master)) {
    master.state = std::move(state);
  }
  master.gone = gone;
}

void KeptJob::Follow(int64_t number) {
  newest_ = std::max(newest_, number);
  made_ = newest_ > 0;
}

void KeptJob::TakeCharge() {
  made_ = masters_.contains(newest_);
  silent_ = false;
  if (!made_ && newest_ > 0) {
    ++newest_;
  }
}

void KeptJob::OnMade(TimePoint now) {
  made_ = true;
  made_at_ = now;
  refused_.reset();
}

void KeptJob::OnRefused(k8s::Fault fault, const Status& why, TimePoint now) {
  if (fault == k8s::Fault::kNotFound) {
    // Its Service was deleted by a user: the job is gone.
    GiveUp(Cancelled("its objects in Kubernetes were deleted"));
    return;
  }
  if (fault == k8s::Fault::kForbidden || fault == k8s::Fault::kInvalid) {
    GiveUp(why);
    return;
  }
  log::Warn("job={} its master cannot be made now: {}", job_.number, why.message());
  refused_ = {fault == k8s::Fault::kQuota ? "QuotaExceeded" : "MasterRefused", why.message()};
  OnNotMade(now + std::chrono::seconds(1));
}

std::optional<KeptJob::Trouble> KeptJob::trouble() const {
  if (refused_ || given_up_ || suspend_ || service_gone_) {
    return given_up_ || suspend_ || service_gone_ ? std::nullopt : refused_;
  }
  const auto master = masters_.find(newest_);
  if (!made_ || master == masters_.end() || master->second.gone ||
      master->second.state.phase != k8s::PodState::Phase::kWaiting) {
    return std::nullopt;
  }
  const std::string& why = master->second.state.waiting_for;
  return why.empty() || why == k8s::kWaitsForScheduler || why == k8s::kWaitsForNode
             ? std::nullopt
             : std::optional(Trouble{"MasterWaits", why});
}

void KeptJob::OnSilent(int64_t number, TimePoint now) {
  const auto master = masters_.find(number);
  if (number == newest_) {
    silent_ = true;
  }
  if (master != masters_.end()) {
    suspects_.Add(master->second.state.node, now);
  }
}

bool KeptJob::Unheard(Master& master, TimePoint now) {
  const k8s::PodState& state = master.state;
  if (state.phase != k8s::PodState::Phase::kWaiting || state.node.empty() || state.accepted) {
    return false;
  }
  master.placed_at = master.placed_at.value_or(now);
  if (SecondsBetween(*master.placed_at, now) < suspects_.PatienceSeconds(state.node, now)) {
    return false;
  }
  suspects_.Add(state.node, now);
  return true;
}

bool KeptJob::LacksImage(Master& master, TimePoint now) {
  if (!master.state.lacks_image) {
    if (master.state.phase != k8s::PodState::Phase::kWaiting) {
      master.without_image.reset();
    }
    return false;
  }
  master.without_image = master.without_image.value_or(now);
  return SecondsBetween(*master.without_image, now) >= k8s::kImagePatienceSeconds;
}

void KeptJob::GiveUp(Status why) {
  if (!given_up_.has_value()) {
    given_up_ = std::move(why);
  }
}

void KeptJob::Suspend(bool wanted, bool done) {
  suspend_ = wanted;
  suspended_ = done;
}

bool KeptJob::runs() const {
  const auto master = masters_.find(newest_);
  return made_ && master != masters_.end() &&
         master->second.state.phase == k8s::PodState::Phase::kRunning;
}

bool KeptJob::starts() const {
  const auto master = masters_.find(newest_);
  return made_ && master != masters_.end() && !master->second.gone &&
         master->second.state.phase == k8s::PodState::Phase::kWaiting &&
         !master->second.state.node.empty();
}

KeptJob::FirstMaster KeptJob::first_master() const {
  const auto first = masters_.find(1);
  if (given_up_.has_value() || service_gone_ || suspend_ || newest_ > 1 ||
      (first != masters_.end() &&
       (first->second.gone || first->second.state.leaving || Ended(first->second)))) {
    return FirstMaster::kOver;
  }
  return first == masters_.end() || first->second.state.node.empty() ? FirstMaster::kWaits
                                                                     : FirstMaster::kPlaced;
}

std::map<int64_t, std::string> KeptJob::pods() const {
  std::map<int64_t, std::string> pods;
  for (const auto& [number, master] : masters_) {
    if (!master.gone) {
      pods[number] = master.pod_uid;
    }
  }
  return pods;
}

// Pods of masters that have ended go, too.
KeptJob::Need KeptJob::NeedOfSuspended(TimePoint now) const {
  return now >= due_ && !pods().empty() ? Need::kClear : Need::kNothing;
}

KeptJob::Need KeptJob::NeedNow(TimePoint now) {
  const bool succeeded = std::any_of(masters_.begin(), masters_.end(), [](const auto& master) {
    return Ended(master.second) && master.second.state.exit_class == elastic::ExitClass::kOk;
  });
  if (!succeeded && service_gone_ && pods().empty()) {
    GiveUp(Cancelled("its objects in Kubernetes were deleted"));
  }
  if (succeeded || given_up_.has_value()) {
    return Need::kEnd;
  }
  const auto found = masters_.find(newest_);
  const bool there = found != masters_.end();
  const bool has_suspended =
      there && Ended(found->second) && found->second.state.exit_code == kSuspendedExit;
  const bool has_none = there ? found->second.gone : !made_;
  const bool has_left = there && (Ended(found->second) || found->second.state.leaving);
  if (suspend_ && (has_suspended || (suspended_ && (has_none || has_left)))) {
    return NeedOfSuspended(now);
  }
  if (made_ && has_suspended) {
    made_ = false;
    lost_ = 0;
    ++newest_;
    return Need::kMaster;
  }
  if (made_ && !there) {
    if (SecondsBetween(made_at_, now) < kUnseenSeconds) {
      return Need::kNothing;  // the watch has not seen it yet
    }
    masters_[newest_].gone = true;
  }
  if (made_) {
    Master& master = masters_.at(newest_);
    if (LacksImage(master, now)) {
      GiveUp(FailedPrecondition(k8s::ImageMissing(master.state.waiting_for)));
      return Need::kEnd;
    }
    const bool unheard = Unheard(master, now);
    if (!Ended(master) && !master.gone && !master.state.leaving && !silent_ && !unheard) {
      return Need::kNothing;
    }
    if (unheard) {  // that is not its fault
      made_ = false;
      ++newest_;
      log::Warn("job={} master={} is lost: its node {} does not answer", job_.number, newest_ - 1,
                master.state.node);
    } else if (!Replace(master, now)) {
      return Need::kEnd;
    }
  } else if (newest_ == 0) {
    newest_ = 1;
  }
  return now >= due_ ? Need::kMaster : Need::kNothing;
}

bool KeptJob::Replace(const Master& master, TimePoint now) {
  if (Ended(master) && master.state.exit_class == elastic::ExitClass::kConfiguration) {
    given_up_ = Internal(master.state.last_words);
    return false;
  }
  lost_ = SecondsBetween(made_at_, now) < kOfUseSeconds ? lost_ + 1 : 1;
  if (lost_ > kMaxLost) {
    given_up_ = Internal(
        fmt::format("{} masters were lost one after the other; the last one ended with exit code "
                    "{}: {}",
                    lost_, master.state.exit_code, master.state.last_words));
    return false;
  }
  log::Warn("job={} master={} is lost: {}", job_.number, newest_,
            Ended(master) ? fmt::format("exit code {}", master.state.exit_code)
            : master.gone ? "its pod is gone"
            : silent_     ? "it has not renewed its lease"
                          : "its pod is leaving");
  silent_ = false;
  const double wait =
      lost_ == 1 ? 0 : std::min(kLongestWaitSeconds, std::ldexp(kFirstRestartSeconds, lost_ - 2));
  due_ = now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(wait));
  made_ = false;
  ++newest_;
  return true;
}

}  // namespace sluice::executor
