#include "executor/processes/local_fleet.h"

#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "executor/processes/local_process_internal.h"

namespace sluice::executor {
namespace {

constexpr int kSignalBase = 128;
// How often the control group of a process is looked at: more often while it takes its memory.
constexpr std::chrono::milliseconds kGroupLook{250};
constexpr std::chrono::milliseconds kYoungGroupLook{10};
constexpr std::chrono::seconds kYoung{2};

std::chrono::milliseconds LookAfter(TimePoint started, TimePoint now) {
  return now - started < kYoung ? kYoungGroupLook : kGroupLook;
}

// For a person; the last line of what the process has said.
std::string WhyKilled(const MemoryGroup& group) {
  const std::optional<int64_t> limit = group.Limit();
  return limit.has_value()
             ? fmt::format(
                   "killed by the kernel: out of memory in a control group limited to {} MiB",
                   *limit >> 20U)
             : "killed by the kernel: the machine is out of memory";
}

}  // namespace

Result<std::unique_ptr<LocalFleet>> LocalFleet::Make(Options options) {
  if (options.binary.empty()) {
    options.binary = "/proc/self/exe";
  }
  std::unique_ptr<LocalFleet> fleet(new LocalFleet(std::move(options)));
  fleet->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fleet->wake_ < 0) {
    return SystemError("an event descriptor for the fleet");
  }
  fleet->thread_ = std::jthread([raw = fleet.get()] { raw->Loop(); });
  return fleet;
}

LocalFleet::LocalFleet(Options options) : options_(std::move(options)) {}

LocalFleet::~LocalFleet() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    for (const auto& [name, process] : processes_) {
      process->stopped = true;
      kill(process->pid, SIGKILL);
    }
  }
  if (thread_.joinable()) {
    Wake();
    thread_.join();
  }
  if (wake_ >= 0) {
    close(wake_);
  }
}

void LocalFleet::Wake() const {
  const uint64_t one = 1;
  // A full counter has already woken the thread.
  [[maybe_unused]] const ssize_t ignored = write(wake_, &one, sizeof(one));
}

void LocalFleet::Watch(Watcher watcher) {
  const MutexLock lock(mutex_);
  watcher_ = std::move(watcher);
}

// The kernel ties a child's death signal to the thread that started it, so the fleet's own thread,
// which lives as long as the fleet, starts all of them.
Status LocalFleet::Launch(const elastic::ProcessSpec& spec) {
  Order order;
  order.spec = spec;
  std::future<Status> answer = order.answer.get_future();
  {
    const MutexLock lock(mutex_);
    if (stopping_) {
      return Unavailable("the fleet is stopping");
    }
    if (processes_.contains(spec.name)) {
      return AlreadyExists(fmt::format("a process named '{}' runs already", spec.name));
    }
    orders_.push_back(std::move(order));
  }
  Wake();
  return answer.get();
}

Status LocalFleet::Stop(const std::string& name, double grace_seconds) {
  const MutexLock lock(mutex_);
  const auto found = processes_.find(name);
  if (found == processes_.end()) {
    return NotFound(fmt::format("no process '{}' in the fleet", name));
  }
  LocalProcess& process = *found->second;
  process.stopped = true;
  kill(process.pid, grace_seconds > 0 ? SIGTERM : SIGKILL);
  process.kill_at = SteadyClock().Now() + std::chrono::duration_cast<TimePoint>(
                                              std::chrono::duration<double>(grace_seconds));
  Wake();
  return Status();
}

Result<int> LocalFleet::ProcessId(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = processes_.find(name);
  if (found == processes_.end()) {
    return NotFound(fmt::format("no process '{}' in the fleet", name));
  }
  return static_cast<int>(found->second->pid);
}

void LocalFleet::Start(Order order) {
  Result<std::unique_ptr<LocalProcess>> process = LocalProcess::Spawn(options_.binary, order.spec);
  if (!process.ok()) {
    order.answer.set_value(process.status());
    return;
  }
  elastic::FleetEvent event;
  event.kind = elastic::FleetEvent::Kind::kStarted;
  event.name = order.spec.name;
  event.role = order.spec.role;
  {
    const MutexLock lock(mutex_);
    if (stopping_) {
      (*process)->stopped = true;
      kill((*process)->pid, SIGKILL);
    }
    (*process)->started = SteadyClock().Now();
    processes_[order.spec.name] = *std::move(process);
  }
  order.answer.set_value(Status());
  Emit(event);
}

void LocalFleet::RunOrders() {
  for (;;) {
    Order order;
    {
      const MutexLock lock(mutex_);
      if (orders_.empty()) {
        return;
      }
      order = std::move(orders_.front());
      orders_.pop_front();
    }
    Start(std::move(order));
  }
}

void LocalFleet::Emit(const elastic::FleetEvent& event) {
  Watcher watcher;
  {
    const MutexLock lock(mutex_);
    watcher = watcher_;
  }
  if (watcher) {
    watcher(event);
  }
}

// A process may be moved to another group at any time.
void LocalFleet::LookAtGroups(const std::vector<LocalProcess*>& processes) {
  const TimePoint now = SteadyClock().Now();
  for (LocalProcess* process : processes) {
    if (now - process->looked < LookAfter(process->started, now)) {
      continue;
    }
    process->looked = now;
    std::optional<MemoryGroup> group = MemoryGroup::Of(process->pid);
    pollfd ended{process->pidfd.get(), POLLIN, 0};
    if (group.has_value() && poll(&ended, 1, 0) == 0) {
      counted_kills_.try_emplace(group->folder(), group->Kills());
      process->group = std::move(group);
    }
  }
}

// Of a process that was killed: whether by the kernel, that is, whether there is a kill in its
// group that was not another's.
bool LocalFleet::KilledForMemory(const LocalProcess& process) {
  if (!process.group.has_value()) {
    return false;
  }
  int64_t& counted = counted_kills_[process.group->folder()];
  const bool another = process.group->Kills() > counted;
  counted += another ? 1 : 0;
  return another;
}

// The process has ended: collects its last output and its exit status.
void LocalFleet::Reap(const std::string& name) {
  std::unique_ptr<LocalProcess> process;
  elastic::FleetEvent event;
  {
    const MutexLock lock(mutex_);
    process = std::move(processes_.at(name));
    processes_.erase(name);
    // Until this call the process id stays reserved, even though the process is dead.
    siginfo_t how{};
    while (waitid(P_PID, static_cast<id_t>(process->pid), &how, WEXITED) != 0 && errno == EINTR) {
    }
    event.exit_code = how.si_code == CLD_EXITED ? how.si_status : kSignalBase + how.si_status;
  }
  if (process->error.open()) {
    process->ReadError();
  }
  event.kind = elastic::FleetEvent::Kind::kExited;
  event.name = name;
  event.role = process->role;
  event.exit_class = process->stopped && event.exit_code != 0
                         ? elastic::ExitClass::kPreempted
                         : elastic::ClassifyExit(event.exit_code, false);
  event.message = std::move(process->last_error);
  if (!process->stopped && event.exit_code == kSignalBase + SIGKILL && KilledForMemory(*process)) {
    event.exit_class = elastic::ExitClass::kKilledForMemory;
    event.message += (event.message.empty() || event.message.back() == '\n' ? "" : "\n") +
                     WhyKilled(*process->group);
  }
  Emit(event);
}

int LocalFleet::PollTimeout() const {
  const MutexLock lock(mutex_);
  const TimePoint now = SteadyClock().Now();
  int64_t timeout = -1;
  for (const auto& [name, process] : processes_) {
    const int64_t look = LookAfter(process->started, now).count();
    timeout = timeout < 0 ? look : std::min(timeout, look);
    if (process->kill_at.has_value()) {
      const int64_t left =
          std::chrono::ceil<std::chrono::milliseconds>(*process->kill_at - now).count();
      timeout = std::min(timeout, std::max<int64_t>(left, 0));
    }
  }
  return static_cast<int>(timeout);
}

void LocalFleet::KillOverdue() {
  const MutexLock lock(mutex_);
  const TimePoint now = SteadyClock().Now();
  for (const auto& [name, process] : processes_) {
    if (process->kill_at.has_value() && *process->kill_at <= now) {
      kill(process->pid, SIGKILL);
      process->kill_at.reset();
    }
  }
}

void LocalFleet::Loop() {
  for (;;) {
    // Exceptions are logged by Guarded; the next turn reads the pending data.
    const Result<bool> goes_on = Guarded("watching processes", [this] { return Turn(); });
    if (goes_on.ok() && !*goes_on) {
      return;
    }
  }
}

Result<bool> LocalFleet::Turn() {
  std::vector<pollfd> watched{{wake_, POLLIN, 0}};
  std::vector<LocalProcess*> owners{nullptr};
  std::vector<LocalProcess*> all;
  {
    const MutexLock lock(mutex_);
    if (stopping_ && processes_.empty() && orders_.empty()) {
      return false;
    }
    for (const auto& [name, process] : processes_) {
      all.push_back(process.get());
      // The exit comes last: by then all of its output has been read.
      for (const Descriptor* one : {&process->error, &process->pidfd}) {
        if (one->open()) {
          watched.push_back({one->get(), POLLIN, 0});
          owners.push_back(process.get());
        }
      }
    }
  }
  LookAtGroups(all);
  if (poll(watched.data(), watched.size(), PollTimeout()) < 0 && errno != EINTR) {
    log::Error("the fleet cannot watch its processes: {}", std::strerror(errno));
  }
  uint64_t woken = 0;
  while (read(wake_, &woken, sizeof(woken)) > 0) {
  }
  for (size_t i = 1; i < watched.size(); ++i) {
    LocalProcess* process = owners[i];
    if (watched[i].revents == 0 || process == nullptr) {
      continue;
    }
    if (watched[i].fd == process->error.get()) {
      process->ReadError();
    } else {
      Reap(process->name);
    }
  }
  RunOrders();
  KillOverdue();
  return true;
}

}  // namespace sluice::executor
