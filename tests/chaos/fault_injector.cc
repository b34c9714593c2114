#include "tests/chaos/fault_injector.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "base/log.h"
#include "tests/chaos/connections.h"

namespace sluice::chaos {
namespace {

constexpr std::chrono::milliseconds kLook(5), kLookForDraft(1), kTryAgain(30);
// A paused server that has not been given up by then will not be.
constexpr std::chrono::milliseconds kGivenUpBy(1'500);

std::string RoleOf(Target target) {
  return target == Target::kWorker ? "worker" : target == Target::kServer ? "ps" : "master";
}

TimePoint Seconds(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

// Of "epoch 3: 40000 rows, ...".
uint32_t EpochIn(std::string_view detail) {
  constexpr std::string_view kEpoch = "epoch ";
  return detail.starts_with(kEpoch)
             ? static_cast<uint32_t>(std::strtoul(detail.data() + kEpoch.size(), nullptr, 10))
             : 0;
}

}  // namespace

FaultInjector::FaultInjector(Scene scene, Schedule schedule)
    : scene_(std::move(scene)),
      schedule_(std::move(schedule)),
      files_(scene_.checkpoints),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

FaultInjector::~FaultInjector() {
  Finish();
}

InjectedFaults FaultInjector::Finish() {
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
  return injected_;
}

bool FaultInjector::SleepUntil(TimePoint when, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop, when - clock_.Now(), [] { return false; });
  return !stop.stop_requested();
}

void FaultInjector::Run(const std::stop_token& stop) {
  while (scene_.gateway.Processes("").empty()) {
    if (!SleepUntil(clock_.Now() + kLook, stop)) {
      return;
    }
  }
  begin_ = clock_.Now();
  injected_.began_micros = WallMicros();
  const Result<std::vector<catalog::Job>> jobs = scene_.catalog.jobs().List();
  job_ = jobs.ok() && !jobs->empty() ? jobs->front().id : 0;  // the newest
  for (const Fault& fault : schedule_.faults) {
    Due due{TimePoint::max(), fault};
    if (fault.moment == Moment::kTime) {
      due.when = begin_ + Seconds(fault.at * scene_.seconds + fault.after);
    }
    due_.push_back(due);
  }
  while (SleepUntil(NextLook(), stop)) {
    ContinueDue(clock_.Now());
    LookForMoments();
    for (;;) {
      const auto next = std::min_element(
          due_.begin(), due_.end(), [](const Due& a, const Due& b) { return a.when < b.when; });
      if (next == due_.end() || next->when > clock_.Now()) {
        break;
      }
      if (Inject(next->fault)) {
        due_.erase(next);
      } else {
        next->when = clock_.Now() + kTryAgain;
      }
    }
  }
  ContinueDue(TimePoint::max());
}

TimePoint FaultInjector::NextLook() const {
  TimePoint next = clock_.Now() + std::chrono::hours(24);
  for (const Paused& paused : paused_) {
    next = std::min(next, paused.until);
  }
  for (const Due& due : due_) {
    const bool waits = due.when == TimePoint::max();
    const auto look = due.fault.moment == Moment::kDraft ? kLookForDraft : kLook;
    next = std::min(next, waits ? clock_.Now() + look : due.when);
  }
  return next;
}

void FaultInjector::LookForMoments() {
  const auto waiting = [&](auto&& wanted) {
    return std::any_of(due_.begin(), due_.end(), [&](const Due& due) {
      return due.when == TimePoint::max() && wanted(due.fault.moment);
    });
  };
  if (waiting([](Moment m) { return m == Moment::kDraft || m == Moment::kCheckpoint; })) {
    files_.Look();
  }
  uint32_t evaluations = 0;
  bool ending = false;
  if (waiting([](Moment m) { return m == Moment::kEvaluation || m == Moment::kCommit; })) {
    const Result<std::vector<catalog::JobEvent>> events = scene_.catalog.jobs().Events(job_);
    if (!events.ok()) {
      return;
    }
    for (const catalog::JobEvent& event : *events) {
      if (event.kind == "evaluation_done") {
        evaluations = std::max(evaluations, EpochIn(event.detail));
      }
      ending = ending || event.kind == "early_stop";
    }
    ending = ending || evaluations >= static_cast<uint32_t>(scene_.epochs);
  }
  for (Due& due : due_) {
    if (due.when == TimePoint::max() && HasCome(due.fault, evaluations, ending)) {
      due.when = clock_.Now() + Seconds(due.fault.after);
    }
  }
}

bool FaultInjector::HasCome(const Fault& fault, uint32_t evaluations, bool ending) const {
  switch (fault.moment) {
    case Moment::kTime:
      return true;
    case Moment::kEvaluation:
      return evaluations >= fault.nth;
    case Moment::kDraft:
      return files_.drafts() >= fault.nth;
    case Moment::kCheckpoint:
      return files_.checkpoints() >= fault.nth;
    case Moment::kCommit:
      return ending;
  }
  return false;
}

void FaultInjector::ContinueDue(TimePoint now) {
  const auto over = [now](const Paused& paused) {
    return paused.until <= now && (paused.victim->Send(SIGCONT) || true);  // or it was killed
  };
  paused_.erase(std::remove_if(paused_.begin(), paused_.end(), over), paused_.end());
}

bool FaultInjector::Inject(const Fault& fault) {
  if (fault.target == Target::kCheckpoint) {
    return InjectIntoFiles(fault);
  }
  const bool whole = fault.target != Target::kServer || ServersAreWhole();
  if (!whole && !fault.regardless) {
    return false;
  }
  const auto living = scene_.gateway.Processes(RoleOf(fault.target));
  if (living.empty()) {
    return false;
  }
  if (!fault.all) {
    const auto& victim = living[fault.pick % living.size()];
    const bool struck = InjectInto(fault, victim);
    if (struck && fault.target == Target::kServer) {
      InjectIntoServer(fault, victim, whole);
    }
    return struck;
  }
  for (const auto& victim : living) {
    InjectInto(fault, victim);
  }
  if (fault.target == Target::kServer) {
    InjectIntoServer(fault, living.back(), whole && living.size() == 1);
  }
  return true;
}

bool FaultInjector::InjectIntoFiles(const Fault& fault) {
  const bool done =
      fault.kind == FaultKind::kExchange ? files_.Exchange(fault.pick) : files_.Damage(fault.pick);
  injected_.files = injected_.files || done;
  if (done) {
    Record(fault, "");
  }
  return done;
}

bool FaultInjector::InjectInto(const Fault& fault, const std::shared_ptr<const Victim>& victim) {
  if (fault.kind == FaultKind::kDisconnect) {
    const Result<int> ended = TerminateConnections(victim->pid(), scene_.source);
    if (!ended.ok()) {
      log::Warn("connections of {} are not terminated: {}", victim->pid(),
                ended.status().ToString());
    }
    if (!ended.ok() || *ended == 0) {
      return false;
    }
  } else if (!victim->Send(fault.kind == FaultKind::kPause ? SIGSTOP : SIGKILL)) {
    return false;
  }
  if (fault.kind == FaultKind::kPause) {
    paused_.push_back({clock_.Now() + Seconds(fault.pause_seconds), victim});
  }
  Record(fault, fmt::format(" (process {})", victim->pid()));
  return true;
}

void FaultInjector::InjectIntoServer(const Fault& fault,
                                     const std::shared_ptr<const Victim>& victim, bool whole) {
  injected_.both_copies = injected_.both_copies || !whole;
  hit_server_ = victim;
  hit_server_micros_ = WallMicros();
  hit_server_continues_ =
      clock_.Now() +
      (fault.kind == FaultKind::kPause ? Seconds(fault.pause_seconds) : TimePoint(0));
}

void FaultInjector::Record(const Fault& fault, const std::string& at_whom) {
  ++injected_.sent[{fault.target, fault.kind}];
  injected_.log.push_back(fmt::format("{:.2f} s: {}{}", SecondsBetween(begin_, clock_.Now()),
                                      Describe(fault), at_whom));
}

// Judged by the job's events: moved partitions are the last step after a lost server, and a job
// that goes back to a checkpoint has new servers.
bool FaultInjector::ServersAreWhole() {
  if (hit_server_micros_ == 0) {
    return true;
  }
  const Result<std::vector<catalog::JobEvent>> events = scene_.catalog.jobs().Events(job_);
  if (!events.ok()) {
    return false;
  }
  bool lost = false, moved = false;
  for (const catalog::JobEvent& event : *events) {
    const bool later = event.micros > hit_server_micros_;
    lost = lost || (later && event.kind == "server_lost");
    moved = moved || (later && (event.kind == "partitions_moved" || event.kind == "rolled_back"));
  }
  const bool never_missed =
      !lost && hit_server_->Alive() && clock_.Now() > hit_server_continues_ + TimePoint(kGivenUpBy);
  return moved || never_missed;
}

}  // namespace sluice::chaos
