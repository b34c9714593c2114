#include "executor/local_fleet.h"

#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {  // glibc 2.36 forgot to say so itself
#include <sys/pidfd.h>
}

#include "base/clock.h"
#include "base/log.h"
#include "executor/child_process.h"
#include "executor/descriptor_internal.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {
namespace {

// The last lines of a process's standard error: enough for a stack of errors, bounded whatever it
// writes.
constexpr size_t kErrorBytes = 4096;
constexpr size_t kMaxMessageBytes = 64U << 20;  // as SendToLauncher allows

// Configuration and secret in memory that only the child can reach; unlike a pipe it takes any size
// at once.
Result<Descriptor> MakeConfig(const elastic::ProcessSpec& spec) {
  std::string bytes;
  for (const std::string* part : {&spec.config, &spec.secret}) {
    const uint64_t length = part->size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes.append(*part);
  }
  return MakeMemory("sluice-config", bytes);
}

}  // namespace

struct LocalFleet::Process {
  std::string name;
  elastic::Role role = elastic::Role::kWorker;
  pid_t pid = -1;
  Descriptor pidfd, error, messages;
  std::string last_error;
  std::string unread;  // the beginning of a message
  std::optional<TimePoint> kill_at;
  bool stopped = false;  // by us: whatever its exit looks like, it is no failure
};

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
  // A full counter has woken the thread already.
  [[maybe_unused]] const ssize_t ignored = write(wake_, &one, sizeof(one));
}

void LocalFleet::Watch(Watcher watcher) {
  const MutexLock lock(mutex_);
  watcher_ = std::move(watcher);
}

// The kernel ties a child's death signal to the thread that started it, so the fleet's own thread,
// which lives as long as the fleet, starts them all.
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
  Process& process = *found->second;
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

Result<std::unique_ptr<LocalFleet::Process>> LocalFleet::Spawn(
    const elastic::ProcessSpec& spec) const {
  auto process = std::make_unique<Process>();
  process->name = spec.name;
  process->role = spec.role;
  ASSIGN_OR_RETURN(const Descriptor config, MakeConfig(spec));
  ASSIGN_OR_RETURN(Pipe error, MakePipe());
  ASSIGN_OR_RETURN(Pipe messages, MakePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, error.write.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, config.get(), kConfigDescriptor);
  posix_spawn_file_actions_adddup2(&actions, messages.write.get(), kMessageDescriptor);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // A process group of its own: Ctrl-C at the shell reaches the gateway, which stops its fleet.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  std::string role(elastic::RoleName(spec.role));
  std::string program = options_.binary;
  char* arguments[] = {program.data(), role.data(), nullptr};
  const int failed =
      posix_spawn(&process->pid, program.c_str(), &actions, &attributes, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) {
    return FailedPrecondition(fmt::format("process '{}' cannot be started from {}: {}", spec.name,
                                          options_.binary, std::strerror(failed)));
  }
  process->pidfd = Descriptor(pidfd_open(process->pid, 0));
  if (!process->pidfd.open()) {
    const Status status = SystemError("watching a process of the fleet");
    kill(process->pid, SIGKILL);
    waitpid(process->pid, nullptr, 0);
    return status;
  }
  process->error = std::move(error.read);
  process->messages = std::move(messages.read);
  return process;
}

void LocalFleet::Start(Order order) {
  Result<std::unique_ptr<Process>> process = Spawn(order.spec);
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

void LocalFleet::ReadError(Process* process) const {
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(process->error.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EAGAIN) {
      return;
    }
    if (got <= 0) {
      process->error.Close();
      return;
    }
    process->last_error.append(buffer, static_cast<size_t>(got));
    if (process->last_error.size() > 2 * kErrorBytes) {
      process->last_error.erase(0, process->last_error.size() - kErrorBytes);
    }
  }
}

void LocalFleet::ReadMessages(Process* process) const {
  char buffer[65536];
  for (;;) {
    const ssize_t got = read(process->messages.get(), buffer, sizeof(buffer));
    if (got < 0 && errno == EAGAIN) {
      break;
    }
    if (got <= 0) {
      process->messages.Close();
      break;
    }
    process->unread.append(buffer, static_cast<size_t>(got));
  }
  std::string& unread = process->unread;
  uint64_t length = 0;
  while (unread.size() >= sizeof(length)) {
    std::memcpy(&length, unread.data(), sizeof(length));
    if (length > kMaxMessageBytes) {
      log::Error("process {} sends a message of {} bytes: it is not heard any more", process->name,
                 length);
      process->messages.Close();
      unread.clear();
      return;
    }
    if (unread.size() < sizeof(length) + length) {
      return;
    }
    if (options_.on_message) {
      options_.on_message(process->name, unread.substr(sizeof(length), length));
    }
    unread.erase(0, sizeof(length) + length);
  }
}

// The process has ended: collects what it said last, and how it ended.
void LocalFleet::Reap(const std::string& name) {
  std::unique_ptr<Process> process;
  elastic::FleetEvent event;
  {
    const MutexLock lock(mutex_);
    process = std::move(processes_.at(name));
    processes_.erase(name);
    // Until here the number belonged to this process, even when it was dead.
    siginfo_t how{};
    while (waitid(P_PID, static_cast<id_t>(process->pid), &how, WEXITED) != 0 && errno == EINTR) {
    }
    constexpr int kSignalBase = 128;
    event.exit_code = how.si_code == CLD_EXITED ? how.si_status : kSignalBase + how.si_status;
  }
  if (process->messages.open()) {
    ReadMessages(process.get());
  }
  if (process->error.open()) {
    ReadError(process.get());
  }
  event.kind = elastic::FleetEvent::Kind::kExited;
  event.name = name;
  event.role = process->role;
  event.exit_class = process->stopped && event.exit_code != 0
                         ? elastic::ExitClass::kPreempted
                         : elastic::ClassifyExit(event.exit_code, false);
  event.message = std::move(process->last_error);
  if (event.message.size() > kErrorBytes) {
    event.message.erase(0, event.message.size() - kErrorBytes);
  }
  Emit(event);
}

int LocalFleet::PollTimeout() const {
  const MutexLock lock(mutex_);
  const TimePoint now = SteadyClock().Now();
  int64_t timeout = -1;
  for (const auto& [name, process] : processes_) {
    if (process->kill_at.has_value()) {
      const int64_t left =
          std::chrono::ceil<std::chrono::milliseconds>(*process->kill_at - now).count();
      timeout =
          timeout < 0 ? std::max<int64_t>(left, 0) : std::min(timeout, std::max<int64_t>(left, 0));
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
    std::vector<pollfd> watched{{wake_, POLLIN, 0}};
    std::vector<Process*> owners{nullptr};
    {
      const MutexLock lock(mutex_);
      if (stopping_ && processes_.empty() && orders_.empty()) {
        return;
      }
      for (const auto& [name, process] : processes_) {
        // Exit last: by then everything that it wrote has been read.
        for (const Descriptor* one : {&process->error, &process->messages, &process->pidfd}) {
          if (one->open()) {
            watched.push_back({one->get(), POLLIN, 0});
            owners.push_back(process.get());
          }
        }
      }
    }
    if (poll(watched.data(), watched.size(), PollTimeout()) < 0 && errno != EINTR) {
      log::Error("the fleet cannot watch its processes: {}", std::strerror(errno));
    }
    uint64_t woken = 0;
    while (read(wake_, &woken, sizeof(woken)) > 0) {
    }
    for (size_t i = 1; i < watched.size(); ++i) {
      Process* process = owners[i];
      if (watched[i].revents == 0 || process == nullptr) {
        continue;
      }
      if (watched[i].fd == process->error.get()) {
        ReadError(process);
      } else if (watched[i].fd == process->messages.get()) {
        ReadMessages(process);
      } else {
        Reap(process->name);
      }
    }
    RunOrders();
    KillOverdue();
  }
}

}  // namespace sluice::executor
