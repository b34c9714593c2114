#include "tests/chaos/disturber.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <csignal>

namespace sluice::chaos {
namespace {

constexpr std::chrono::milliseconds kLook(5), kTryAgain(30);
// A server that was paused and is not given up by then will not be.
constexpr std::chrono::milliseconds kGivenUpBy(1'500);

std::string RoleOf(Target target) {
  return target == Target::kWorker ? "worker" : target == Target::kServer ? "ps" : "master";
}

TimePoint Seconds(double seconds) {
  return std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(seconds));
}

}  // namespace

Disturber::Disturber(const GatewayProcess& gateway, catalog::JobStore& jobs,
                     const Schedule& schedule, double seconds)
    : gateway_(gateway),
      jobs_(jobs),
      schedule_(schedule),
      seconds_(seconds),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Disturber::~Disturber() {
  Finish();
}

Blows Disturber::Finish() {
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
  return blows_;
}

bool Disturber::SleepUntil(TimePoint when, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, stop, when - clock_.Now(), [] { return false; });
  return !stop.stop_requested();
}

void Disturber::Run(const std::stop_token& stop) {
  while (gateway_.Processes("").empty()) {
    if (!SleepUntil(clock_.Now() + kLook, stop)) {
      return;
    }
  }
  begin_ = clock_.Now();
  const Result<std::vector<catalog::Job>> jobs = jobs_.List();
  job_ = jobs.ok() && !jobs->empty() ? jobs->front().id : 0;  // the newest
  std::multimap<TimePoint, Fault> due;
  for (const Fault& fault : schedule_.faults) {
    due.emplace(begin_ + Seconds(fault.at * seconds_), fault);
  }
  for (;;) {
    TimePoint next = clock_.Now() + std::chrono::hours(24);
    for (const Paused& paused : paused_) {
      next = std::min(next, paused.until);
    }
    if (!due.empty()) {
      next = std::min(next, due.begin()->first);
    }
    if (!SleepUntil(next, stop)) {
      break;
    }
    ContinueDue(clock_.Now());
    while (!due.empty() && due.begin()->first <= clock_.Now()) {
      const Fault fault = due.begin()->second;
      due.erase(due.begin());
      if (!Strike(fault)) {
        due.emplace(clock_.Now() + kTryAgain, fault);
      }
    }
  }
  ContinueDue(TimePoint::max());
}

void Disturber::ContinueDue(TimePoint now) {
  const auto over = [now](const Paused& paused) {
    return paused.until <= now && (paused.victim->Send(SIGCONT) || true);  // or was killed
  };
  paused_.erase(std::remove_if(paused_.begin(), paused_.end(), over), paused_.end());
}

bool Disturber::Strike(const Fault& fault) {
  if (fault.target == Target::kServer && !ServersAreWhole()) {
    return false;
  }
  const auto living = gateway_.Processes(RoleOf(fault.target));
  if (living.empty()) {
    return false;
  }
  const std::shared_ptr<const Victim>& victim = living[fault.pick % living.size()];
  const bool pause = fault.blow == Blow::kPause;
  const int64_t micros = WallMicros();
  if (!victim->Send(pause ? SIGSTOP : SIGKILL)) {
    return false;
  }
  const TimePoint now = clock_.Now();
  if (pause) {
    paused_.push_back({now + Seconds(fault.pause_seconds), victim, fault.target});
  }
  if (fault.target == Target::kServer) {
    struck_server_ = victim;
    struck_server_micros_ = micros;
    struck_server_continues_ = now + (pause ? Seconds(fault.pause_seconds) : TimePoint(0));
  }
  ++blows_.sent[{fault.target, fault.blow}];
  blows_.log.push_back(fmt::format("{:.2f} s: {} (process {})", SecondsBetween(begin_, now),
                                   Describe(fault), victim->pid()));
  return true;
}

// By what the job has told: moved partitions are the last of what follows a lost server.
bool Disturber::ServersAreWhole() {
  if (struck_server_micros_ == 0) {
    return true;
  }
  const Result<std::vector<catalog::JobEvent>> events = jobs_.Events(job_);
  if (!events.ok()) {
    return false;
  }
  bool lost = false, moved = false;
  for (const catalog::JobEvent& event : *events) {
    const bool later = event.micros > struck_server_micros_;
    lost = lost || (later && event.kind == "server_lost");
    moved = moved || (later && event.kind == "partitions_moved");
  }
  const bool never_missed = !lost && struck_server_->Alive() &&
                            clock_.Now() > struck_server_continues_ + TimePoint(kGivenUpBy);
  return moved || never_missed;
}

}  // namespace sluice::chaos
