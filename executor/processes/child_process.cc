#include "executor/processes/child_process.h"

#include <fmt/core.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <new>
#include <stop_token>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/guarded.h"
#include "base/log.h"
#include "elastic/job/process.h"
#include "executor/local/job_process.h"
#include "executor/local/master_process.h"
#include "executor/processes/detached_process.h"

namespace sluice::executor {
namespace {

// Both are a few kilobytes, or a few megabytes for plans with large vocabularies; a parameter
// server's configuration includes base weights.
constexpr uint64_t kMaxInheritedBytes = uint64_t{4} << 30;
// A preempted process must be gone within two seconds, whatever call blocks it.
constexpr double kStopSeconds = 1.5;
// But a parameter server may have to serve until another one has its partitions
// (elastic/job/process ends it after 25 s). Less than its pod's grace period.
constexpr double kServerStopSeconds = 28;
// A job needs time to record its end.
constexpr double kJobStopSeconds = 10;
constexpr int kPreempted = 143;
constexpr int kApplicationError = 1;
constexpr int kConfigurationError = 126;

Status ReadAll(int descriptor, void* into, size_t bytes) {
  char* out = static_cast<char*>(into);
  while (bytes > 0) {
    const ssize_t got = read(descriptor, out, bytes);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return FailedPrecondition("the configuration that this process should inherit is missing")
          .Hint("`sluice master`, `worker` and `ps` are started by a fleet, not by hand");
    }
    out += got;
    bytes -= static_cast<size_t>(got);
  }
  return Status();
}

Result<std::string> ReadPrefixed(int descriptor) {
  uint64_t length = 0;
  RETURN_IF_ERROR(ReadAll(descriptor, &length, sizeof(length)));
  if (length > kMaxInheritedBytes) {
    return InvalidArgument(
        fmt::format("an inherited configuration of {} bytes is not ours", length));
  }
  std::string text(length, '\0');
  RETURN_IF_ERROR(ReadAll(descriptor, text.data(), length));
  return text;
}

// Waits for signals on a thread of its own, so that no signal handler runs.
class SignalThread {
 public:
  explicit SignalThread(double stop_seconds) : stop_seconds_(stop_seconds) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::jthread([this](const std::stop_token& done) {
      if (!Guarded("waiting for signals", [&] { Wait(done); }).ok()) {
        _exit(kPreempted);  // it could not be stopped any more
      }
    });
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  void Wait(const std::stop_token& done) {
    constexpr timespec kPollInterval{0, 50'000'000};
    double waited = 0;
    while (!done.stop_requested()) {
      if (sigtimedwait(&signals_, nullptr, &kPollInterval) > 0) {
        stop_.request_stop();
      }
      if (stop_.stop_requested()) {
        waited += 0.05;
      }
      if (waited > stop_seconds_) {
        _exit(kPreempted);  // blocked in a call that ignores the stop
      }
    }
  }

  const double stop_seconds_;
  sigset_t signals_{};
  std::stop_source stop_;
  std::jthread thread_;
};

// A local process's memory limit makes allocations fail; report that in the exit code.
void ExitOutOfMemory() {
  constexpr char kText[] = "out of memory\n";
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, kText, sizeof(kText) - 1);
  _exit(elastic::kOutOfMemoryExit);
}

// A process's memory limit counts the full size of its threads' stacks: eight megabytes each would
// use up a worker's limit. No thread needs more than this.
void KeepStacksSmall() {
  constexpr size_t kStackBytes = size_t{1} << 20;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    if (pthread_attr_setstacksize(&attributes, kStackBytes) != 0 ||
        pthread_setattr_default_np(&attributes) != 0) {
      log::Warn("the threads of this process have large stacks");
    }
    pthread_attr_destroy(&attributes);
  }
}

// A master stops its fleet properly; the others have nothing to lose. The parent may have died
// before the death signal was set.
void DieWithParent(elastic::Role role) {
  const int signal = role == elastic::Role::kMaster ? SIGTERM : SIGKILL;
  if (prctl(PR_SET_PDEATHSIG, signal) != 0) {
    log::Warn("a process will not die with its parent: {}", std::strerror(errno));
  }
  pollfd launcher{kLauncherDescriptor, 0, 0};
  if (poll(&launcher, 1, 0) > 0 && (launcher.revents & POLLHUP) != 0) {
    kill(getpid(),
         signal);  // to the process: no other thread could receive what `raise` sends to this one
  }
}

}  // namespace

Result<InheritedConfig> ReadInheritedConfig() {
  InheritedConfig inherited;
  ASSIGN_OR_RETURN(inherited.config, ReadPrefixed(kConfigDescriptor));
  ASSIGN_OR_RETURN(inherited.secret, ReadPrefixed(kConfigDescriptor));
  close(kConfigDescriptor);
  return inherited;
}

int RunProcess(elastic::Role role,
               const std::function<Result<int>(const std::stop_token& stop)>& run) {
  std::set_new_handler(ExitOutOfMemory);
  KeepStacksSmall();
  const SignalThread signals(role == elastic::Role::kParameterServer ? kServerStopSeconds
                                                                     : kStopSeconds);
  signal(SIGPIPE, SIG_IGN);
  const Result<int> exit = Guarded(elastic::RoleName(role), [&] { return run(signals.token()); });
  if (!exit.ok()) {
    std::fprintf(stderr, "%s\n", exit.status().ToString().c_str());
    return exit.status().code() == Code::kInternal ? kApplicationError : kConfigurationError;
  }
  return *exit;
}

int RunChildProcess(elastic::Role role) {
  return RunProcess(role, [role](const std::stop_token& stop) -> Result<int> {
    DieWithParent(role);
    ASSIGN_OR_RETURN(const InheritedConfig inherited, ReadInheritedConfig());
    switch (role) {
      case elastic::Role::kMaster:
        return RunMasterProcess(inherited.config, inherited.secret, stop);
      case elastic::Role::kWorker:
        return elastic::RunWorkerProcess(inherited.config, inherited.secret, stop);
      case elastic::Role::kParameterServer:
        return elastic::RunParameterServerProcess(inherited.config, stop);
    }
    return kConfigurationError;
  });
}

int RunDetached(const std::string& role, const DetachedRole& run) {
  if (fcntl(kConfigDescriptor, F_GETFD) < 0 || fcntl(kLauncherDescriptor, F_GETFD) < 0) {
    std::fprintf(stderr, "`sluice %s` is started by a gateway or a shell, not by hand\n",
                 role.c_str());
    return kConfigurationError;
  }
  BecomeDetached();
  std::set_new_handler(ExitOutOfMemory);
  const SignalThread signals(kJobStopSeconds);
  signal(SIGPIPE, SIG_IGN);
  const Result<int> exit = Guarded(role, [&]() -> Result<int> {
    ASSIGN_OR_RETURN(const InheritedConfig inherited, ReadInheritedConfig());
    return run(inherited, kLauncherDescriptor, signals.token());
  });
  if (!exit.ok()) {
    std::fprintf(stderr, "%s\n", exit.status().ToString().c_str());
    return kApplicationError;
  }
  return *exit;
}

int RunDetachedJob() {
  return RunDetached("job",
                     [](const InheritedConfig& inherited, int launcher,
                        const std::stop_token& stop) -> Result<int> {
                       return RunJobProcess(inherited.config, inherited.secret, launcher, stop);
                     });
}

}  // namespace sluice::executor
